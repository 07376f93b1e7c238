/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server listens, with which access, whom its back lets in, and how many. */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/listener.h"
#include "talk.h"

static const char whole[] = "\"end\":\"yes\"";
static const struct server_options with_peers = {.porter = &talk_porter, .proofs = true};

static void check_mode(unsigned wanted, unsigned mode)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    struct stat there;
    char user[16];

    snprintf(user, sizeof user, "%u", (unsigned)getuid());
    options.socket_mode = wanted;
    options.socket_owner = user;
    talk_open(&talk, options, false);
    assert_int_equal(stat(talk.path, &there), 0);
    assert_int_equal(there.st_mode & 07777, mode);
    assert_int_equal(there.st_uid, getuid());
    talk_close(&talk);
}

static void test_modes(void **state)
{
    (void)state;
    check_mode(0666, 0666);
    check_mode(0, 0600);
}

static int listening(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path, path, strlen(path) + 1);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* A socket that was opened elsewhere serves, and stays for who opened it. */
static void check_inherited(bool accept_peers)
{
    char path[] = "/tmp/flyball-inherited-XXXXXX", address[64], fd_text[16], url[96];
    const char *const listen[] = {fd_text};
    struct talk talk = {0};
    int fd, own;

    assert_non_null(mkdtemp(path));
    snprintf(address, sizeof address, "%s/socket", path);
    snprintf(url, sizeof url, "unix:%s", address);
    fd = listening(address);
    own = dup(fd);
    snprintf(fd_text, sizeof fd_text, "fd:%d", fd);
    talk_open(&talk,
              (struct server_options){
                  .listen = listen, .listen_count = 1, .porter = accept_peers ? &talk_porter : NULL},
              false);
    assert_string_equal(server_address(talk.server, 0), url);
    snprintf(talk.path, sizeof talk.path, "%s", address);
    check_contains(talk_ask(&talk, "/a", whole), accept_peers ? "\"local\":true" : "\"local\":false");
    talk_close(&talk);
    close(talk_connect(&talk));
    close(own);
    assert_int_equal(unlink(address), 0);
    assert_int_equal(rmdir(path), 0);
}

static void test_inherited(void **state)
{
    (void)state;
    check_inherited(true);
    check_inherited(false);
}

static void test_not_inherited(void **state)
{
    static const char *const bad[] = {"fd:0", "fd:2", "fd:x", "fd:", "fd:999"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct fly_error error = {.text = ""};
        struct listen_address address;
        int code = listen_address_parse(bad[i], &address, &error);

        if (code == 0)
            code = listener_look(&address, &error);
        assert_int_equal(code, FLY_EUSAGE);
        check_contains(error.text, bad[i]);
    }
}

static void test_activation(void **state)
{
    char own[16];

    (void)state;
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_PID", "1", 1);
    assert_int_equal(listener_inherited(), 0); /* meant for another process */
    assert_null(getenv("LISTEN_FDS"));
    snprintf(own, sizeof own, "%d", (int)getpid());
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_PID", own, 1);
    assert_int_equal(listener_inherited(), 2);
    assert_null(getenv("LISTEN_PID"));
    assert_int_equal(listener_inherited(), 0);
}

static void test_admit(void **state)
{
    static const char body[] = "POST /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n"
                               "Content-Length: 3\r\n\r\nabc";
    struct talk talk = {.admits = SERVE_NOBODY};
    int fd;

    (void)state;
    talk_open(&talk, with_peers, true);
    check_contains(talk_ask(&talk, "/a", whole), "\"bearer\":null");
    check_contains(talk_ask(&talk, "/healthz", "}"), "200 OK");
    check_contains(talk_ask(&talk, "/metrics", "}"), " 403 ");
    fd = talk_connect(&talk);
    assert_int_equal(talk_send(fd, body, NULL, 0), 0);
    check_contains(talk_read(fd, "}"), " 413 ");
    close(fd);
    talk.admits = SERVE_READ;
    check_contains(talk_ask(&talk, "/metrics", "talks 1"), "200 OK");
    fd = talk_connect(&talk);
    assert_int_equal(talk_send(fd, body, NULL, 0), 0);
    check_contains(talk_read(fd, whole), "\"bearer\":\"secret\"");
    close(fd);
    fd = talk_connect(&talk);
    assert_int_equal(talk_send(fd, "GET /a HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\n", NULL, 0), 0);
    check_contains(talk_read(fd, "}"), " 403 ");
    close(fd);
    /* A page can send any bearer to an address that it calls by its own name. */
    fd = talk_connect(&talk);
    assert_int_equal(
        talk_send(fd, "GET /a HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nAuthorization: Bearer any\r\n\r\n",
                  NULL, 0),
        0);
    check_contains(talk_read(fd, "}"), " 403 ");
    close(fd);
    talk_close(&talk);
}

