/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the driver's default limits, whatever was set before. */
#include "base/disabled.h"
#include "cli/options/open_devices.h"
#include "cli/power/power_commands.h"
#include "cli/power/power_turning.h"
#include "cli/program/child.h"

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, those that a program started here would see, by CUDA_VISIBLE_DEVICES "
                       "and its like."),
};

static int power_reset_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct power_turning turning; /* large */
    int result, ended;

    if (disabled_by_user()) {
        cli_warn(call, "FLYBALL_DISABLE=1 is set, so no limit is");
        return 0;
    }
    result = power_turning_begin(call, NULL, true, &turning, out_error);
    if (result < 0)
        return power_refused(call, result, out_error);
    result = power_turning_emit(call, &turning, "flyball.power.reset/2", NULL, out_error);
    ended = power_turning_end(call, &turning, out_error);
    return result < 0 ? result : ended;
}

const struct cli_command cmd_power_reset = {
    .words = "power reset",
    .summary = "set the driver's default power limits, and no profiles",
    .paragraphs =
        {"Sets the power limit of every chosen GPU to the driver's default, whatever stood before, and "
         "requests no workload power profiles where some are; on all GPUs, or on none "
         "when one of them refuses. What 'flyball power set' wrote down to be put back is forgotten, and "
         "persistence mode is turned off where that had turned it on.",
         "GPUs that somebody else uses are left alone, as 'flyball help power set' says."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .exit_status = POWER_EXIT_STATUS,
    .examples = {{"flyball power reset", "set every GPU to its default"},
                 {"flyball power reset -i 0,2", "set two GPUs to their default"}},
    .outputs = {&power_turning_quantities},
    .run = power_reset_run,
};
