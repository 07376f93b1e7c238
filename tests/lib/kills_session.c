/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training with a session, for tests that kill it and what its log lies in:
 *
 *     kills_session LIST JOB NUMBER SEED BETA MAX_EPOCHS CONTROL_EVERY [deliver]
 *
 * LIST gets a line {"report": {"metric": X}} before each report, and after it
 *
 *     {"answer": {"word": WORD, "waiting": N, "process": PID}}
 *
 * each on disk before the program goes on. N letters to the log, the newest, were neither delivered nor on
 * the spool then: they are lost if the program is killed before that changes. No two metrics of any session
 * are the same: NUMBER is the session's, which is also its run's. With `deliver` it trains nothing and hands
 * over what others left. Exit status 0 once its submission is over.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <flyball/flyball.h>

#include "train/session/session_private.h"

enum { EPOCH_NS = 4000000, LINES_A_SESSION = 10000, TRIES = 4 };

static const uint32_t batch_sizes[] = {8, 16, 32, 64, 128};
static const uint32_t needed[] = {8, 6, 5, 4, 0}; /* 0: it does not fit into memory */

struct list {
    int file;
    unsigned long lines;
};

static void fail(const char *what)
{
    fprintf(stderr, "kills_session: %s\n", what);
    exit(1);
}

static void list_open(struct list *list, const char *path)
{
    char byte;

    list->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    list->lines = 0;
    if (list->file < 0)
        fail("the list cannot be opened");
    while (read(list->file, &byte, 1) == 1)
        list->lines += byte == '\n';
}

/* In one write, so that a kill leaves whole lines. */
static void list_add(struct list *list, const char *line)
{
    size_t length = strlen(line);

    if (write(list->file, line, length) != (ssize_t)length || fsync(list->file) < 0)
        fail("the list cannot be written");
    list->lines++;
}

static enum fly_answer report(struct fly_session *session, struct list *list, double metric)
{
    enum fly_answer answer;
    char line[128];

    snprintf(line, sizeof line, "{\"report\": {\"metric\": %.17g}}\n", metric);
    list_add(list, line);
    answer = fly_session_report(session, metric);
    snprintf(line, sizeof line,
             "{\"answer\": {\"word\": \"%s\", \"waiting\": %" PRIu64 ", \"process\": %d}}\n",
             fly_answer_name(answer), post_look(session->post).waiting, (int)getpid());
    list_add(list, line);
    return answer;
}

static struct fly_session_status status_of(const struct fly_session *session)
{
    struct fly_session_status status = {.size = sizeof status};

    if (fly_session_status(session, &status) < 0)
        fail("no status");
    return status;
}

/* One training. */
static void train(struct fly_session *session, struct list *list, double first_metric)
{
    const struct timespec epoch_time = {.tv_nsec = EPOCH_NS};
    uint32_t batch_size = fly_session_batch_size(session), epoch = status_of(session).epochs_done;
    size_t size = 0;
    enum fly_answer answer = FLY_GO_ON;

    while (batch_sizes[size] != batch_size)
        size++;
    fly_session_resumed(session, epoch);
    while (answer == FLY_GO_ON) {
        fly_session_epoch_begin(session);
        fly_session_step_begin(session);
        if (needed[size] == 0) {
            fly_session_out_of_memory(session);
            return;
        }
        nanosleep(&epoch_time, NULL);
        fly_session_evaluation_begin(session);
        fly_session_evaluation_end(session);
        epoch++;
        answer = report(session, list,
                        (epoch >= needed[size] ? 0.91 : 0.3) + first_metric + (double)list->lines * 1e-9);
    }
}

int main(int count, char **words)
{
    bool deliver = count == 9 && strcmp(words[8], "deliver") == 0;
    struct fly_session_options options = {
        .size = sizeof options,
        .batch_sizes = batch_sizes,
        .batch_count = sizeof batch_sizes / sizeof batch_sizes[0],
        .default_batch_size = 32,
        .objective = {.kind = FLY_OBJECTIVE_COST, .eta = 0.5},
        .target = FLY_TARGET_AT_LEAST,
        .target_metric = 0.9,
        .tries = TRIES,
        .wait_s = 0.5,
        .leave_limits = true,
    };
    struct fly_session *session;
    struct fly_error error;
    struct list list;
    char run[64];

    if (count != 8 && !deliver)
        return 2;
    list_open(&list, words[1]);
    snprintf(run, sizeof run, "session-%s", words[3]);
    options.job_name = words[2];
    options.run = run;
    options.seed = (uint32_t)strtoul(words[4], NULL, 10);
    options.beta = strtod(words[5], NULL);
    options.max_epochs = (uint32_t)strtoul(words[6], NULL, 10);
    options.control_every = (uint32_t)strtoul(words[7], NULL, 10);
    if (fly_session_open(&options, &session, &error) < 0)
        fail(error.text);
    if (!deliver) {
        do
            train(session, &list, strtod(words[3], NULL) * LINES_A_SESSION * 1e-9);
        while (fly_session_try_again(session));
    } else if (status_of(session).text[0] != '\0') {
        fail(status_of(session).text);
    }
    fly_session_close(session, deliver ? FLY_SESSION_INTERRUPTED : FLY_SESSION_FINISHED);
    close(list.file);
    return 0;
}
