/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs by hand, for tests that start, stop and kill what is around them: reads a call per
 * line, a JSON object, and answers each with a line, an object too.
 *
 *     job_by_hand ADDRESS WAIT_S
 *
 *     {"call": "define", "job": J, "seed": N, "control_every": N, "target": true, "beta": X}
 *     {"call": "set", "job": J, "eta": X}
 *     {"call": "propose", "job": J, "request": R, "run": R, "submission": S, "tries": N,
 *      "gpu_model": M, "limits_w": [...]}
 *     {"call": "profile", "job": J, "trial": N, "points": [[limit, power, time], ...],
 *      "partial": true}
 *     {"call": "heartbeat", "job": J, "trial": N, "attempt": N, "energy_j": X, "time_s": X}
 *     {"call": "report", ... "epoch": N, "metric": X or null, "energy_j": X, "time_s": X}
 *     {"call": "end", ... "outcome": WORD, "energy_j": X, "time_s": X, "text": T}
 *     {"call": "import", "job": J, "text": LINES}, {"call": "remove", "job": J}
 *
 * An answer is {"answer": {...}} or {"error": "FLY_E...", "text": T}. The store is opened at the
 * first call, and again at each while it could not be.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"
#include "job/core/definition.h"
#include "job/core/job_words.h"
#include "job/jobs.h"
#include "shapes/shape_rows.h"

enum { LINE_BYTES = 1 << 20 };

static const uint32_t sizes[] = {8, 16, 32, 64, 128};
static struct jobs jobs;
static struct fly_error error;

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* What any of the calls says. */
struct call {
    const char *call, *job, *request, *run, *submission, *gpu_model, *outcome, *text;
    uint32_t seed, control_every, max_epochs, tries, attempt, epoch;
    uint64_t trial;
    bool target, partial;
    double beta, eta, metric, energy_j, time_s;
    const double *limits_w;
    size_t limit_count;
    const struct fly_power_point *points;
    size_t point_count;
};

static const struct shape_field point_rows[] = {
    {SHAPE_AT(fly_power_point, limit_w), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(fly_power_point, power_w), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(fly_power_point, time_s), SHAPE_IS_NUMBER(SHAPE_ANY)},
};
static const struct shape shape_triple = {SHAPE_OF(fly_power_point, point_rows), .as_list = true};

#define OR_NONE .need = SHAPE_OPTIONAL, .null = SHAPE_AS_MISSING
#define TEXT(member)                                               \
    {                                                              \
        SHAPE_AT(call, member), SHAPE_IS_TEXT(LINE_BYTES), OR_NONE \
    }
#define COUNT_OF(member)                                             \
    {                                                                \
        SHAPE_AT(call, member), SHAPE_IS_U32(0, UINT32_MAX), OR_NONE \
    }
#define TRUTH(member)                                  \
    {                                                  \
        SHAPE_AT(call, member), SHAPE_IS_BOOL, OR_NONE \
    }
#define NUMBER(member)                                                                                    \
    {                                                                                                     \
        SHAPE_AT(call, member), SHAPE_IS_NUMBER(SHAPE_ANY), .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN \
    }
static const struct shape_field call_rows[] = {
    TEXT(call),
    TEXT(job),
    TEXT(request),
    TEXT(run),
    TEXT(submission),
    TEXT(gpu_model),
    TEXT(outcome),
    TEXT(text),
    COUNT_OF(seed),
    COUNT_OF(control_every),
    COUNT_OF(max_epochs),
    COUNT_OF(tries),
    COUNT_OF(attempt),
    COUNT_OF(epoch),
    {SHAPE_AT(call, trial), SHAPE_IS_U64(0, INT64_MAX), OR_NONE},
    TRUTH(target),
    TRUTH(partial),
    NUMBER(beta),
    NUMBER(eta),
    NUMBER(metric),
    NUMBER(energy_j),
    NUMBER(time_s),
    {SHAPE_AT(call, limits_w), SHAPE_IS_NUMBERS(SHAPE_ANY, JOB_LIMITS_MAX, call, limit_count), OR_NONE},
    {SHAPE_AT(call, points), SHAPE_IS_STRUCTS(&shape_triple, JOB_LIMITS_MAX, call, point_count), OR_NONE},
};
static const struct shape shape_call = {SHAPE_OF(call, call_rows)};

