/* SPDX-License-Identifier: Apache-2.0 */
/* What each route of the service's own interface does: one call into the job's table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/v1_call.h"

static void note_gpu(struct v1_call *call, const char *gpu_model)
{
    snprintf(call->note->gpu_model, sizeof call->note->gpu_model, "%s", gpu_model);
}

static int list(struct v1_call *call)
{
    return call->jobs->backend->list(call->jobs->self, &call->arena, &call->result.list, &call->error);
}

static int show(struct v1_call *call)
{
    return call->jobs->backend->show(call->jobs->self, call->place.job, &call->arena, &call->result.shown,
                                     &call->error);
}

static int define(struct v1_call *call)
{
    call->asked.definition.name = call->place.job;
    return call->jobs->backend->define(call->jobs->self, &call->asked.definition, &call->result.registered,
                                       &call->error);
}

static int set(struct v1_call *call)
{
    call->asked.setting.job = call->place.job;
    return call->jobs->backend->set(call->jobs->self, &call->asked.setting, &call->error);
}

static int remove_job(struct v1_call *call)
{
    return call->jobs->backend->remove(call->jobs->self, call->place.job, &call->error);
}

static int expire(struct v1_call *call)
{
    return call->jobs->backend->expire(call->jobs->self, call->place.job, &call->result.expired.expired,
                                       &call->error);
}

static int propose(struct v1_call *call)
{
    const struct job_proposal *proposal = &call->result.proposal;
    int code;

    call->asked.question.job = call->place.job;
    code = call->jobs->backend->propose(call->jobs->self, &call->asked.question, &call->result.proposal,
                                        &call->error);
    if (code < 0)
        return code;
    note_gpu(call, call->asked.question.hardware.gpu_model);
    call->note->decided = !proposal->repeated && proposal->attempt == 1 && proposal->reason != REASON_UNASKED;
    return 0;
}

static int profile(struct v1_call *call)
{
    call->asked.profile.job = call->place.job;
    call->asked.profile.trial = call->place.trial;
    return call->jobs->backend->profile(call->jobs->self, &call->asked.profile, &call->result.choice,
                                        &call->error);
}

static int heartbeat(struct v1_call *call)
{
    call->asked.beat.job = call->place.job;
    call->asked.beat.trial = call->place.trial;
    return call->jobs->backend->heartbeat(call->jobs->self, &call->asked.beat, &call->error);
}

static int report(struct v1_call *call)
{
    const struct job_answered *answered = &call->result.answered;
    int code;

    call->asked.epoch.job = call->place.job;
    call->asked.epoch.trial = call->place.trial;
    code = call->jobs->backend->report(call->jobs->self, &call->asked.epoch, &call->result.answered,
                                       &call->error);
    if (code < 0)
        return code;
    note_gpu(call, answered->gpu_model);
    call->note->ended = answered->ends;
    call->note->outcome = answered->outcome;
    if (answered->ends)
        call->note->energy_j = answered->energy_j;
    return 0;
}

static int end(struct v1_call *call)
{
    const struct job_ended *ended = &call->result.ended;
    int code;

    call->asked.end.job = call->place.job;
    call->asked.end.trial = call->place.trial;
    code = call->jobs->backend->end(call->jobs->self, &call->asked.end, &call->result.ended, &call->error);
    if (code < 0)
        return code;
    note_gpu(call, ended->gpu_model);
    call->note->ended = ended->ends;
    call->note->left =
        call->asked.end.nothing_learnt ||
        (call->asked.end.text != NULL && strcmp(call->asked.end.text, JOB_END_WITHOUT_EPOCH) == 0);
    call->note->outcome = ended->outcome;
    if (ended->ends)
        call->note->energy_j = ended->energy_j;
    else if (ended->energy_after_j > 0.0)
        call->note->energy_j = ended->energy_after_j;
    return 0;
}

/* ---- the log ---- */

static int read_query(struct v1_call *call, struct store_query *out_query)
{
    uint64_t numbers[API_PARAMETERS] = {0};
    const char *texts[API_PARAMETERS] = {NULL};

    for (size_t i = 0; i < call->request->query_count; i++) {
        const struct serve_parameter *given = &call->request->query[i];
        size_t k = 0;
        int code = 0;

        while (k < API_PARAMETERS && strcmp(api_parameters[k].name, given->name) != 0)
            k++;
        if (k == API_PARAMETERS)
            return error_set(&call->error, FLY_EUSAGE, "query '%.40s' is not known here; leave it out",
                             given->name);
        if (api_parameters[k].text)
            texts[k] = given->value;
        else
            code = api_number(given->name, given->value, api_parameters[k].least, &numbers[k], &call->error);
        if (code < 0)
            return code;
    }
    *out_query =
        (struct store_query){.after = numbers[0], .trial = numbers[1], .key = texts[2], .limit = numbers[3]};
    return 0;
}

static int put_line(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct buffer *body = context;
    char *text;
    int code = shape_write_text(&shape_event, event, &text, out_error);

    if (code < 0)
        return code;
    buffer_puts(body, text);
    buffer_puts(body, "\n");
    free(text);
    if (body->error < 0)
        return error_no_memory(out_error);
    return body->length < API_PAGE_BYTES ? 0 : 1;
}

static int read_log(struct v1_call *call)
{
    struct store_query query;
    int code = read_query(call, &query);

    if (code < 0)
        return code;
    if (query.limit == 0 || query.limit > API_PAGE_EVENTS)
        query.limit = API_PAGE_EVENTS;
    code = call->jobs->backend->read(call->jobs->self, call->place.job, &query, put_line, &call->answer->body,
                                     &call->error);
    return code < 0 ? code : 0;
}

static int digest(struct v1_call *call)
{
    struct store_query query;
    int code = read_query(call, &query);

    if (code < 0 || call->jobs->backend->digest == NULL)
        return code;
    return call->jobs->backend->digest(call->jobs->self, call->place.job, query.limit, &call->answer->body,
                                       &call->error);
}

static int import(struct v1_call *call)
{
    return call->jobs->backend->import(call->jobs->self, call->place.job, call->request->body,
                                       call->request->body_length, &call->error);
}

v1_operation *const v1_operations[API_OPERATIONS] = {
    [API_LIST] = list,         [API_SHOW] = show,       [API_DEFINE] = define,       [API_SET] = set,
    [API_REMOVE] = remove_job, [API_EXPIRE] = expire,   [API_READ] = read_log,       [API_IMPORT] = import,
    [API_PROPOSE] = propose,   [API_PROFILE] = profile, [API_HEARTBEAT] = heartbeat, [API_REPORT] = report,
    [API_END] = end,           [API_DIGEST] = digest,
};
