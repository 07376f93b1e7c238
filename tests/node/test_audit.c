/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: each line is one JSON object, whatever clients call themselves. */
#include "test.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/lease/audit.h"
#include "node/lease/audit_past.h"

enum { THREADS = 4, LINES = 200 };

static char path[64], aside[80];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/flyball-test-audit-%d", (int)getpid());
    snprintf(aside, sizeof aside, "%s.1", path);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(aside);
    return 0;
}

/* Reads the n-th line as JSON; NULL without. */
static json_t *line_of(const char *file_path, int number)
{
    FILE *file = fopen(file_path, "r");
    char text[8192];
    bool is_there = true;
    json_t *json = NULL;

    assert_non_null(file);
    while (number-- >= 0)
        is_there = fgets(text, sizeof text, file) != NULL;
    if (is_there) {
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
    }
    fclose(file);
    return json;
}

static const char *text_in(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static void test_line(void **state)
{
    const struct lease_holder holder = {
        .pid = 4711, .uid = 1000, .program = "evil\n\"\x1b[2J\xff\xe2\x80\xae"};
    struct audit_event event = {.what = AUDIT_TURN,
                                .holder = &holder,
                                .lease = "5f0c",
                                .gpu = "GPU-1",
                                .quantity = "power_limit_mw",
                                .from = "400000",
                                .to = "MAX_Q"};
    struct audit *audit;
    struct stat status;
    json_t *json;

    (void)state;
    assert_int_equal(audit_open(path, false, &audit, NULL), 0);
    audit_write(audit, &event, NULL);
    audit_write(audit, &(struct audit_event){.what = AUDIT_GRANT, .code = FLY_EPERM, .why = "no"}, NULL);
    assert_int_equal(audit_lost(audit), 0);
    audit_close(audit);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    json = line_of(path, 0);
    assert_string_equal(text_in(json, "schema"), "flyball-audit/1");
    assert_string_equal(text_in(json, "what"), "turn");
    assert_string_equal(text_in(json, "outcome"), "done");
    assert_int_equal(json_integer_value(json_object_get(json, "uid")), 1000);
    assert_int_equal(json_integer_value(json_object_get(json, "pid")), 4711);
    assert_int_equal(json_integer_value(json_object_get(json, "from")), 400000);
    assert_string_equal(text_in(json, "to"), "MAX_Q");
    check_contains(text_in(json, "program"), "evil\n\"\x1b[2J");
    assert_int_equal(strlen(text_in(json, "date")), 20);
    json_decref(json);
    json = line_of(path, 1);
    assert_string_equal(text_in(json, "outcome"), "refused");
    assert_string_equal(text_in(json, "why"), "no");
    assert_null(json_object_get(json, "uid"));
    assert_null(json_object_get(json, "from"));
    json_decref(json);
    assert_null(line_of(path, 2));
}

/* No byte of a line is a command for a terminal. */
static void test_harmless(void **state)
{
    const struct lease_holder holder = {.program = "\x1b]0;x\x07\xc2\x9b"};
    struct audit *audit;
    FILE *file;
    int byte;

    (void)state;
    assert_int_equal(audit_open(path, false, &audit, NULL), 0);
    audit_write(audit, &(struct audit_event){.what = AUDIT_END, .holder = &holder}, NULL);
    audit_close(audit);
    file = fopen(path, "r");
    assert_non_null(file);
    while ((byte = fgetc(file)) != EOF)
        assert_true(byte == '\n' || (byte >= ' ' && byte < 0x7F));
    fclose(file);
}

static void test_reopen(void **state)
{
    const struct audit_event event = {.what = AUDIT_RENEW};
    struct audit *audit;
    struct fly_error error;
    json_t *json;

    (void)state;
    assert_int_equal(audit_open(path, false, &audit, NULL), 0);
    audit_write(audit, &event, NULL);
    assert_int_equal(rename(path, aside), 0);
    audit_write(audit, &event, NULL);
    assert_int_equal(audit_reopen(audit, NULL), 0);
    audit_write(audit, &event, NULL);
    audit_close(audit);
    json = line_of(aside, 1);
    assert_non_null(json);
    json_decref(json);
    json = line_of(path, 0);
    assert_non_null(json);
    json_decref(json);
    assert_null(line_of(path, 1));
    assert_int_equal(audit_open("/proc/nowhere/at/all", false, &audit, &error), FLY_EWRITE);
    assert_int_equal(audit_open(NULL, false, &audit, NULL), 0);
    assert_null(audit);
    audit_write(audit, &event, NULL);
    audit_close(audit);
}

/* Before the first start nobody may have made its directory, and who clears up may remove it. */
static void test_missing_directory(void **state)
{
    char top[] = "/tmp/flyball-test-audit-XXXXXX", below[64], log[96];
    struct stat status;
    struct audit *audit;

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(below, sizeof below, "%s/log", top);
    snprintf(log, sizeof log, "%s/audit.jsonl", below);
    assert_int_equal(audit_open(log, false, &audit, NULL), 0);
    assert_int_equal(stat(below, &status), 0);
    assert_int_equal(status.st_mode & S_IRWXU, S_IRWXU);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(unlink(log), 0);
        assert_int_equal(rmdir(below), 0);
        if (i == 0)
            assert_int_equal(audit_reopen(audit, NULL), 0);
    }
    audit_close(audit);
    rmdir(top);
}

