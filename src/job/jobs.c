/* SPDX-License-Identifier: Apache-2.0 */
/* The only list of all back ends. */
#include "job/jobs.h"

#include <string.h>

#include "job/local/job_local.h"
#include "job/remote/job_remote.h"

const struct job_backend *const job_backends[] = {&job_backend_local, &job_backend_remote, NULL};

static const struct job_backend *choose(const char *text)
{
    const struct job_backend *chosen = NULL;

    for (const struct job_backend *const *backend = job_backends; *backend != NULL; backend++) {
        if ((*backend)->takes == NULL ? chosen == NULL : (*backend)->takes(text))
            chosen = *backend;
    }
    return chosen;
}

bool jobs_are_remote(const char *address)
{
    return choose(address != NULL ? address : "") == &job_backend_remote;
}

int jobs_open(const char *address, const struct job_options *options, struct jobs *out_jobs,
              struct fly_error *out_error)
{
    static const struct job_options defaults = {0};
    const char *text = address != NULL ? address : "";
    const struct job_backend *chosen = choose(text);
    void *self;
    int code;

    if (chosen == NULL)
        return error_set(out_error, FLY_EINTERNAL, "store '%.200s': nothing here keeps jobs", text);
    code = chosen->open(address, options != NULL ? options : &defaults, &self, out_error);
    if (code == 0)
        *out_jobs = (struct jobs){.backend = chosen, .self = self};
    return code;
}

void jobs_close(struct jobs *jobs)
{
    if (jobs->backend != NULL)
        jobs->backend->close(jobs->self);
    *jobs = (struct jobs){0};
}
