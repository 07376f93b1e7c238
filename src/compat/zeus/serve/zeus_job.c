/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/zeus/serve/zeus_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "job/core/definition.h"
#include "policy/batch_policy.h"
#include "shapes/shape_rows.h"

enum { ROUNDS_MAX = 1000 };
#define POWER_MOST_W 1e9 /* beyond it a client must have mistaken the unit */

#define AT(member) offsetof(struct zeus_job, member)

/* Names, defaults and ranges are the public server's; the upper ends are this store's. */
static const struct zeus_field fields[] = {
    {"job_id", ZEUS_TEXT, .nullable = true, .least = 1, .most = JOB_NAME_MAX, .offset = AT(job_id)},
    {"job_id_prefix", ZEUS_TEXT, .needed = true, .most = JOB_NAME_MAX, .offset = AT(job_id_prefix)},
    {"batch_sizes", ZEUS_WHOLES, .needed = true, .least = 1, .most = UINT32_MAX, .offset = AT(batch_sizes)},
    {"default_batch_size", ZEUS_WHOLE, .needed = true, .above = true, .most = UINT32_MAX,
     .offset = AT(default_batch_size)},
    {"eta_knob", ZEUS_NUMBER, .most = 1, .offset = AT(eta_knob)},
    {"beta_knob", ZEUS_NUMBER, .nullable = true, .above = true, .most = INFINITY, .offset = AT(beta_knob)},
    {"target_metric", ZEUS_NUMBER, .least = -1e300, .most = 1e300, .offset = AT(target_metric)},
    {"higher_is_better_metric", ZEUS_FLAG, .offset = AT(higher_is_better_metric)},
    {"max_epochs", ZEUS_WHOLE, .above = true, .most = JOB_EPOCHS_MAX, .offset = AT(max_epochs)},
    {"num_pruning_rounds", ZEUS_WHOLE, .most = ROUNDS_MAX, .offset = AT(num_pruning_rounds)},
    {"window_size", ZEUS_WHOLE, .most = POLICY_WINDOW_MAX, .offset = AT(window_size)},
    {"mab_prior_mean", ZEUS_NUMBER, .least = -1e300, .most = 1e300, .offset = AT(mab_prior_mean)},
    {"mab_prior_precision", ZEUS_NUMBER, .most = 1e300, .offset = AT(mab_prior_precision)},
    {"mab_num_explorations", ZEUS_WHOLE, .most = ROUNDS_MAX, .offset = AT(mab_num_explorations)},
    {"mab_seed", ZEUS_WHOLE, .nullable = true, .most = UINT32_MAX, .offset = AT(mab_seed)},
    {"max_power", ZEUS_NUMBER, .needed = true, .above = true, .most = POWER_MOST_W, .offset = AT(max_power)},
    {"number_of_gpus", ZEUS_WHOLE, .needed = true, .above = true, .most = UINT32_MAX,
     .offset = AT(number_of_gpus)},
    {"gpu_model", ZEUS_TEXT, .needed = true, .least = 1, .most = JOB_TEXT_MAX - 1, .offset = AT(gpu_model)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static const struct zeus_job defaults = {
    .eta_knob = 0.5,
    .beta_knob = 2.0,
    .target_metric = 0.5,
    .higher_is_better_metric = true,
    .max_epochs = 100,
    .num_pruning_rounds = 2,
    .mab_num_explorations = 2,
    .mab_seed = ZEUS_NULL,
};

/* ---- reading ---- */

static int compare_sizes(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void check_sizes(struct zeus_job *job, struct zeus_complaints *detail)
{
    struct zeus_wholes *sizes = &job->batch_sizes;
    bool has_default = false;

    qsort(sizes->values, sizes->count, sizeof sizes->values[0], compare_sizes);
    for (size_t i = 0; i < sizes->count; i++) {
        if (i > 0 && sizes->values[i] == sizes->values[i - 1]) {
            zeus_complain(detail, "body", "batch_sizes", "value_error", "a batch size stands there twice");
            return;
        }
        has_default |= sizes->values[i] == job->default_batch_size;
    }
    if (!has_default)
        zeus_complain(detail, "body", "__root__", "value_error",
                      "default_batch_size is not one of batch_sizes; add it there");
}

static void check_texts(const struct zeus_job *job, struct zeus_complaints *detail)
{
    char name[JOB_NAME_MAX + 1];

    if (job->job_id != NULL && strncmp(job->job_id, job->job_id_prefix, strlen(job->job_id_prefix)) != 0)
        zeus_complain(detail, "body", "__root__", "value_error", "job_id does not begin with job_id_prefix");
    if (job->job_id != NULL && !zeus_job_name(job->job_id, name))
        zeus_complain(detail, "body", "job_id", "value_error",
                      "it is too long: at most 100 bytes, and each but a-z A-Z 0-9 - _ . counts four; "
                      "shorten it");
    for (const char *at = job->gpu_model; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            zeus_complain(detail, "body", "gpu_model", "value_error",
                          "it has a control character; leave it out");
            return;
        }
    }
}

bool zeus_job_read(const json_t *object, struct zeus_job *out_job, struct zeus_complaints *detail)
{
    *out_job = defaults;
    zeus_read(object, fields, FIELDS, out_job, detail);
    if (detail->count > 0)
        return false;
    check_sizes(out_job, detail);
    check_texts(out_job, detail);
    return detail->count == 0;
}

/* ---- writing ---- */

/* The answer about a job, with its members in the order of the public server. */
struct told {
    struct zeus_job job;
    const uint32_t *sizes;
};

#define TOLD(title, place) SHAPE_AT_AS(title, told, place)
#define TEXT SHAPE_IS_TEXT(UINT32_MAX)
#define WHOLE .kind = SHAPE_I64, .most = INT64_MAX
#define NUMBER SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE
static const struct shape_field told_rows[] = {
    {TOLD("job_id", job.job_id), TEXT},
    {TOLD("job_id_prefix", job.job_id_prefix), TEXT},
    {TOLD("batch_sizes", sizes), .kind = SHAPE_U32S, .most = UINT32_MAX, .longest = JOB_BATCHES_MAX,
     .beside = offsetof(struct told, job.batch_sizes.count)},
    {TOLD("default_batch_size", job.default_batch_size), WHOLE},
    {TOLD("eta_knob", job.eta_knob), NUMBER},
    {TOLD("beta_knob", job.beta_knob), NUMBER},
    {TOLD("target_metric", job.target_metric), NUMBER},
    {TOLD("higher_is_better_metric", job.higher_is_better_metric), SHAPE_IS_BOOL},
    {TOLD("max_epochs", job.max_epochs), WHOLE},
    {TOLD("num_pruning_rounds", job.num_pruning_rounds), WHOLE},
    {TOLD("window_size", job.window_size), WHOLE},
    {TOLD("mab_prior_mean", job.mab_prior_mean), NUMBER},
    {TOLD("mab_prior_precision", job.mab_prior_precision), NUMBER},
    {TOLD("mab_num_explorations", job.mab_num_explorations), WHOLE},
    {TOLD("mab_seed", job.mab_seed), WHOLE, .null = SHAPE_BELOW_0},
    {TOLD("max_power", job.max_power), NUMBER},
    {TOLD("number_of_gpus", job.number_of_gpus), WHOLE},
    {TOLD("gpu_model", job.gpu_model), TEXT},
};
static const struct shape shape_told = {SHAPE_OF(told, told_rows)};

/* Sizes are the job's own. */
static void tell(struct told *told, const struct zeus_job *job, const char *job_id)
{
    told->job = *job;
    told->job.job_id = job_id;
    told->sizes = told->job.batch_sizes.values;
}

json_t *zeus_job_write(const struct zeus_job *job, const char *job_id)
{
    struct told told;

    tell(&told, job, job_id);
    return shape_tell(&shape_told, &told);
}

/* ---- comparing ---- */

void zeus_differences_deinit(struct zeus_differences *differences)
{
    for (size_t i = 0; i < differences->count; i++) {
        json_decref(differences->list[i].values.before);
        json_decref(differences->list[i].values.now);
    }
    differences->count = 0;
}

static void note_difference(void *context, const char *name, const json_t *before, const json_t *now)
{
    struct zeus_differences *differences = context;

    if (before != NULL && now != NULL && differences->count < ZEUS_DIFFERENCES_MAX)
        differences->list[differences->count++] =
            (struct zeus_difference){.name = name, .values = {json_deep_copy(before), json_deep_copy(now)}};
}

void zeus_job_differences(const struct zeus_job *registered, const struct zeus_job *now,
                          struct zeus_differences *out_differences)
{
    struct told before, after;

    *out_differences = (struct zeus_differences){.count = 0};
    tell(&before, registered, "");
    tell(&after, now, "");
    (void)shape_differences(&shape_told, &before, &after, note_difference, out_differences, NULL);
}

/* ---- names ---- */

bool zeus_job_name(const char *job_id, char out_name[JOB_NAME_MAX + 1])
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char name[JOB_NAME_MAX + 1] = "";
    size_t length = 0;

    for (const char *at = job_id; *at != '\0'; at++) {
        bool plain =
            strchr(allowed, *at) != NULL && !(at == job_id && *at == '.') && !(at[0] == '_' && at[1] == '.');
        size_t more = plain ? 1 : 4;

        if (length + more > JOB_NAME_MAX)
            return false;
        if (plain)
            name[length] = *at;
        else
            snprintf(name + length, sizeof name - length, "_.%02X", (unsigned)(unsigned char)*at);
        length += more;
    }
    name[length] = '\0';
    memcpy(out_name, name, length + 1);
    return length > 0;
}

/* ---- definitions ---- */

/* The fields that a definition's `client` holds, in the order of their names. */
static const struct shape_field client_rows[] = {
    {SHAPE_AT(zeus_job, gpu_model), SHAPE_IS_TEXT(JOB_TEXT_MAX - 1)},
    {SHAPE_AT(zeus_job, job_id_prefix), SHAPE_IS_TEXT(JOB_NAME_MAX)},
    {SHAPE_AT(zeus_job, max_power), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(zeus_job, number_of_gpus), .kind = SHAPE_I64, .least = 1, .most = UINT32_MAX},
};
static const struct shape shape_client = {SHAPE_OF(zeus_job, client_rows)};

static int write_client(const struct zeus_job *job, char client[JOB_CLIENT_MAX + 1])
{
    char *text;
    size_t length;

    if (shape_write_text(&shape_client, job, &text, NULL) < 0)
        return FLY_ENOMEM;
    length = strlen(text);
    if (length <= JOB_CLIENT_MAX)
        memcpy(client, text, length + 1);
    free(text);
    return length <= JOB_CLIENT_MAX ? 0 : FLY_ENOMEM;
}

int zeus_job_define(const struct zeus_job *job, const char *name, char client[JOB_CLIENT_MAX + 1],
                    struct fly_job_definition *out_definition)
{
    struct fly_job_definition definition = job_definition_default;

    definition.name = name;
    definition.policy = batch_policy_zeus_server.name;
    definition.batch_sizes = job->batch_sizes.values;
    definition.batch_count = job->batch_sizes.count;
    definition.default_batch_size = (uint32_t)job->default_batch_size;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, job->eta_knob, INFINITY};
    definition.beta = job->beta_knob;
    definition.target = job->higher_is_better_metric ? FLY_TARGET_AT_LEAST : FLY_TARGET_AT_MOST;
    definition.target_metric = job->target_metric;
    definition.max_epochs = (uint32_t)job->max_epochs;
    definition.pruning_rounds = (uint32_t)job->num_pruning_rounds;
    definition.explorations = (uint32_t)job->mab_num_explorations;
    definition.prior_mean = job->mab_prior_mean;
    definition.prior_precision = job->mab_prior_precision;
    definition.window = (uint32_t)job->window_size;
    definition.seed = job->mab_seed == ZEUS_NULL ? 0 : (uint32_t)job->mab_seed;
    definition.generator = job->mab_seed == ZEUS_NULL ? GENERATOR_PHILOX : GENERATOR_NUMPY;
    definition.client = client;
    *out_definition = definition;
    return write_client(job, client);
}

