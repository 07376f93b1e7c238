/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes of the public batch-size server share: answers, and finding the job of a request. */
#include "compat/zeus/serve/zeus_call.h"
#include "shapes/shape_rows.h"

#include <stdio.h>
#include <sys/random.h>

enum { RETRY_AFTER_S = 1 /* what was busy or away may be back by then */ };

/* ---- answers ---- */

struct said {
    const char *message;
};

static const struct shape_field said_rows[] = {{SHAPE_AT(said, message), SHAPE_IS_TEXT(UINT32_MAX)}};
static const struct shape shape_said = {SHAPE_OF(said, said_rows)};

void zeus_say(struct zeus_call *call, int status, const char *message)
{
    struct said said = {.message = message};
    json_t *json = shape_tell(&shape_said, &said);

    if (json == NULL) { /* it was cut within a character */
        said.message = "it does not fit what is on record";
        json = shape_tell(&shape_said, &said);
    }
    serve_answer_json(call->answer, status, json);
}

void zeus_complained(struct zeus_call *call)
{
    serve_answer_struct(call->answer, ZEUS_UNPROCESSABLE, &shape_zeus_complaints, &call->detail);
}

/*
 * Returns the status of an error. If something is missing, the status differs by route, as on the
 * public server.
 */
static int status_of(int code, int if_missing)
{
    switch (code) {
    case FLY_ENOTFOUND:
        return if_missing;
    case FLY_EUSAGE:
    case FLY_EDATA:
    case FLY_ELIMIT:
        return ZEUS_BAD_REQUEST;
    default:
        return fly_error_http_status(code);
    }
}

void zeus_fail(struct zeus_call *call, int code, int if_missing)
{
    int status = status_of(code, if_missing);

    call->answer->retry_after_s = status == ZEUS_UNAVAILABLE ? RETRY_AFTER_S : 0;
    zeus_say(call, status,
             call->error.text[0] != '\0' ? serve_error_text(call->answer, status, code, call->error.text)
                                         : fly_error_sentence(code));
}

/* ---- what requests are about ---- */

bool zeus_named_in_query(struct zeus_call *call)
{
    call->job_id = serve_query(call->request, "job_id");
    if (call->job_id != NULL)
        return true;
    zeus_complain(&call->detail, "query", "job_id", "value_error.missing", "it is missing");
    zeus_complained(call);
    return false;
}

static int refuse_job(struct zeus_call *call)
{
    return error_set(&call->error, FLY_ENOTFOUND, "job '%.300s' is not known; register it first",
                     call->job_id);
}

int zeus_find_job(struct zeus_call *call, char name[JOB_NAME_MAX + 1], struct zeus_job *out_job)
{
    struct job_shown shown;
    int code;

    if (!zeus_job_name(call->job_id, name))
        return refuse_job(call);
    code = call->jobs->backend->show(call->jobs->self, name, &call->arena, &shown, &call->error);
    if (code == FLY_ENOTFOUND)
        return refuse_job(call);
    if (code == 0 && !zeus_job_recall(&shown.definition, &call->arena, out_job))
        code = error_set(&call->error, FLY_ENOTFOUND,
                         "job '%.300s' was not registered through this interface, and is not to be reached "
                         "from it",
                         call->job_id);
    if (code == 0) {
        snprintf(call->note->job, sizeof call->note->job, "%s", name);
        snprintf(call->note->gpu_model, sizeof call->note->gpu_model, "%s", out_job->gpu_model);
    }
    return code;
}

int zeus_random_text(char text[ZEUS_RANDOM_TEXT], struct fly_error *out_error)
{
    unsigned char bytes[8];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(out_error, FLY_EREAD, "random bytes cannot be had from this system");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}