static int do_define(const struct call *call, json_t **out_answer)
{
    struct fly_job_definition definition = job_definition_default;
    struct job_registered registered;
    int code;

    definition.name = call->job;
    definition.batch_sizes = sizes;
    definition.batch_count = sizeof sizes / sizeof sizes[0];
    definition.policy = "zeus";
    definition.default_batch_size = 32;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, 0.5, INFINITY};
    definition.beta = call->beta;
    definition.target = call->target ? FLY_TARGET_AT_LEAST : FLY_TARGET_NONE;
    definition.target_metric = definition.target == FLY_TARGET_NONE ? 0.0 : 0.9;
    definition.max_epochs = call->max_epochs;
    definition.control_every = call->control_every;
    definition.seed = call->seed;
    code = jobs.backend->define(jobs.self, &definition, &registered, &error);
    if (code == 0)
        *out_answer = json_pack("{s:b}", "known", (int)registered.known);
    return code;
}

static int do_set(const struct call *call, json_t **out_answer)
{
    const struct job_setting setting = {
        .job = call->job,
        .set_objective = true,
        .objective = {FLY_OBJECTIVE_COST, call->eta, INFINITY},
    };

    *out_answer = json_object();
    return jobs.backend->set(jobs.self, &setting, &error);
}

static int do_propose(const struct call *call, json_t **out_answer)
{
    struct job_proposal proposal;
    struct job_question question = {
        .job = call->job,
        .request = call->request,
        .run = call->run,
        .submission = call->submission,
        .tries = call->tries,
        .hardware = {.gpu_model = call->gpu_model,
                     .gpu_count = 1,
                     .gpu_memory_bytes = UINT64_C(16) << 30,
                     .world_size = 1,
                     .limits_w = call->limits_w,
                     .limit_count = call->limit_count},
    };
    int code;

    code = jobs.backend->propose(jobs.self, &question, &proposal, &error);
    if (code < 0)
        return code;
    *out_answer = json_pack(
        "{s:I, s:I, s:I, s:I, s:b, s:I, s:o, s:b, s:I, s:I, s:s, s:s}", "trial", (json_int_t)proposal.trial,
        "attempt", (json_int_t)proposal.attempt, "recurrence", (json_int_t)proposal.recurrence, "try_number",
        (json_int_t)proposal.try_number, "last_try", (int)proposal.last_try, "batch_size",
        (json_int_t)proposal.batch_size, "limit_w", number_or_null(proposal.limit_w), "wants_profile",
        (int)proposal.wants_profile, "epochs", (json_int_t)proposal.epochs, "epochs_done",
        (json_int_t)proposal.epochs_done, "reason", job_reason_name(proposal.reason), "why", proposal.why);
    return 0;
}

static int do_profile(const struct call *call, json_t **out_answer)
{
    struct job_profile profile = {.job = call->job,
                                  .trial = call->trial,
                                  .points = call->points,
                                  .point_count = call->point_count,
                                  .units_per_epoch = 1.0,
                                  .partial = call->partial};
    struct job_choice choice;
    int code = jobs.backend->profile(jobs.self, &profile, &choice, &error);

    if (code == 0)
        *out_answer = json_pack("{s:o, s:I, s:b}", "limit_w", number_or_null(choice.limit_w), "epochs",
                                (json_int_t)choice.epochs, "repeated", (int)choice.repeated);
    return code;
}

static int do_heartbeat(const struct call *call, json_t **out_answer)
{
    const struct job_beat beat = {.job = call->job,
                                  .trial = call->trial,
                                  .attempt = call->attempt,
                                  .energy_j = call->energy_j,
                                  .time_s = call->time_s};

    *out_answer = json_object();
    return jobs.backend->heartbeat(jobs.self, &beat, &error);
}

