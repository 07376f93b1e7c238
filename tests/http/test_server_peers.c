/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a Unix socket, what it proves, and what becomes of its connections. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "talk.h"

static const char whole[] = "\"end\":\"yes\"";
static const char get[] = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const struct server_options with_peers = {.porter = &talk_porter, .proofs = true};

static void test_who(void **state)
{
    struct talk talk = {0};
    const char *answer;

    (void)state;
    talk_open(&talk, with_peers, false);
    answer = talk_ask(&talk, "/a", whole);
    check_contains(answer, "\"local\":true");
    check_contains(answer, "\"same\":true");
    check_contains(answer, "\"minors\":[]");
    assert_int_equal(talk_number(answer, "pid"), getpid());
    assert_int_equal(talk_number(answer, "uid"), getuid());
    assert_int_equal(talk_number(answer, "gid"), getgid());
    assert_int_equal(talk_number(answer, "connection"), 1);
    talk_wait_closed(&talk, 1);
    assert_int_equal(talk_number(talk_ask(&talk, "/a", whole), "connection"), 2);
    talk_close(&talk);
}

/* Without the option nothing is known but the number. */
static void test_nobody(void **state)
{
    struct talk talk = {0};
    const char *answer;

    (void)state;
    talk_open(&talk, (struct server_options){0}, false);
    answer = talk_ask(&talk, "/a", whole);
    check_contains(answer, "\"local\":false");
    check_contains(answer, "\"same\":false");
    assert_int_equal(talk_number(answer, "connection"), 1);
    assert_int_equal(talk_number(answer, "pid"), 0);
    assert_true(talk_number(answer, "uid") == (long)(uid_t)-1);
    talk_wait_closed(&talk, 1);
    talk_close(&talk);
}

/* ---- descriptors ---- */

/* A place where /dev/null, which is 1:3, is the GPU with number 3. */
struct devices {
    struct talk talk;
    char directory[64], node[96];
};

static void open_devices(struct devices *devices)
{
    struct server_options options = with_peers;

    *devices = (struct devices){.directory = "/tmp/flyball-devices-XXXXXX"};
    assert_non_null(mkdtemp(devices->directory));
    snprintf(devices->node, sizeof devices->node, "%s/nvidia3", devices->directory);
    assert_int_equal(symlink("/dev/null", devices->node), 0);
    options.device_major = 1;
    options.device_directory = devices->directory;
    talk_open(&devices->talk, options, false);
}

static void close_devices(struct devices *devices)
{
    talk_close(&devices->talk);
    unlink(devices->node);
    assert_int_equal(rmdir(devices->directory), 0);
}

static void check_sent(const struct devices *devices, const int *sent, size_t count, const char *minors)
{
    int fd = talk_connect(&devices->talk);

    assert_int_equal(talk_send(fd, get, sent, count), 0);
    check_contains(talk_read(fd, whole), minors);
    close(fd);
}

static void test_descriptors(void **state)
{
    struct devices devices;
    int gpu = open("/dev/null", O_RDWR | O_CLOEXEC), read_only = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int named = open("/dev/null", O_PATH | O_CLOEXEC), other = open("/dev/zero", O_RDWR | O_CLOEXEC);

    (void)state;
    open_devices(&devices);
    check_sent(&devices, (int[]){gpu}, 1, "\"minors\":[3]");
    check_sent(&devices, (int[]){gpu, gpu, other}, 3, "\"minors\":[3]");
    check_sent(&devices, (int[]){read_only}, 1, "\"minors\":[]");
    check_sent(&devices, (int[]){named}, 1, "\"minors\":[]");
    check_sent(&devices, (int[]){other}, 1, "\"minors\":[]");
    close_devices(&devices);
    close(gpu);
    close(read_only);
    close(named);
    close(other);
}

/* What the first byte did not bring proves nothing later. */
static void test_late_descriptors(void **state)
{
    struct devices devices;
    int gpu = open("/dev/null", O_RDWR | O_CLOEXEC), fd;

    (void)state;
    open_devices(&devices);
    fd = talk_connect(&devices.talk);
    assert_int_equal(talk_send(fd, get, NULL, 0), 0);
    check_contains(talk_read(fd, whole), "\"minors\":[]");
    /* Some kernels refuse to send it. */
    if (talk_send(fd, get, &gpu, 1) != 0)
        assert_int_equal(talk_send(fd, get, NULL, 0), 0);
    check_contains(talk_read(fd, whole), "\"minors\":[]");
    close(fd);
    close_devices(&devices);
    close(gpu);
}

