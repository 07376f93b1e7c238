/* SPDX-License-Identifier: Apache-2.0 */
/* A kept call: any bytes are either refused, or are a call that reads the same after it is written again. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "job/core/definition.h"
#include "job/remote/spool.h"

static bool same(const struct spool_entry *a, const struct spool_entry *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case SPOOL_PROFILE:
        return strcmp(a->profile.job, b->profile.job) == 0 && a->profile.trial == b->profile.trial &&
               a->profile.point_count == b->profile.point_count;
    case SPOOL_REPORT:
        return strcmp(a->epoch.job, b->epoch.job) == 0 && a->epoch.epoch == b->epoch.epoch &&
               (a->epoch.metric == b->epoch.metric || (isnan(a->epoch.metric) && isnan(b->epoch.metric)));
    case SPOOL_END:
        return strcmp(a->end.job, b->end.job) == 0 && a->end.outcome == b->end.outcome;
    case SPOOL_RUN:
        return definition_compare(&a->run.definition, a->run.definition.policy, &b->run.definition, NULL) ==
                   0 &&
               strcmp(a->run.question.request, b->run.question.request) == 0 &&
               strcmp(a->run.question.origin.gpus, b->run.question.origin.gpus) == 0 &&
               a->run.question.ran_batch_size == b->run.question.ran_batch_size &&
               a->run.question.hardware.limit_count == b->run.question.hardware.limit_count;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct spool_parsed parsed, again;
    struct fly_error error = {.code = 0};
    struct buffer line;

    if (spool_parse((const char *)data, size, &parsed, &error) < 0) {
        FUZZ_CHECK(error.code == FLY_EDATA);
        return 0;
    }
    buffer_init(&line, 4 * SPOOL_LINE_MAX);
    FUZZ_CHECK(spool_write(&parsed.entry, &line, &error) == 0);
    FUZZ_CHECK(line.length > 0 && strchr(line.data, '\n') == line.data + line.length - 1);
    FUZZ_CHECK(line.length - 1 > SPOOL_LINE_MAX ||
               spool_parse(line.data, line.length - 1, &again, &error) == 0);
    if (line.length - 1 <= SPOOL_LINE_MAX) {
        FUZZ_CHECK(same(&parsed.entry, &again.entry));
        spool_parsed_free(&again);
    }
    spool_parsed_free(&parsed);
    buffer_deinit(&line);
    return 0;
}
