/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_RUN_H
#define FLYBALL_CLI_SIM_SIM_RUN_H

#include <stdint.h>

#include "base/file/atomic_file.h"
#include "cli/frame/call.h"

/*
 * What simulation commands do around their simulations: the tries file of --tries, the progress
 * line, the number of threads.
 *
 *     sim_run_begin(&run, call, header, units, out_error);
 *     ... sim_run_sink and sim_run_progress with &run as their context ...
 *     code = sim_run_end(&run, code, out_error);
 */
struct sim_run {
    struct atomic_file tries;
    bool has_tries;
    struct progress progress;
};

/*
 * Opens the tries file if one is asked for, and writes `header` to it. Call sim_run_end only
 * after success.
 */
int sim_run_begin(struct sim_run *run, const struct cli_call *call, const char *header, uint64_t units,
                  struct fly_error *out_error);

/* An ordered_sink; `context` is a struct sim_run. Use it only if there is a tries file. */
int sim_run_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error);

/* A plan's progress function; `context` is a struct sim_run. */
int sim_run_progress(void *context, uint64_t done, uint64_t total);

/*
 * Completes the tries file if `code` is 0, else discards it. Returns `code`, or the error that
 * happened here.
 */
int sim_run_end(struct sim_run *run, int code, struct fly_error *out_error);

#endif