/* Other descriptors and too many are closed with their connection, and none stays open. */
static void test_strangers(void **state)
{
    struct devices devices;
    int ends[2], many[40], fd;
    char byte;

    (void)state;
    open_devices(&devices);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fd = talk_connect(&devices.talk);
    assert_int_equal(talk_send(fd, get, &ends[1], 1), 0);
    close(ends[1]);
    assert_int_equal(talk_end(fd), 0);
    assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody holds the other end */
    close(ends[0]);
    many[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 1; i < COUNT(many); i++)
        many[i] = many[0];
    fd = talk_connect(&devices.talk);
    assert_int_equal(talk_send(fd, get, many, COUNT(many)), 0);
    assert_int_equal(talk_end(fd), 0);
    check_sent(&devices, many, 1, "\"minors\":[3]");
    close(many[0]);
    close_devices(&devices);
}

/* What follows the first byte proves nothing, and none of it stays open. */
static void test_strangers_behind(void **state)
{
    struct talk talk = {0};
    int ends[2], fd;
    char byte;

    (void)state;
    talk_open(&talk, with_peers, false);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fd = talk_connect(&talk);
    assert_int_equal(talk_send(fd, "G", NULL, 0), 0);
    assert_int_equal(talk_send(fd, get + 1, &ends[1], 1), 0);
    close(ends[1]);
    check_contains(talk_read(fd, whole), "\"minors\":[]");
    assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody holds the other end */
    close(fd);
    close(ends[0]);
    talk_close(&talk);
}

/* Where no proofs are wanted, the kernel refuses to send any, if it can; else they are closed. */
static void test_no_proofs(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    int ends[2], fd;
    char byte;

    (void)state;
    options.proofs = false;
    talk_open(&talk, options, false);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fd = talk_connect(&talk);
    if (talk_send(fd, get, &ends[1], 1) == 0)
        assert_int_equal(talk_end(fd), 0);
    else
        close(fd);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    talk_ask(&talk, "/a", whole);
    close(ends[0]);
    talk_close(&talk);
}

/* A request that comes in many pieces is left whole. */
static void test_pieces(void **state)
{
    struct devices devices;
    int gpu = open("/dev/null", O_RDWR | O_CLOEXEC), fd;

    (void)state;
    open_devices(&devices);
    fd = talk_connect(&devices.talk);
    assert_int_equal(talk_send(fd, "POS", &gpu, 1), 0);
    assert_int_equal(talk_send(fd, "T /a HTTP/1.1\r\nHost: local", NULL, 0), 0);
    assert_int_equal(talk_send(fd, "host\r\nContent-Length: 7\r\n\r\nabc", NULL, 0), 0);
    assert_int_equal(talk_send(fd, "defg", NULL, 0), 0);
    check_contains(talk_read(fd, whole), "\"body\":7");
    close(fd);
    check_sent(&devices, (int[]){gpu}, 1, "\"minors\":[3]");
    close_devices(&devices);
    close(gpu);
}