static bool recall_client(const char *text, struct arena *arena, struct zeus_job *job)
{
    struct zeus_job told;

    if (text == NULL ||
        shape_read_text(&shape_client, text, strlen(text), SHAPE_LENIENT, arena, &told, NULL, NULL) < 0)
        return false;
    job->gpu_model = told.gpu_model;
    job->job_id_prefix = told.job_id_prefix;
    job->max_power = told.max_power;
    job->number_of_gpus = told.number_of_gpus;
    return true;
}

bool zeus_job_recall(const struct fly_job_definition *definition, struct arena *arena,
                     struct zeus_job *out_job)
{
    struct zeus_job job = defaults;

    if (strcmp(definition->policy, batch_policy_zeus_server.name) != 0 ||
        !recall_client(definition->client, arena, &job))
        return false;
    memcpy(job.batch_sizes.values, definition->batch_sizes,
           definition->batch_count * sizeof job.batch_sizes.values[0]);
    job.batch_sizes.count = definition->batch_count;
    job.default_batch_size = definition->default_batch_size;
    job.eta_knob = definition->objective.eta;
    job.beta_knob = definition->beta;
    job.target_metric = definition->target_metric;
    job.higher_is_better_metric = definition->target == FLY_TARGET_AT_LEAST;
    job.max_epochs = definition->max_epochs;
    job.num_pruning_rounds = definition->pruning_rounds;
    job.mab_num_explorations = definition->explorations;
    job.mab_prior_mean = definition->prior_mean;
    job.mab_prior_precision = definition->prior_precision;
    job.window_size = definition->window;
    job.mab_seed = definition->generator == GENERATOR_NUMPY ? (int64_t)definition->seed : ZEUS_NULL;
    *out_job = job;
    return true;
}
