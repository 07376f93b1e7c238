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
#include "job/core/definition.h"
#include "job/jobs.h"
#include "shapes/members.h"

enum { LINE_BYTES = 1 << 20 };

static const uint32_t sizes[] = {8, 16, 32, 64, 128};
static struct jobs jobs;
static struct fly_error error;

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static const char *text_of(struct members *call, const char *name)
{
    return members_has(call, name) ? members_text(call, name, LINE_BYTES) : "";
}

static uint32_t count_of(struct members *call, const char *name)
{
    return members_has(call, name) ? (uint32_t)members_u64(call, name, 0, UINT32_MAX) : 0;
}

static double number_of(struct members *call, const char *name)
{
    return members_has(call, name) ? members_number(call, name) : NAN;
}

static int do_define(struct members *call, json_t **out_answer)
{
    struct job_definition definition = job_definition_default;
    struct job_registered registered;
    int code;

    definition.name = text_of(call, "job");
    definition.batch_sizes = sizes;
    definition.batch_count = sizeof sizes / sizeof sizes[0];
    definition.default_batch_size = 32;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, 0.5, INFINITY};
    definition.beta = number_of(call, "beta");
    definition.target = members_bool(call, "target") ? JOB_AT_LEAST : JOB_NO_TARGET;
    definition.target_metric = definition.target == JOB_NO_TARGET ? 0.0 : 0.9;
    definition.max_epochs = count_of(call, "max_epochs");
    definition.control_every = count_of(call, "control_every");
    definition.seed = count_of(call, "seed");
    code = jobs.backend->define(jobs.self, &definition, &registered, &error);
    if (code == 0)
        *out_answer = json_pack("{s:b}", "known", (int)registered.known);
    return code;
}

static int do_set(struct members *call, json_t **out_answer)
{
    const struct job_setting setting = {
        .job = text_of(call, "job"),
        .set_objective = true,
        .objective = {FLY_OBJECTIVE_COST, number_of(call, "eta"), INFINITY},
    };

    *out_answer = json_object();
    return jobs.backend->set(jobs.self, &setting, &error);
}