/* Returns a socket whose close lasts until `out_far`, the other end, is closed: what it sent stays unread. */
static int lingering(int *out_far)
{
    static const struct linger long_time = {.l_onoff = 1, .l_linger = 3600};
    static const char bytes[4096];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(door, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(door, 1), 0);
    assert_int_equal(getsockname(door, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(connect(near, (const struct sockaddr *)&at, sizeof at), 0);
    *out_far = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    close(door);
    while (send(near, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    assert_int_equal(setsockopt(near, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
    return near;
}

/* Sends such a socket over a connection that is not accepted yet, so that its last close is the server's. */
static int send_lingering(const struct talk *talk, int *out_far)
{
    int near = lingering(out_far), fd = talk_connect(talk);

    assert_int_equal(talk_send(fd, get, &near, 1), 0);
    close(near);
    return fd;
}

/*
 * A user whose descriptor's close does not return loses the connections, and is served again; the
 * server ends while such a one waits to be accepted.
 */
static void test_stranger_that_lingers(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    int first_far, second_far, fd, kept, left;

    (void)state;
    options.connections = 2;
    talk_open(&talk, options, false);
    kept = talk_connect(&talk);
    talk_get(kept, "/a");
    talk_read(kept, whole);
    left = talk_connect(&talk);
    talk_get(left, "/a");
    talk_read(left, whole);
    fd = send_lingering(&talk, &first_far);
    close(left);
    assert_int_equal(talk_end(fd), 0);
    talk_wait_closed(&talk, 1);
    assert_int_equal(talk_end(kept), 0);
    talk_wait_for_room(&talk);
    kept = talk_connect(&talk);
    talk_get(kept, "/a");
    talk_read(kept, whole);
    left = talk_connect(&talk);
    talk_get(left, "/a");
    talk_read(left, whole);
    fd = send_lingering(&talk, &second_far);
    talk_close(&talk);
    close(fd);
    close(kept);
    close(left);
    close(first_far);
    close(second_far);
}

/* ---- how long connections last ---- */

static void test_silent(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    int silent, half, left;

    (void)state;
    options.request_timeout_s = 2;
    talk_open(&talk, options, false);
    left = talk_connect(&talk);
    shutdown(left, SHUT_WR);
    silent = talk_connect(&talk);
    half = talk_connect(&talk);
    assert_int_equal(talk_send(half, "G", NULL, 0), 0);
    talk_ask(&talk, "/a", whole);
    assert_int_equal(talk_end(left), 0);
    assert_int_equal(talk_end(half), 0);
    assert_int_equal(talk_end(silent), 0);
    talk_close(&talk);
}

/* The server ends although a client has said nothing yet. */
static void test_silent_at_end(void **state)
{
    struct talk talk = {0};
    int silent;

    (void)state;
    talk_open(&talk, with_peers, false);
    silent = talk_connect(&talk);
    talk_ask(&talk, "/a", whole);
    talk_close(&talk);
    assert_int_equal(talk_end(silent), 0);
}

/* A connection to which something is bound stays while its client is silent, until it may not. */
static void test_kept(void **state)
{
    struct server_options options = with_peers;
    struct talk talk = {0};
    int kept, usual;

    (void)state;
    options.request_timeout_s = 3;
    talk_open(&talk, options, false);
    kept = talk_connect(&talk);
    talk_get(kept, "/keep");
    talk_read(kept, whole);
    usual = talk_connect(&talk);
    talk_get(usual, "/a");
    talk_read(usual, whole);
    talk_end(usual);
    talk_get(kept, "/a");
    talk_read(kept, whole);
    usual = talk_connect(&talk);
    talk_get(usual, "/a");
    talk_read(usual, whole);
    talk_end(usual);
    talk_get(kept, "/limit");
    talk_read(kept, whole);
    talk_end(kept);
    talk_wait_closed(&talk, 1);
    talk_close(&talk);
}

static void test_killed(void **state)
{
    struct talk talk = {0};
    int ends[2];
    char byte;
    pid_t child;

    (void)state;
    talk_open(&talk, with_peers, false);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        memcpy(at.sun_path, talk.path, strlen(talk.path) + 1);
        if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 && talk_send(fd, get, NULL, 0) == 0 &&
            recv(fd, &byte, 1, 0) == 1 && write(ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_false(talk_has_closed(&talk, 1));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    talk_wait_closed(&talk, 1);
    close(ends[0]);
    close(ends[1]);
    talk_close(&talk);
}

/* Many come and go at once; each gets its own answer, and each end is told once. */
static void *come_and_go(void *state)
{
    static const char body[] = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
    char text[4096];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct talk *talk = state;

    memcpy(at.sun_path, talk->path, strlen(talk->path) + 1);
    for (int i = 0; i < 15; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0 || talk_send(fd, body, NULL, 0) != 0 ||
            recv(fd, text, sizeof text, 0) <= 0)
            return NULL;
        close(fd);
    }
    return state;
}

static void test_many(void **state)
{
    struct talk talk = {0};
    pthread_t threads[4];
    void *result;

    (void)state;
    talk_open(&talk, with_peers, false);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &talk), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    for (uint64_t number = 1; number <= 15 * COUNT(threads); number++)
        talk_wait_closed(&talk, number);
    assert_int_equal(talk.closed_count, 15 * COUNT(threads));
    talk_close(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who),         cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_descriptors), cmocka_unit_test(test_late_descriptors),
        cmocka_unit_test(test_strangers),   cmocka_unit_test(test_strangers_behind),
        cmocka_unit_test(test_pieces),      cmocka_unit_test(test_stranger_that_lingers),
        cmocka_unit_test(test_silent),      cmocka_unit_test(test_silent_at_end),
        cmocka_unit_test(test_kept),        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_many),        cmocka_unit_test(test_no_proofs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
