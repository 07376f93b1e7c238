/* SPDX-License-Identifier: Apache-2.0 */
/* Registers and removes jobs of the public batch-size server's clients. */
#include <stdio.h>
#include <string.h>

#include "compat/zeus/serve/zeus_call.h"
#include "shapes/shape_rows.h"

enum { NAMING_TRIES = 16 /* until a made id is free */ };

static const struct shape_field values_rows[] = {
    {SHAPE_AT(zeus_values, before), .kind = SHAPE_JSON},
    {SHAPE_AT(zeus_values, now), .kind = SHAPE_JSON},
};
static const struct shape shape_values = {SHAPE_OF(zeus_values, values_rows), .as_list = true};

static const struct shape_field difference_rows[] = {
    {SHAPE_AT(zeus_difference, name), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(zeus_difference, values), SHAPE_IS_STRUCT(&shape_values)},
};
static const struct shape shape_difference_of_jobs = {SHAPE_OF(zeus_difference, difference_rows)};

struct conflict {
    const char *message;
    const struct zeus_difference *list;
    size_t count;
};

static const struct shape_field conflict_rows[] = {
    {SHAPE_AT(conflict, message), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT_AS("differences", conflict, list), .kind = SHAPE_MAP, .shape = &shape_difference_of_jobs,
     .longest = ZEUS_DIFFERENCES_MAX, .beside = offsetof(struct conflict, count)},
};
static const struct shape shape_conflict = {SHAPE_OF(conflict, conflict_rows)};

/* The job is on record with another definition: answers which fields differ. */
static void answer_conflict(struct zeus_call *call, const struct zeus_job *now)
{
    char name[JOB_NAME_MAX + 1], message[ZEUS_MESSAGE_MAX];
    struct zeus_differences differences;
    struct zeus_job registered;
    struct buffer fields;
    int code = zeus_find_job(call, name, &registered);

    if (code < 0) {
        zeus_fail(call, code == FLY_ENOTFOUND ? FLY_ECONFLICT : code, ZEUS_CONFLICT);
        return;
    }
    buffer_init(&fields, ZEUS_MESSAGE_MAX / 2);
    zeus_job_differences(&registered, now, &differences);
    for (size_t i = 0; i < differences.count; i++)
        buffer_printf(&fields, "%s%s", i > 0 ? ", " : "", differences.list[i].name);
    snprintf(message, sizeof message, "job '%.100s' is registered with another %s; use another job_id",
             call->job_id, fields.length > 0 ? fields.data : "definition");
    buffer_deinit(&fields);
    serve_answer_struct(call->answer, ZEUS_CONFLICT, &shape_conflict,
                        &(struct conflict){message, differences.list, differences.count});
    zeus_differences_deinit(&differences);
}

/* Registers the job as `call->job_id`. */
static int define(struct zeus_call *call, const struct zeus_job *job, struct job_registered *out_registered)
{
    char name[JOB_NAME_MAX + 1], client[JOB_CLIENT_MAX + 1];
    struct fly_job_definition definition;
    int code;

    if (!zeus_job_name(call->job_id, name))
        return error_set(&call->error, FLY_ELIMIT, "job_id_prefix is too long; shorten it");
    code = zeus_job_define(job, name, client, &definition);
    if (code < 0)
        return code;
    snprintf(call->note->job, sizeof call->note->job, "%s", name);
    snprintf(call->note->gpu_model, sizeof call->note->gpu_model, "%s", job->gpu_model);
    return call->jobs->backend->define(call->jobs->self, &definition, out_registered, &call->error);
}

/* Registers it under a new id, made from the prefix. `text` holds the id. */
static int define_anew(struct zeus_call *call, const struct zeus_job *job, char text[ZEUS_MESSAGE_MAX],
                       struct job_registered *out_registered)
{
    char digits[ZEUS_RANDOM_TEXT];
    int code = FLY_ECONFLICT;

    for (int i = 0; i < NAMING_TRIES; i++) {
        code = zeus_random_text(digits, &call->error);
        if (code < 0)
            return code;
        snprintf(text, ZEUS_MESSAGE_MAX, "%s-%.8s", job->job_id_prefix, digits);
        call->job_id = text;
        code = define(call, job, out_registered);
        if (code != FLY_ECONFLICT && !(code == 0 && out_registered->known))
            return code;
    }
    return error_set(&call->error, FLY_EEXHAUSTED, "no free job_id was found; name one");
}

void zeus_register(struct zeus_call *call)
{
    char made[ZEUS_MESSAGE_MAX];
    struct job_registered registered = {0};
    struct zeus_job job;
    int code;

    if (!zeus_job_read(call->body, &job, &call->detail)) {
        zeus_complained(call);
        return;
    }
    call->job_id = job.job_id;
    code = job.job_id != NULL ? define(call, &job, &registered) : define_anew(call, &job, made, &registered);
    if (code == FLY_ECONFLICT && job.job_id != NULL)
        answer_conflict(call, &job);
    else if (code < 0)
        zeus_fail(call, code, ZEUS_FAILED);
    else
        serve_answer_json(call->answer, registered.known ? ZEUS_OK : ZEUS_CREATED,
                          zeus_job_write(&job, call->job_id));
}

void zeus_delete(struct zeus_call *call)
{
    char name[JOB_NAME_MAX + 1];
    struct zeus_job job;
    int code;

    if (!zeus_named_in_query(call))
        return;
    code = zeus_find_job(call, name, &job);
    if (code == 0)
        code = call->jobs->backend->remove(call->jobs->self, name, &call->error);
    if (code < 0)
        zeus_fail(call, code, ZEUS_NOT_FOUND);
    else
        serve_answer_json(call->answer, ZEUS_OK, json_null());
}
