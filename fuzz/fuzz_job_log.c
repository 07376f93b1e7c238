/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's exported log: any lines are either refused with a reason, or fold to a state that a snapshot does
 * not change; and their decisions can be decided again.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "job/core/job_record.h"
#include "job/decide/decided_again.h"
#include "job/decide/state.h"
#include "job/decide/state_fold.h"
#include "job/decide/state_snapshot.h"

enum { SNAPSHOT_MAX = 64 << 20, LINES_MAX = 200 };

/* Folds one line; returns the result of folding, or an error when the line is no event. */
static int fold_line(struct job_state *state, const char *line, size_t length)
{
    struct fly_error error = {.code = 0};
    struct log_line read;
    char *body;
    int code = log_line_read(line, length, state->number + 1, &read, &error);

    if (code < 0) {
        FUZZ_CHECK(error.code != 0 && error.text[0] != '\0');
        return code;
    }
    body = json_dumps(read.body, JSON_COMPACT);
    read.event.body = body;
    code = FLY_EDATA;
    if (body != NULL) {
        code = job_state_fold(state, &read.event, NULL, &error);
        FUZZ_CHECK(code >= 0 || (error.code == code && error.text[0] != '\0'));
    }
    free(body);
    log_line_deinit(&read);
    return code;
}

static void check_snapshot(const struct job_state *state)
{
    struct buffer bytes, again;
    struct job_state loaded;

    buffer_init(&bytes, SNAPSHOT_MAX);
    buffer_init(&again, SNAPSHOT_MAX);
    job_state_save(state, &bytes);
    job_state_init(&loaded);
    if (bytes.error == 0) {
        FUZZ_CHECK(job_state_load(&loaded, bytes.data, bytes.length, NULL, NULL) == 0);
        job_state_save(&loaded, &again);
        FUZZ_CHECK(again.length == bytes.length && memcmp(again.data, bytes.data, bytes.length) == 0);
    }
    job_state_deinit(&loaded);
    buffer_deinit(&again);
    buffer_deinit(&bytes);
}

/* Whatever the lines decided, deciding it again ends, and a refusal has a reason. */
static void check_replay(const char *log, size_t length)
{
    struct fly_error error = {.code = 0};
    struct job_replay_sums sums;
    int code = job_replay(log, length, NULL, NULL, NULL, &sums, &error);

    FUZZ_CHECK(code == 0 || (error.code == code && error.text[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *end = line + size;
    struct job_state state;
    int code = 0;

    job_state_init(&state);
    for (int i = 0; i < LINES_MAX && line < end && code == 0; i++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline != NULL ? newline : end;

        code = fold_line(&state, line, (size_t)(line_end - line));
        line = newline != NULL ? newline + 1 : end;
    }
    if (code == 0 && state.defined)
        check_snapshot(&state);
    job_state_deinit(&state);
    check_replay((const char *)data, size);
    return 0;
}
