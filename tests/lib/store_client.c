/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store by hand, for tests that start, stop and kill what is around it: reads a
 * command per line and answers each with a line, "ok ..." or "FLY_E... text".
 *
 *     open ADDRESS WAIT_S    begin JOB           append KEY BODY    commit    rollback
 *     add JOB KEY            (one change with one event: its number)
 *     group JOB KEY          (the same as the only change of a group)
 *     count JOB              find JOB KEY        (its number, or none)
 *     many JOB PREFIX N      (N changes; a line "PREFIX/i NUMBER" once each is acknowledged)
 *     close
 *     leave ADDRESS MS       (a thread opens and closes a store over and over; ends MS later, with it)
 *     fork ADDRESS LOG       (a thread opens and closes a store; forks once a line is in LOG: what opening
 * the store came to in the child; "free": the thread has ended before)
 *
 * Words have no blanks in them.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "store/store.h"

enum { LINE_MAX_BYTES = 5000, WORDS_MAX = 4 };

static struct store *store;
static struct store_change *change;
static struct fly_error error;
static char answer[64];

static int do_open(char **words)
{
    const struct store_options options = {.wait_s = strtod(words[1], NULL)};

    return store_open(words[0], &options, &store, &error);
}

static int do_begin(char **words)
{
    return store_change_begin(store, words[0], STORE_MAKE_JOB, &change, &error);
}

static int do_append(char **words)
{
    const struct store_event event = {.kind = "made", .trial = 1, .key = words[0], .body = words[1]};
    uint64_t number = 0;
    int code = store_change_append(change, &event, &number, &error);

    snprintf(answer, sizeof answer, "%" PRIu64, number);
    return code;
}

static int do_commit(char **words)
{
    (void)words;
    return store_change_commit(change, &error);
}

static int do_rollback(char **words)
{
    (void)words;
    store_change_rollback(change);
    return 0;
}

static int do_add(char **words)
{
    char body[] = "{}", *event[] = {words[1], body};
    int code = do_begin(words);

    if (code < 0)
        return code;
    code = do_append(event);
    if (code < 0) {
        store_change_rollback(change);
        return code;
    }
    return do_commit(words);
}

static int do_group(char **words)
{
    const char *const jobs[] = {words[0]};
    int code = store_group_begin(store, jobs, 1, &error), added;

    if (code < 0)
        return code;
    added = do_add(words);
    code = store_group_end(store, &error);
    return code < 0 ? code : added;
}

static int take_count(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)state, (void)out_error;
    snprintf(answer, sizeof answer, "%" PRIu64, job->events);
    return 0;
}

static int do_count(char **words)
{
    return store_find_job(store, words[0], take_count, NULL, &error);
}

static int take_number(void *state, const struct store_event *event, struct fly_error *out_error)
{
    (void)state, (void)out_error;
    snprintf(answer, sizeof answer, "%" PRIu64, event->number);
    return 0;
}

static int do_find(char **words)
{
    const struct store_query query = {.key = words[1]};

    snprintf(answer, sizeof answer, "none");
    return store_read(store, words[0], &query, take_number, NULL, &error);
}

static int do_many(char **words)
{
    int count = (int)strtol(words[2], NULL, 10), code = 0;
    char key[200];

    for (int i = 0; i < count && code == 0; i++) {
        char *add[] = {words[0], key};

        snprintf(key, sizeof key, "%s/%d", words[1], i);
        code = do_add(add);
        if (code == 0) {
            printf("%s %s\n", key, answer);
            fflush(stdout);
        }
    }
    answer[0] = '\0';
    return code;
}

static int do_close(char **words)
{
    (void)words;
    store_close(store);
    store = NULL;
    return 0;
}

static void *open_and_close(void *address)
{
    const struct store_options options = {.wait_s = 20};
    struct store *opened;

    while (store_open(address, &options, &opened, NULL) == 0)
        store_close(opened);
    return NULL;
}

static int do_leave(char **words)
{
    static char address[LINE_MAX_BYTES];
    pthread_t thread;

    snprintf(address, sizeof address, "%s", words[0]);
    if (pthread_create(&thread, NULL, open_and_close, address) != 0)
        return error_set(&error, FLY_ENOMEM, "no thread");
    usleep((useconds_t)strtoul(words[1], NULL, 10) * 1000);
    exit(0);
}

static atomic_bool is_done;

static void *open_and_close_once(void *address)
{
    const struct store_options options = {.wait_s = 20};
    struct store *opened;

    if (store_open(address, &options, &opened, NULL) == 0)
        store_close(opened);
    atomic_store(&is_done, true);
    return NULL;
}

/* In the child: its exit status is the code, positive. */
_Noreturn static void open_in_child(const char *address)
{
    const struct store_options options = {.wait_s = 0.01};
    int code;

    alarm(60);
    code = store_open(address, &options, &store, &error);
    if (code == 0)
        store_close(store);
    _exit(-code);
}

static int do_fork(char **words)
{
    static char address[LINE_MAX_BYTES];
    struct stat status;
    pthread_t thread;
    pid_t child;
    int end = 0;

    snprintf(address, sizeof address, "%s", words[0]);
    if (pthread_create(&thread, NULL, open_and_close_once, address) != 0)
        return error_set(&error, FLY_ENOMEM, "no thread");
    while (!atomic_load(&is_done) && (stat(words[1], &status) < 0 || status.st_size == 0))
        usleep(1000);
    snprintf(answer, sizeof answer, "free");
    if (atomic_load(&is_done))
        return 0;
    child = fork();
    if (child == 0)
        open_in_child(address);
    waitpid(child, &end, 0);
    snprintf(answer, sizeof answer, "%s",
             WIFSIGNALED(end)        ? "hung"
             : WEXITSTATUS(end) == 0 ? "opened"
                                     : fly_error_name(-WEXITSTATUS(end)));
    return 0;
}

static const struct command {
    const char *name;
    int words;
    int (*run)(char **words);
} commands[] = {
    {"open", 2, do_open},         {"begin", 1, do_begin}, {"append", 2, do_append}, {"commit", 0, do_commit},
    {"rollback", 0, do_rollback}, {"add", 2, do_add},     {"count", 1, do_count},   {"find", 2, do_find},
    {"many", 3, do_many},         {"close", 0, do_close}, {"group", 2, do_group},   {"leave", 2, do_leave},
    {"fork", 2, do_fork},
};

static void run_line(char *line)
{
    char *words[WORDS_MAX + 1] = {0}, *rest = NULL;
    int count = 0, code = FLY_EUSAGE;

    for (char *word = strtok_r(line, " \n", &rest); word != NULL && count <= WORDS_MAX;
         word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    answer[0] = '\0';
    snprintf(error.text, sizeof error.text, "no such command");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && count > 0; i++) {
        if (strcmp(commands[i].name, words[0]) == 0 && commands[i].words == count - 1)
            code = commands[i].run(words + 1);
    }
    if (code == 0)
        printf("ok %s\n", answer);
    else
        printf("%s %s\n", fly_error_name(code), error.text);
    fflush(stdout);
}

int main(void)
{
    char line[LINE_MAX_BYTES];

    while (fgets(line, sizeof line, stdin) != NULL)
        run_line(line);
    store_close(store);
    return 0;
}
