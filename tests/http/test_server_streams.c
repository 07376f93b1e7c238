/* SPDX-License-Identifier: Apache-2.0 */
/* Answers without an end: server-sent events. */
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "talk.h"

static const char whole[] = "\"end\":\"yes\"";

/* Tells each number up to `last` in an event of its own. */
struct teller {
    struct serve_stream stream;
    pthread_mutex_t lock;
    long told, last;
    bool floods; /* has always more to say */
    bool ends;   /* has said all */
    size_t least;
    atomic_int ended, pulls;
};

static long tell(void *self, char *bytes, size_t maximum)
{
    struct teller *teller = self;
    long length = 0;

    pthread_mutex_lock(&teller->lock);
    atomic_fetch_add(&teller->pulls, 1);
    if (teller->least == 0 || maximum < teller->least)
        teller->least = maximum;
    if (teller->floods) {
        memset(bytes, 'x', maximum);
        length = (long)maximum;
    } else if (teller->told < teller->last) {
        length = snprintf(bytes, maximum, "data: %ld\n\n", ++teller->told);
    } else if (teller->ends) {
        length = -1;
    }
    pthread_mutex_unlock(&teller->lock);
    return length;
}

static void end(void *self)
{
    struct teller *teller = self;

    pthread_mutex_lock(&teller->lock);
    atomic_fetch_add(&teller->ended, 1);
    pthread_mutex_unlock(&teller->lock);
}

static void open_teller(struct teller *teller, struct talk *talk, struct server_options options)
{
    teller->stream.pull = tell;
    teller->stream.end = end;
    teller->stream.self = teller;
    if (teller->stream.heartbeat_s == 0)
        teller->stream.heartbeat_s = 3600;
    pthread_mutex_init(&teller->lock, NULL);
    options.porter = &talk_porter;
    talk->stream = &teller->stream;
    talk_open(talk, options, false);
}

/* The back's way: both a wake and an end are guarded by the same lock. */
static void let_tell(struct teller *teller, long more, bool ends)
{
    pthread_mutex_lock(&teller->lock);
    teller->last += more;
    teller->ends = ends;
    if (atomic_load(&teller->ended) == 0)
        serve_stream_wake(&teller->stream);
    pthread_mutex_unlock(&teller->lock);
}

static void wait_ended(struct teller *teller)
{
    for (int i = 0; atomic_load(&teller->ended) == 0; i++) {
        if (i > 3000)
            fail_msg("the stream has not ended");
        poll(NULL, 0, 20);
    }
}

static void close_teller(struct teller *teller, struct talk *talk)
{
    talk_close(talk);
    assert_int_equal(atomic_load(&teller->ended), 1);
    pthread_mutex_destroy(&teller->lock);
}

static int begin(const struct talk *talk)
{
    int fd = talk_connect(talk);

    talk_get(fd, "/stream");
    return fd;
}

static void test_events(void **state)
{
    struct teller teller = {.last = 1};
    struct talk talk = {0};
    const char *head;
    int fd;

    (void)state;
    open_teller(&teller, &talk, (struct server_options){0});
    fd = begin(&talk);
    head = talk_read(fd, "data: 1\n\n");
    check_contains(head, "200 OK");
    check_contains(head, "Content-Type: text/event-stream\r\n");
    check_contains(head, "Cache-Control: no-cache\r\n");
    let_tell(&teller, 2, false);
    check_contains(talk_read(fd, "data: 3\n\n"), "data: 2\n\n");
    let_tell(&teller, 0, true);
    talk_read(fd, "0\r\n\r\n");
    wait_ended(&teller);
    assert_true(teller.least >= 64);
    /* The connection goes on. */
    talk_get(fd, "/a");
    talk_read(fd, whole);
    close(fd);
    close_teller(&teller, &talk);
}

static void test_heartbeat(void **state)
{
    struct teller teller = {.stream.heartbeat_s = 0.1};
    struct server_options options = {.request_timeout_s = 3};
    struct talk talk = {0};
    int fd;

    (void)state;
    open_teller(&teller, &talk, options);
    fd = begin(&talk);
    /* It lasts longer than a client may take for anything else. */
    for (int i = 0; i < 35; i++)
        talk_read(fd, ":\n\n\r\n");
    close(fd);
    wait_ended(&teller);
    close_teller(&teller, &talk);
}

/* A silent stream asks for nothing until it is woken. */
static void test_sleeps(void **state)
{
    struct teller teller = {.last = 1};
    struct talk talk = {0};
    int fd, pulls;

    (void)state;
    open_teller(&teller, &talk, (struct server_options){0});
    fd = begin(&talk);
    talk_read(fd, "data: 1\n\n");
    poll(NULL, 0, 300);
    pulls = atomic_load(&teller.pulls);
    poll(NULL, 0, 300);
    assert_int_equal(atomic_load(&teller.pulls), pulls);
    close(fd);
    wait_ended(&teller);
    close_teller(&teller, &talk);
}

static void *let_tell_many(void *state)
{
    for (int i = 0; i < 2000; i++)
        let_tell(state, 1, false);
    return NULL;
}