static int do_propose(struct members *call, json_t **out_answer)
{
    const json_t *limits = members_array(call, "limits_w", JOB_LIMITS_MAX);
    double limits_w[JOB_LIMITS_MAX];
    struct job_proposal proposal;
    struct job_question question = {
        .job = text_of(call, "job"),
        .request = text_of(call, "request"),
        .run = text_of(call, "run"),
        .submission = text_of(call, "submission"),
        .tries = count_of(call, "tries"),
        .hardware = {.gpu_model = text_of(call, "gpu_model"),
                     .gpu_count = 1,
                     .gpu_memory_bytes = UINT64_C(16) << 30,
                     .world_size = 1,
                     .limits_w = limits_w,
                     .limit_count = json_array_size(limits)},
    };
    int code;

    for (size_t i = 0; i < question.hardware.limit_count; i++)
        limits_w[i] = json_number_value(json_array_get(limits, i));
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

static int do_profile(struct members *call, json_t **out_answer)
{
    const json_t *list = members_array(call, "points", JOB_LIMITS_MAX);
    struct fly_power_point points[JOB_LIMITS_MAX];
    struct job_profile profile = {.job = text_of(call, "job"),
                                  .trial = members_u64(call, "trial", 0, INT64_MAX),
                                  .points = points,
                                  .point_count = json_array_size(list),
                                  .units_per_epoch = 1.0,
                                  .partial = members_has(call, "partial")};
    struct job_choice choice;
    int code;

    for (size_t i = 0; i < profile.point_count; i++) {
        const json_t *point = json_array_get(list, i);

        points[i] = (struct fly_power_point){json_number_value(json_array_get(point, 0)),
                                             json_number_value(json_array_get(point, 1)),
                                             json_number_value(json_array_get(point, 2))};
    }
    code = jobs.backend->profile(jobs.self, &profile, &choice, &error);
    if (code == 0)
        *out_answer = json_pack("{s:o, s:I, s:b}", "limit_w", number_or_null(choice.limit_w), "epochs",
                                (json_int_t)choice.epochs, "repeated", (int)choice.repeated);
    return code;
}

static int do_heartbeat(struct members *call, json_t **out_answer)
{
    const struct job_beat beat = {.job = text_of(call, "job"),
                                  .trial = members_u64(call, "trial", 0, INT64_MAX),
                                  .attempt = count_of(call, "attempt"),
                                  .energy_j = number_of(call, "energy_j"),
                                  .time_s = number_of(call, "time_s")};

    *out_answer = json_object();
    return jobs.backend->heartbeat(jobs.self, &beat, &error);
}

static int do_report(struct members *call, json_t **out_answer)
{
    const struct job_epoch epoch = {.job = text_of(call, "job"),
                                    .trial = members_u64(call, "trial", 0, INT64_MAX),
                                    .attempt = count_of(call, "attempt"),
                                    .epoch = count_of(call, "epoch"),
                                    .metric = number_of(call, "metric"),
                                    .energy_j = number_of(call, "energy_j"),
                                    .time_s = number_of(call, "time_s")};
    struct job_answered answered;
    int code = jobs.backend->report(jobs.self, &epoch, &answered, &error);

    if (code == 0)
        *out_answer = json_pack(
            "{s:s, s:s, s:b, s:b, s:I, s:f, s:f}", "answer", job_answer_name(answered.answer), "stop",
            job_stop_name(answered.stop), "repeated", (int)answered.repeated, "ended", (int)answered.ended,
            "epochs", (json_int_t)answered.epochs, "energy_j", answered.energy_j, "time_s", answered.time_s);
    return code;
}

static int do_end(struct members *call, json_t **out_answer)
{
    struct job_end end = {.job = text_of(call, "job"),
                          .trial = members_u64(call, "trial", 0, INT64_MAX),
                          .attempt = count_of(call, "attempt"),
                          .energy_j = number_of(call, "energy_j"),
                          .time_s = number_of(call, "time_s"),
                          .text = text_of(call, "text")};
    struct job_ended ended;
    int code;

    if (!job_outcome_parse(text_of(call, "outcome"), &end.outcome))
        return error_set(&error, FLY_EUSAGE, "no such outcome");
    code = jobs.backend->end(jobs.self, &end, &ended, &error);
    if (code == 0)
        *out_answer =
            json_pack("{s:s, s:b, s:f, s:f}", "outcome", job_outcome_name(ended.outcome), "repeated",
                      (int)ended.repeated, "energy_j", ended.energy_j, "time_s", ended.time_s);
    return code;
}

static int do_import(struct members *call, json_t **out_answer)
{
    const char *text = text_of(call, "text");

    *out_answer = json_object();
    return jobs.backend->import(jobs.self, text_of(call, "job"), text, strlen(text), &error);
}

static int do_remove(struct members *call, json_t **out_answer)
{
    *out_answer = json_object();
    return jobs.backend->remove(jobs.self, text_of(call, "job"), &error);
}

static const struct {
    const char *name;
    int (*run)(struct members *call, json_t **out_answer);
} calls[] = {
    {"define", do_define},       {"set", do_set},       {"propose", do_propose}, {"profile", do_profile},
    {"heartbeat", do_heartbeat}, {"report", do_report}, {"end", do_end},         {"import", do_import},
    {"remove", do_remove},
};

static int answer_call(char **words, struct members *call, json_t **out_answer)
{
    const struct job_options options = {.wait_s = strtod(words[2], NULL)};
    const char *name = text_of(call, "call");
    int code = FLY_EUSAGE;

    snprintf(error.text, sizeof error.text, "no such call");
    if (jobs.backend == NULL) {
        code = jobs_open(words[1], &options, &jobs, &error);
        if (code < 0)
            return code;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].name, name) == 0)
            code = calls[i].run(call, out_answer);
    }
    return call->wrong == NULL ? code : error_set(&error, FLY_EUSAGE, "member '%s'", call->wrong);
}

int main(int count, char **words)
{
    static char line[LINE_BYTES];

    if (count != 3)
        return 2;
    while (fgets(line, sizeof line, stdin) != NULL) {
        json_t *json = json_loads(line, 0, NULL), *answer = NULL;
        struct members call = members_of(json);
        int code = answer_call(words, &call, &answer);
        char *text;

        json = code == 0 ? json_pack("{s:O}", "answer", answer)
                         : json_pack("{s:s, s:s}", "error", fly_error_name(code), "text", error.text);
        text = json_dumps(json, JSON_COMPACT);
        printf("%s\n", text != NULL ? text : "{\"error\": \"FLY_ENOMEM\", \"text\": \"\"}");
        fflush(stdout);
        free(text);
        json_decref(json);
        json_decref(answer);
        json_decref(call.object);
    }
    jobs_close(&jobs);
    return 0;
}