static void *write_many(void *audit)
{
    for (int i = 0; i < LINES; i++)
        audit_write(audit, &(struct audit_event){.what = AUDIT_TURN, .gpu = "GPU-1", .to = "1"}, NULL);
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    struct audit *audit;
    json_t *json;

    (void)state;
    assert_int_equal(audit_open(path, false, &audit, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, audit), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(audit_reopen(audit, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(audit_lost(audit), 0);
    audit_close(audit);
    json = line_of(path, THREADS * LINES - 1);
    assert_non_null(json);
    json_decref(json);
    assert_null(line_of(path, THREADS * LINES));
}

/* What a daemon that died left: leases without an end, by whom, and nothing of lines that were refused or
 * torn. */
static void test_lost(void **state)
{
    static const struct {
        const char *text;
        const char *lost[3]; /* ends with NULL */
    } cases[] = {
        {"", {NULL}},
        {"{\"what\":\"grant\",\"lease\":\"a\"}\n", {"a", NULL}},
        {"{\"what\":\"grant\",\"lease\":\"a\"}\n{\"what\":\"end\",\"lease\":\"a\"}\n", {NULL}},
        {"{\"what\":\"turn\",\"lease\":\"a\"}\n{\"what\":\"grant\",\"lease\":\"b\"}\n"
         "{\"what\":\"end\",\"lease\":\"a\"}\n{\"what\":\"grant\",\"lease\":\"c\"}\n",
         {"b", "c", NULL}},
        {"{\"what\":\"grant\",\"lease\":\"a\"}\n{\"what\":\"end\",\"lease\":\"a\"}\n"
         "{\"what\":\"back\",\"lease\":\"a\"}\n{\"what\":\"change\",\"outcome\":\"failed\",\"lease\":\"a\"}"
         "\n",
         {NULL}},
        {"{\"what\":\"grant\",\"outcome\":\"unsure\",\"lease\":\"a\"}\n"
         "{\"what\":\"grant\",\"outcome\":\"done\",\"lease\":\"b\"}\n",
         {"b", NULL}},
        {"{\"what\":\"grant\",\"outcome\":\"refused\",\"why\":\"no\"}\nnonsense\n", {NULL}},
        {"{\"what\":\"end\",\"lease\":\"x\"}\n{\"what\":\"grant\",\"lease\":\"a\"}", {NULL}},
        {"ase\":\"cut\"}\n{\"what\":\"grant\",\"lease\":\"a\"}\n{\"what\":\"renew\",\"lease\":\"a\"}\n",
         {"a", NULL}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct audit_lost lost[4];
        size_t count = audit_past_parse(cases[i].text, strlen(cases[i].text), lost, 4), wanted = 0;

        while (cases[i].lost[wanted] != NULL)
            wanted++;
        assert_int_equal(count, wanted);
        for (size_t k = 0; k < count; k++)
            assert_string_equal(lost[k].lease, cases[i].lost[k]);
    }
}

/* The log that this program writes is read back, with its holders; a link in its place is not. */
static void test_lost_of_a_file(void **state)
{
    const struct lease_holder holder = {.pid = 4711, .uid = 1000, .program = "p", .token = "t"};
    struct audit_lost lost[2];
    struct audit *audit;

    (void)state;
    assert_int_equal(audit_past_lost(path, lost, 2), 0);
    assert_int_equal(audit_open(path, false, &audit, NULL), 0);
    for (int i = 0; i < 3; i++) {
        const char *ids[] = {"one", "two", "one"};

        audit_write(audit,
                    &(struct audit_event){
                        .what = i < 2 ? AUDIT_GRANT : AUDIT_END, .holder = &holder, .lease = ids[i]},
                    NULL);
    }
    audit_close(audit);
    assert_int_equal(audit_past_lost(path, lost, 2), 1);
    assert_string_equal(lost[0].lease, "two");
    assert_int_equal(lost[0].holder.pid, 4711);
    assert_int_equal(lost[0].holder.uid, 1000);
    assert_string_equal(lost[0].holder.program, "p");
    assert_string_equal(lost[0].holder.token, "t");
    assert_int_equal(symlink(path, aside), 0);
    assert_int_equal(audit_past_lost(aside, lost, 2), 0);
}

static long size_of(const char *file_path)
{
    struct stat status;

    assert_int_equal(stat(file_path, &status), 0);
    return (long)status.st_size;
}

static void allow(long bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < 0 ? limit.rlim_max : (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Whatever room there is: a line is there whole or not at all, and later one says how many are missing. */
static void test_no_room(void **state)
{
    const struct audit_event event = {.what = AUDIT_TURN, .gpu = "GPU-1", .to = "1"};
    struct fly_error error;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    for (long room = 0; room < 300; room += 7) {
        struct audit *audit;
        json_t *json;
        long before;

        unlink(path);
        assert_int_equal(audit_open(path, room % 2 == 0, &audit, NULL), 0);
        assert_int_equal(audit_write(audit, &event, NULL), 0);
        before = size_of(path);
        assert_int_equal(audit_look(audit, NULL), 0);
        allow(before + room % before);
        for (int i = 0; i < 3; i++)
            assert_int_equal(audit_write(audit, &event, &error), FLY_EWRITE);
        check_contains(error.text, strerror(EFBIG));
        assert_int_equal(size_of(path), before);
        assert_int_equal(audit_look(audit, NULL), FLY_EWRITE);
        allow(-1);
        assert_int_equal(audit_look(audit, NULL), 0);
        assert_int_equal(audit_write(audit, &event, NULL), 0);
        assert_int_equal(audit_lost(audit), 3);
        audit_close(audit);
        json = line_of(path, 1);
        assert_string_equal(text_in(json, "what"), "missing");
        assert_int_equal(json_integer_value(json_object_get(json, "count")), 3);
        assert_string_equal(text_in(json, "why"), strerror(EFBIG));
        json_decref(json);
        json_decref(line_of(path, 2));
        assert_null(line_of(path, 3));
    }
}

/* A line that somebody died in is ended, and a file that was removed is made again. */
static void test_torn_and_removed(void **state)
{
    const struct audit_event event = {.what = AUDIT_TURN};
    FILE *file = fopen(path, "w");
    struct audit *audit;
    json_t *json;
    char text[64];

    (void)state;
    assert_non_null(file);
    fputs("{\"what\":\"tur", file);
    fclose(file);
    assert_int_equal(audit_open(path, false, &audit, NULL), 0);
    assert_int_equal(audit_write(audit, &event, NULL), 0);
    file = fopen(path, "r");
    assert_string_equal(fgets(text, sizeof text, file), "{\"what\":\"tur\n");
    fclose(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(audit_write(audit, &event, NULL), 0);
    json_decref(line_of(path, 0));
    assert_null(line_of(path, 1));
    /* Where that cannot be done, its lines are missing. */
    assert_int_equal(unlink(path) | mkdir(path, 0700), 0);
    assert_int_equal(audit_write(audit, &event, NULL), FLY_EWRITE);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(audit_look(audit, NULL), FLY_EWRITE);
    assert_int_equal(audit_look(audit, NULL), 0);
    json = line_of(path, 0);
    assert_string_equal(text_in(json, "what"), "missing");
    json_decref(json);
    audit_close(audit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_harmless, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reopen, set_up, tear_down),
        cmocka_unit_test(test_missing_directory),
        cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_torn_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
        cmocka_unit_test(test_lost),
        cmocka_unit_test_setup_teardown(test_lost_of_a_file, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
