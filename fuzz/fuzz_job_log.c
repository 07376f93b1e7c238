/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's log, as exported: any lines are either refused with a reason, or fold to a
 * state that goes through a snapshot unchanged; and what they decided can be decided again.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "job/decide/decided_again.h"
#include "job/decide/state.h"
#include "job/decide/state_fold.h"
#include "job/decide/state_snapshot.h"
#include "shapes/members.h"

enum { SNAPSHOT_MAX = 64 << 20, LINES_MAX = 200 };

/* Folds one line; what folding it returned, or an error for what is no event at all. */
static int fold_line(struct job_state *state, const char *line, size_t length)
{
    json_t *json = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    struct members members = members_of(json);
    struct store_event event = {.number = state->number + 1,
                                .time_us = members_time_us(&members, "time_us"),
                                .kind = members_text(&members, "kind", STORE_KIND_MAX),
                                .trial = members_u64(&members, "trial", 0, INT64_MAX),
                                .key = members_text(&members, "key", STORE_KEY_MAX)};
    char *body = json_dumps(json_object_get(json, "body"), JSON_COMPACT);
    struct fly_error error = {.code = 0};
    int code = FLY_EDATA;

    event.body = body;
    if (members.wrong == NULL && body != NULL) {
        code = job_state_fold(state, &event, NULL, &error);
        FUZZ_CHECK(code >= 0 || (error.code == code && error.text[0] != '\0'));
    }
    free(body);
    json_decref(json);
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

/* Whatever the lines decided, deciding it again ends, and a refusal has its reason. */
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