/* Of many wakes from many threads none is lost, and none disturbs an event. */
static void test_wakes(void **state)
{
    struct teller teller = {0};
    struct talk talk = {0};
    pthread_t threads[4];
    const char *events;
    char event[32];
    int fd;

    (void)state;
    open_teller(&teller, &talk, (struct server_options){0});
    fd = begin(&talk);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, let_tell_many, &teller), 0);
    events = talk_read(fd, "data: 8000\n\n");
    for (long told = 1; told <= 8000; told++) {
        snprintf(event, sizeof event, "data: %ld\n\n", told);
        events = strstr(events, event);
        if (events == NULL)
            fail_msg("event %ld is not in its place", told);
    }
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_lock(&teller.lock);
    assert_int_equal(teller.told, 8000);
    pthread_mutex_unlock(&teller.lock);
    let_tell(&teller, 1, false);
    talk_read(fd, "data: 8001\n\n");
    close(fd);
    wait_ended(&teller);
    close_teller(&teller, &talk);
}

/* A client that takes nothing delays nobody, and is closed after a while. */
static void test_slow_reader(void **state)
{
    struct teller teller = {.floods = true};
    struct server_options options = {.request_timeout_s = 2};
    struct talk talk = {0};
    int fd, pulls;

    (void)state;
    open_teller(&teller, &talk, options);
    fd = begin(&talk);
    talk_read(fd, "200 OK");
    for (int i = 0; i < 10; i++)
        talk_ask(&talk, "/a", whole);
    do {
        pulls = atomic_load(&teller.pulls);
        poll(NULL, 0, 200);
    } while (pulls != atomic_load(&teller.pulls));
    talk_ask(&talk, "/a", whole);
    wait_ended(&teller);
    assert_true(talk_end(fd) > 0);
    close_teller(&teller, &talk);
}

/* A client that goes is noticed although the stream has nothing to say. */
static void check_client_goes(const char *const *listen)
{
    struct teller teller = {.last = 1};
    struct talk talk = {0};
    int fd;

    open_teller(&teller, &talk, (struct server_options){.listen = listen, .listen_count = 1});
    fd = begin(&talk);
    talk_read(fd, "data: 1\n\n");
    close(fd);
    wait_ended(&teller);
    talk_wait_closed(&talk, 1);
    close_teller(&teller, &talk);
}

static void test_client_goes(void **state)
{
    static const char *const tcp[] = {"127.0.0.1:0"};

    (void)state;
    check_client_goes(NULL);
    check_client_goes(tcp);
}

static void test_server_ends(void **state)
{
    struct teller teller = {.last = 1};
    struct talk talk = {0};
    int fd;

    (void)state;
    open_teller(&teller, &talk, (struct server_options){0});
    fd = begin(&talk);
    talk_read(fd, "data: 1\n\n");
    talk_quiesce(&talk);
    talk_read(fd, "0\r\n\r\n");
    wait_ended(&teller);
    close(fd);
    close_teller(&teller, &talk);
}

/* One that takes nothing does not hold up the end. */
static void test_server_ends_slow_reader(void **state)
{
    struct teller teller = {.floods = true};
    struct server_options options = {.request_timeout_s = 600};
    struct talk talk = {0};
    int fd;

    (void)state;
    open_teller(&teller, &talk, options);
    fd = begin(&talk);
    talk_read(fd, "200 OK");
    close_teller(&teller, &talk);
    talk_end(fd);
}

static void test_head(void **state)
{
    struct teller teller = {.last = 1};
    struct talk talk = {0};
    int fd;

    (void)state;
    open_teller(&teller, &talk, (struct server_options){0});
    fd = talk_connect(&talk);
    assert_int_equal(talk_send(fd, "HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL, 0), 0);
    check_contains(talk_read(fd, "\r\n\r\n"), "text/event-stream");
    wait_ended(&teller);
    assert_int_equal(atomic_load(&teller.pulls), 0);
    close(fd);
    close_teller(&teller, &talk);
}

/* Old clients get the same until the connection ends. */
static void test_old_client(void **state)
{
    struct teller teller = {.last = 3, .ends = true};
    struct talk talk = {0};
    int fd;

    (void)state;
    open_teller(&teller, &talk, (struct server_options){0});
    fd = talk_connect(&talk);
    assert_int_equal(talk_send(fd, "GET /stream HTTP/1.0\r\n\r\n", NULL, 0), 0);
    check_contains(talk_read(fd, "data: 3\n\n"), "data: 1\n\ndata: 2\n\n");
    assert_int_equal(talk_end(fd), 0);
    close_teller(&teller, &talk);
}

static void test_last_event(void **state)
{
    static const char *const sent[] = {"41", "\xff\xfe"};
    static const char *const seen[] = {"\"last\":\"41\"", "\"last\":null"};
    struct talk talk = {0};

    (void)state;
    talk_open(&talk, (struct server_options){0}, false);
    check_contains(talk_ask(&talk, "/a", whole), "\"last\":null");
    for (size_t i = 0; i < COUNT(sent); i++) {
        char text[128];
        int fd = talk_connect(&talk);

        snprintf(text, sizeof text, "GET /a HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: %s\r\n\r\n",
                 sent[i]);
        assert_int_equal(talk_send(fd, text, NULL, 0), 0);
        check_contains(talk_read(fd, whole), seen[i]);
        close(fd);
    }
    talk_close(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),      cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_sleeps),      cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_slow_reader), cmocka_unit_test(test_client_goes),
        cmocka_unit_test(test_server_ends), cmocka_unit_test(test_server_ends_slow_reader),
        cmocka_unit_test(test_head),        cmocka_unit_test(test_old_client),
        cmocka_unit_test(test_last_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