static int do_report(const struct call *call, json_t **out_answer)
{
    const struct job_epoch epoch = {.job = call->job,
                                    .trial = call->trial,
                                    .attempt = call->attempt,
                                    .epoch = call->epoch,
                                    .metric = call->metric,
                                    .energy_j = call->energy_j,
                                    .time_s = call->time_s};
    struct job_answered answered;
    int code = jobs.backend->report(jobs.self, &epoch, &answered, &error);

    if (code == 0)
        *out_answer = json_pack(
            "{s:s, s:s, s:b, s:b, s:I, s:f, s:f}", "answer", job_answer_words[answered.answer], "stop",
            job_stop_name(answered.stop), "repeated", (int)answered.repeated, "ended", (int)answered.ended,
            "epochs", (json_int_t)answered.epochs, "energy_j", answered.energy_j, "time_s", answered.time_s);
    return code;
}

static int do_end(const struct call *call, json_t **out_answer)
{
    struct job_end end = {.job = call->job,
                          .trial = call->trial,
                          .attempt = call->attempt,
                          .energy_j = call->energy_j,
                          .time_s = call->time_s,
                          .text = call->text};
    struct job_ended ended;
    int code, outcome = word_index(call->outcome, job_outcome_words, TRIAL_OUTCOME_COUNT);

    if (outcome < 0)
        return error_set(&error, FLY_EUSAGE, "no such outcome");
    end.outcome = (enum trial_outcome)outcome;
    code = jobs.backend->end(jobs.self, &end, &ended, &error);
    if (code == 0)
        *out_answer =
            json_pack("{s:s, s:b, s:f, s:f}", "outcome", job_outcome_name(ended.outcome), "repeated",
                      (int)ended.repeated, "energy_j", ended.energy_j, "time_s", ended.time_s);
    return code;
}

static int do_import(const struct call *call, json_t **out_answer)
{
    const char *text = call->text;

    *out_answer = json_object();
    return jobs.backend->import(jobs.self, call->job, text, strlen(text), &error);
}

static int do_remove(const struct call *call, json_t **out_answer)
{
    *out_answer = json_object();
    return jobs.backend->remove(jobs.self, call->job, &error);
}

static const struct {
    const char *name;
    int (*run)(const struct call *call, json_t **out_answer);
} calls[] = {
    {"define", do_define},       {"set", do_set},       {"propose", do_propose}, {"profile", do_profile},
    {"heartbeat", do_heartbeat}, {"report", do_report}, {"end", do_end},         {"import", do_import},
    {"remove", do_remove},
};

static int answer_call(char **words, const struct call *call, json_t **out_answer)
{
    const struct job_options options = {.wait_s = strtod(words[2], NULL)};
    int code = FLY_EUSAGE;

    snprintf(error.text, sizeof error.text, "no such call");
    if (jobs.backend == NULL) {
        code = jobs_open(words[1], &options, &jobs, &error);
        if (code < 0)
            return code;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].name, call->call) == 0)
            code = calls[i].run(call, out_answer);
    }
    return code;
}

int main(int count, char **words)
{
    static char line[LINE_BYTES];

    if (count != 3)
        return 2;
    while (fgets(line, sizeof line, stdin) != NULL) {
        json_t *json, *answer = NULL;
        struct arena arena;
        struct call call;
        char *text;
        int code;

        arena_init(&arena, 4 * LINE_BYTES);
        code = shape_read_text(&shape_call, line, strlen(line), SHAPE_LENIENT, &arena, &call, NULL, &error);
        if (code == 0)
            code = answer_call(words, &call, &answer);

        json = code == 0 ? json_pack("{s:O}", "answer", answer)
                         : json_pack("{s:s, s:s}", "error", fly_error_name(code), "text", error.text);
        text = json_dumps(json, JSON_COMPACT);
        printf("%s\n", text != NULL ? text : "{\"error\": \"FLY_ENOMEM\", \"text\": \"\"}");
        fflush(stdout);
        free(text);
        json_decref(json);
        json_decref(answer);
        arena_deinit(&arena);
    }
    jobs_close(&jobs);
    return 0;
}