/* What is kept for root: the test's user is root, or others' connections end. */
static void test_for_root(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    int fds[4];

    (void)state;
    options.connections = 2;
    options.connections_per_user = 2;
    options.root_connections = 2;
    talk_open(&talk, options, false);
    for (int i = 0; i < 4; i++) {
        fds[i] = talk_connect(&talk);
        if (i >= 2 && geteuid() != 0) {
            assert_int_equal(talk_end(fds[i]), 0);
            continue;
        }
        talk_get(fds[i], "/a");
        talk_read(fds[i], whole);
    }
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    talk_close(&talk);
}

/* Where all may write, another user holds the lock that a listener wants, and has not even a server. */
static void test_lock_of_another_user(void **state)
{
    char path[] = "/tmp/flyball-lock-XXXXXX", address[64], lock[64];
    struct listen_address wanted;
    struct listener listener = {.fd = -1, .lock_fd = -1};
    struct listener_access access = {.mode = 0600};
    struct fly_error error = {.text = ""};
    int fd;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(path));
    assert_int_equal(chmod(path, 01777), 0);
    snprintf(address, sizeof address, "unix:%s/s", path);
    snprintf(lock, sizeof lock, "%s/s.lock", path);
    fd = open(lock, O_RDWR | O_CREAT, 0600);
    assert_int_equal(fchown(fd, 65534, 65534) | flock(fd, LOCK_EX), 0);
    assert_int_equal(listen_address_parse(address, &wanted, NULL), 0);
    if (listener_open(&wanted, &access, &listener, &error) < 0)
        fail_msg("%s", error.text);
    listener_close(&listener);
    close(fd);
    assert_int_equal(rmdir(path), 0);
}

/* ---- limits ---- */

static void test_per_user(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    int one, silent, third;

    (void)state;
    options.connections_per_user = 2;
    talk_open(&talk, options, false);
    one = talk_connect(&talk);
    talk_get(one, "/a");
    talk_read(one, whole);
    silent = talk_connect(&talk);
    third = talk_connect(&talk);
    assert_int_equal(talk_end(third), 0);
    close(silent);
    talk_wait_for_room(&talk);
    talk_get(one, "/a");
    talk_read(one, whole);
    close(one);
    talk_wait_for_room(&talk);
    talk_close(&talk);
}

/* Above the limit of all, a client waits to be accepted. */
static void test_all(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    struct pollfd waiting = {.events = POLLIN};
    int one, other;

    (void)state;
    options.connections = 2;
    talk_open(&talk, options, false);
    one = talk_connect(&talk);
    other = talk_connect(&talk);
    talk_get(one, "/a");
    talk_read(one, whole);
    talk_get(other, "/a");
    talk_read(other, whole);
    waiting.fd = talk_connect(&talk);
    talk_get(waiting.fd, "/a");
    assert_int_equal(poll(&waiting, 1, 300), 0);
    close(one);
    talk_read(waiting.fd, whole);
    close(waiting.fd);
    close(other);
    talk_close(&talk);
}

/* The server asks itself on the way of its clients, whatever limits are reached. */
static void test_probe(void **state)
{
    static const char good[] = "HTTP/1.1 200 OK";
    struct server_options options = with_peers;
    struct pollfd polled = {.events = POLLIN};
    struct talk talk = {0};
    char said[sizeof good];
    int one;

    (void)state;
    options.connections = 1;
    options.connections_per_user = 1;
    talk_open(&talk, options, false);
    one = talk_connect(&talk);
    talk_get(one, "/a");
    talk_read(one, whole);
    for (int i = 0; i < 3; i++) {
        polled.fd = server_probe(talk.server);
        assert_int_equal(poll(&polled, 1, 60000), 1);
        assert_int_equal(recv(polled.fd, said, sizeof good - 1, 0), sizeof good - 1);
        assert_memory_equal(said, good, sizeof good - 1);
        close(polled.fd);
    }
    assert_true(server_is_reached(talk.server));
    close(one);
    talk_close(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activation),
        cmocka_unit_test(test_not_inherited),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_admit),
        cmocka_unit_test(test_for_root),
        cmocka_unit_test(test_lock_of_another_user),
        cmocka_unit_test(test_per_user),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_probe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
