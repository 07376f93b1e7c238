/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a TCP connection of this machine is: by all addresses, with netlink and without. */
#include "http/tcp_user.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { OTHER_USER = 65534 };

static struct sockaddr_in6 address_of(const char *text, in_port_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};

    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return six;
}

/* The other end of a pair: of an IPv6 socket, also for IPv4, and of another user if this is root. */
static void connect_as_other(const char *from, const char *to, in_port_t port, int told)
{
    struct sockaddr_in6 source = address_of(from, 0), target = address_of(to, port);
    int fd;

    if (geteuid() == 0 && (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0))
        _exit(1);
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&source, sizeof source) != 0 ||
        connect(fd, (struct sockaddr *)&target, sizeof target) != 0 || write(told, "", 1) != 1)
        _exit(1);
    pause();
    _exit(0);
}

/* Refuses sockets of netlink from here on. */
static void refuse_netlink(void)
{
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof rows / sizeof rows[0], .filter = rows};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        _exit(2);
}

/* Returns whether the user is found, in a process of its own. */
static bool is_found(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, bool netlink)
{
    uid_t wanted = geteuid() == 0 ? OTHER_USER : geteuid(), uid = 0;
    pid_t child = fork();
    int status;

    if (child == 0) {
        if (!netlink)
            refuse_netlink();
        _exit(tcp_user_find(peer, own, &uid) && uid == wanted ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static void check_pair(const char *from, const char *to)
{
    struct sockaddr_in6 any = address_of("::", 0);
    struct sockaddr_storage peer, own;
    socklen_t length = sizeof any, peer_length = sizeof peer, own_length = sizeof own;
    int listener = socket(AF_INET6, SOCK_STREAM, 0), ends[2], fd;
    char byte;
    pid_t child;
    uid_t uid;

    assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof any) | listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &length), 0);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0)
        connect_as_other(from, to, any.sin6_port, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    fd = accept(listener, NULL, NULL);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &peer_length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &own_length), 0);
    for (int netlink = 0; netlink < 2; netlink++)
        if (!is_found(&peer, &own, netlink != 0))
            fail_msg("%s to %s, %s netlink", from, to, netlink != 0 ? "with" : "without");
    /* The listener itself is nobody's connection; nor is one whose process has gone. */
    assert_false(tcp_user_find(&own, &peer, &uid) && uid == OTHER_USER);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(is_found(&peer, &own, true));
    assert_false(is_found(&peer, &own, false));
    close(fd);
    close(listener);
}

static void test_pairs(void **state)
{
    (void)state;
    check_pair("::ffff:127.0.0.1", "::ffff:127.0.0.1");
    check_pair("::ffff:127.0.0.2", "::ffff:127.0.0.1");
    check_pair("::ffff:127.0.0.1", "::ffff:127.0.0.77");
    check_pair("::1", "::1");
}

/* Where nobody is connected, whoever listens at that port is not the peer. */
static void test_listener(void **state)
{
    struct sockaddr_in any = {.sin_family = AF_INET}, foreign = {.sin_family = AF_INET};
    struct sockaddr_storage peer, own = {.ss_family = AF_INET};
    socklen_t length = sizeof any;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    uid_t uid;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof any) | listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &length), 0);
    foreign.sin_port = any.sin_port;
    assert_int_equal(inet_pton(AF_INET, "198.51.100.7", &foreign.sin_addr), 1);
    memcpy(&peer, &foreign, sizeof foreign);
    ((struct sockaddr_in *)&own)->sin_port = htons(7471);
    assert_false(tcp_user_find(&peer, &own, &uid));
    peer.ss_family = AF_UNIX;
    assert_false(tcp_user_find(&peer, &own, &uid));
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_listener)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
