/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_run.h"

#include <unistd.h>

#include "cli/sim/plugin_crash.h"
#include "sim/crew.h"

int sim_run_begin(struct sim_run *run, const struct cli_call *call, const char *header, uint64_t units,
                  struct fly_error *out_error)
{
    int code = 0;

    *run = (struct sim_run){.has_tries = cli_set(call, "tries")};
    if (run->has_tries)
        code = atomic_file_open(cli_text(call, "tries"), &run->tries, out_error);
    if (code < 0)
        return code;
    if (run->has_tries)
        fputs(header, run->tries.stream); /* commit reports a failure */
    plugin_crash_remove(run->tries.temporary);
    cli_progress_begin(call, &run->progress, "simulations", units);
    return 0;
}

int sim_run_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    struct sim_run *run = context;

    if (fwrite(bytes, 1, count, run->tries.stream) == count)
        return 0;
    /* The commit reports the cause; it fails because this write has failed. */
    return atomic_file_commit(&run->tries, out_error);
}

int sim_run_progress(void *context, uint64_t done, uint64_t total)
{
    struct sim_run *run = context;

    (void)total;
    progress_add(&run->progress, done - run->progress.done);
    progress_tick(&run->progress);
    return 0;
}

int sim_run_end(struct sim_run *run, int code, struct fly_error *out_error)
{
    progress_end(&run->progress);
    plugin_crash_remove(NULL);
    if (code < 0)
        atomic_file_discard(&run->tries);
    else if (run->has_tries)
        code = atomic_file_commit(&run->tries, out_error);
    return code;
}
