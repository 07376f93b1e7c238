/* SPDX-License-Identifier: Apache-2.0 */
/* What routes share: errors of a request and of its devices, and the devices themselves. */
#include <stdio.h>

#include "base/error.h"
#include "compat/zeus/node/public_private.h"
#include "shapes/shape_rows.h"

enum { LINE_MAX_BYTES = 640 };

struct refusal {
    const char *error;
};
static const struct shape_field refusal_rows[] = {
    {SHAPE_AT(refusal, error), SHAPE_IS_TEXT(UINT32_MAX), .any_bytes = true}};
static const struct shape shape_refusal = {SHAPE_OF(refusal, refusal_rows)};

void public_refuse(struct serve_answer *answer, int status, const char *text)
{
    const struct refusal refusal = {text};

    serve_answer_struct(answer, status, &shape_refusal, &refusal);
}

static const struct shape_field failure_rows[] = {
    {SHAPE_AT(public_failure, id), .kind = SHAPE_CHARS,
     .longest = sizeof((struct public_failure *)0)->id - 1},
    {SHAPE_AT(public_failure, text), .kind = SHAPE_CHARS, .longest = FLY_ERROR_TEXT_MAX - 1,
     .any_bytes = true},
};
static const struct shape shape_failure = {SHAPE_OF(public_failure, failure_rows)};

static const struct shape_field failures_rows[] = {
    {SHAPE_AT_AS("errors", public_failures, rows), .kind = SHAPE_MAP, .shape = &shape_failure,
     .longest = UINT32_MAX, .beside = offsetof(struct public_failures, count)},
};
static const struct shape shape_failures = {SHAPE_OF(public_failures, failures_rows)};

void public_fail(struct public_failures *failures, uint32_t id, int status, const char *text)
{
    struct public_failure *row = &failures->rows[failures->count++];

    snprintf(row->id, sizeof row->id, "%u", id);
    snprintf(row->text, sizeof row->text, "%s", text);
    if (status > failures->status)
        failures->status = status;
}

bool public_answer_failures(struct public_exchange *exchange)
{
    if (exchange->failures.count == 0)
        return false;
    serve_answer_struct(exchange->answer, exchange->failures.status, &shape_failures, &exchange->failures);
    return true;
}

int public_status(int code)
{
    switch (code) {
    case FLY_EUSAGE:
    case FLY_EUNSUPPORTED:
        return PUBLIC_BAD;
    case FLY_EPERM:
        return PUBLIC_FORBIDDEN;
    default:
        return PUBLIC_FAILED;
    }
}

void public_tell_failed(void *self, size_t gpu, const struct fly_error *error)
{
    const struct node_public *public = self;
    char line[LINE_MAX_BYTES];

    snprintf(line, sizeof line, "a command for GPU %zu, for which no client waited, failed: %s", gpu,
             error->text);
    if (public->options.tell != NULL)
    public->options.tell(public->options.tell_state, line);
}

int public_find_gpu(struct watch *watch, uint32_t id)
{
    size_t count = watch_gpu_count(watch);

    for (size_t gpu = 0; gpu < count; gpu++) {
        struct device_info info;

        watch_gpu_info(watch, gpu, &info);
        if (info.index == id)
            return (int)gpu;
    }
    return -1;
}

/* Without a list of numbers, all GPUs are meant that the caller may read, or all if there is none. */
void public_all_gpus(const struct public_exchange *exchange, struct public_query *query)
{
    const struct node_public_options *options = &exchange->public->options;
    size_t count = watch_gpu_count(options->watch);
    bool some = false;

    if ((query->given & PUBLIC_BIT(PUBLIC_GPU_IDS)) != 0)
        return;
    query->id_count = 0;
    for (size_t gpu = 0; gpu < count; gpu++) {
        struct rights_decision decision;
        struct device_info info;

        admit_decide(options->admit, exchange->request, gpu, &decision);
        if (some && !decision.may_read)
            continue;
        if (!some && decision.may_read)
            query->id_count = 0;
        some = some || decision.may_read;
        watch_gpu_info(options->watch, gpu, &info);
        query->ids[query->id_count++] = info.index;
    }
}

unsigned public_scopes(const struct serve_request *request)
{
    if (request->signed_token != NULL)
        return request->signed_token->scopes;
    if (request->caller_name[0] == '\0' || request->scope < SERVE_READ)
        return 0;
    return 1U << SIGNED_SCOPE_GPU_READ | 1U << SIGNED_SCOPE_CPU_READ |
           (request->scope >= SERVE_TRAIN ? 1U << SIGNED_SCOPE_GPU_CONTROL : 0);
}
