/* SPDX-License-Identifier: Apache-2.0 */
/* A handle that belongs to no group: a store, the remembered states of jobs, and the policies it brings. */
#include <stdlib.h>

#include "base/error.h"
#include "job/local/job_local.h"

void local_free(struct job_local *local)
{
    for (size_t i = 0; i < LOCAL_STATES; i++) {
        if (local->states[i].job[0] != '\0')
            local_forget(local, local->states[i].job);
    }
    store_close(local->store);
    policy_plugins_close(&local->own);
    free(local);
}

int local_make(const char *address, const struct job_options *options, struct job_local **out_local,
               struct fly_error *out_error)
{
    const struct store_options store_options = {
        .wait_s = options->wait_s, .clock = options->clock, .existing = options->existing};
    struct job_local *local = calloc(1, sizeof *local);
    int code;

    if (local == NULL)
        return error_no_memory(out_error);
    local->plugins = options->plugins;
    code = options->plugins == NULL ? policy_plugins_open(&local->own, out_error) : 0;
    if (code < 0) {
        free(local);
        return code;
    }
    if (options->plugins == NULL)
        local->plugins = local->own.list;
    code = store_open(address, &store_options, &local->store, out_error);
    if (code < 0) {
        policy_plugins_close(&local->own);
        free(local);
        return code;
    }
    *out_local = local;
    return 0;
}
