/* SPDX-License-Identifier: Apache-2.0 */
/* Does a call as one change, even when the result of its commit is not known. */
#include "job/core/job_words.h"
#include "job/local/job_group.h"

#include <stdio.h>

int local_unsure(int code, bool lost, struct fly_error *out_error)
{
    char text[FLY_ERROR_TEXT_MAX] = "";

    if (!lost || (code != FLY_EUNREACHABLE && code != FLY_EBUSY))
        return code;
    if (out_error != NULL)
        snprintf(text, sizeof text, "%s", out_error->text);
    return error_set(out_error, FLY_EUNSURE, "it may have been written, but since then %s", text);
}

/* Does the call as a change of its own, over the handle's own connection. */
static int call_alone(struct job_local *local, struct local_request *request)
{
    int code = FLY_EUNSURE;

    for (int i = 0; i < LOCAL_UNSURE_RETRIES && code == FLY_EUNSURE; i++) {
        struct local_change change;

        code = local_begin(local, request->job, request->make, &change, request->error);
        if (code < 0)
            return local_unsure(code, request->unsure, request->error);
        change.lost = request->lost;
        code = local_finish(&change, local_within_right(&change, request), request->error);
        /* A call that only read has its answer, whatever became of its commit. */
        if (code == FLY_EUNSURE && change.last.number == 0)
            code = 0;
        request->lost = change.last;
        request->unsure = true;
    }
    return code;
}

int local_call(struct job_local *local, const char *job, uint64_t trial, bool make, local_within *within,
               void *call, struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    struct local_request request = {.job = job,
                                    .trial = trial,
                                    .make = make,
                                    .caller = local->caller,
                                    .within = within,
                                    .call = call,
                                    .error = &error};
    int code;

    if (job_group_call(local->group, &request, &code))
        local_add_expired(local, &request.expired);
    else
        code = call_alone(local, &request);
    if (code < 0 && out_error != NULL)
        *out_error = error;
    return code;
}

int local_call_alone(struct job_local *local, const char *job, bool make, local_within *within, void *call,
                     struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    struct local_request request = {
        .job = job, .make = make, .caller = local->caller, .within = within, .call = call, .error = &error};
    int code = call_alone(local, &request);

    if (code < 0 && out_error != NULL)
        *out_error = error;
    return code;
}

struct comparing {
    const struct local_mark *mark;
    bool same;
};

static int compare_mark(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct comparing *comparing = context;
    const struct local_mark *mark = comparing->mark;

    (void)out_error;
    comparing->same = event->number == mark->number && event->time_us == mark->time_us &&
                      event->trial == mark->trial && record_kind_parse(event->kind) == mark->kind;
    return 1;
}

int local_lost_is_there(struct local_change *change, struct fly_error *out_error)
{
    const struct local_mark *lost = &change->lost;
    const struct store_query query = {.after = lost->number - 1, .limit = 1};
    struct comparing comparing = {.mark = lost};
    int code;

    if (lost->number == 0 || lost->job_id != store_change_job_id(change->change))
        return 0;
    code = store_change_read(change->change, &query, compare_mark, &comparing, out_error);
    return code < 0 ? code : comparing.same;
}
