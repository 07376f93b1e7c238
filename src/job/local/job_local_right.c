/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change a job: its owners, operators, and of a trial whoever began it. */
#include "job/local/job_group.h"

#include <string.h>

void local_act_for(void *self, const struct job_caller *caller)
{
    ((struct job_local *)self)->caller = caller;
}

/* Returns 1 if the caller began the trial's newest attempt, else 0, or an error. */
static int began_it(struct local_change *change, uint64_t trial, struct fly_error *out_error)
{
    struct trial_past past;
    int code = trial > 0 ? local_past(change, trial, 0, &past, out_error) : FLY_ENOTFOUND;

    if (code < 0)
        return code == FLY_ENOTFOUND ? 0 : code;
    code = strcmp(past.origin.user, change->caller->name) == 0;
    trial_past_deinit(&past);
    return code;
}

int local_check_right(struct local_change *change, uint64_t trial, struct fly_error *out_error)
{
    const struct job_caller *caller = change->caller;
    const char *owners = change->state->owners;
    int code;

    if (caller == NULL || caller->operates || !change->state->defined || job_owners_have(owners, caller))
        return 0;
    code = began_it(change, trial, out_error);
    if (code != 0)
        return code < 0 ? code : 0;
    if (owners[0] == '\0')
        return error_set(out_error, FLY_EPERM,
                         "job '%s' belongs to the service's operator, and not to %s; ask for "
                         "'flyball job set %s --owners %s'",
                         change->job, caller->name, change->job, caller->name);
    return error_set(out_error, FLY_EPERM,
                     "job '%s' belongs to %.300s, and not to %s; ask for 'flyball job set %s --owners "
                     "%.300s,%s', or use a job of your own",
                     change->job, owners, caller->name, change->job, owners, caller->name);
}

int local_within_right(struct local_change *change, const struct local_request *request)
{
    int code;

    change->caller = request->caller;
    code = local_check_right(change, request->trial, request->error);
    return code < 0 ? code : request->within(change, request->call, request->error);
}
