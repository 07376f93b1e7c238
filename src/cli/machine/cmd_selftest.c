/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball selftest`: checks how well the devices of the user's machine measure. */

#include <stdlib.h>

#include "base/error.h"
#include "cli/kit/table_print.h"
#include "cli/machine/machine_commands.h"
#include "cli/machine/selftest_cli.h"
#include "cli/options/open_devices.h"
#include "cli/options/output_path.h"
#include "cli/program/child.h"

/* Time after a load begins, until averaging readings have forgotten what was before. */
static const double settle_s = 1.5;
static const double poll_s = 0.001;
enum { INTERRUPTED = 130 };

static const char *const loads[] = {"cuda", "none", NULL};

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
    {.name = "duration",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0.5,
     .maximum = 600,
     .default_text = "10",
     .help = "How long to measure idle, and again under load."},
    {.name = "load",
     .type = CLI_CHOICE,
     .placeholder = "LOAD",
     .choices = loads,
     .default_text = "cuda",
     .help = "The load: cuda, an arithmetic kernel through NVIDIA's driver, where that can be had; none for "
             "whatever runs."},
    {.name = "cuda",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "NVIDIA's CUDA driver library; if not given, libcuda.so.1 is searched for."},
    {.name = "turn-knobs",
     .type = CLI_FLAG,
     .help = "Also turn the power limits of GPUs under the load, and turn them back: whether they bind, how "
             "soon, and whether they come back when the process that holds them is killed."},
    {.name = "output",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Write the report as JSON to this file as well, to be attached to an issue."},
};

static bool go_on(void *data)
{
    struct selftest *test = data;

    return !stop_signals_wait(&test->stop, mono_now());
}

static int measure_stage(struct selftest *test, enum selftest_stage stage, struct fly_error *out_error)
{
    struct selftest_options stage_options = {.devices = &test->devices,
                                             .duration_s = test->duration_s,
                                             .poll_s = test->poll_s,
                                             .go_on = go_on,
                                             .data = test};

    return selftest_measure(&stage_options, stage, test->results, out_error);
}

static bool any_ran(const struct selftest *test)
{
    bool ran = false;

    for (size_t i = 0; i < test->devices.count; i++)
        ran = ran || test->results[i].load_ran;
    return ran;
}

static int measure_loaded(struct selftest *test, struct fly_error *out_error)
{
    int code = 0;

    cli_note(test->call, "%.1f s under load", test->duration_s);
    selftest_loads_start(test, NULL, test->duration_s + 60, test->loads);
    for (size_t i = 0; i < test->devices.count; i++)
        test->results[i].load_ran = test->loads[i].started;
    if (!stop_signals_wait(&test->stop, mono_after_s(mono_now(), any_ran(test) ? settle_s : 0.0)))
        code = measure_stage(test, SELFTEST_LOADED, out_error);
    selftest_loads_stop(test, test->loads);
    return code;
}

static int measure(struct selftest *test, struct fly_error *out_error)
{
    int code;

    test->date = clock_real.date(clock_real.state);
    cli_note(test->call, "timing the calls of %zu device%s", test->devices.count,
             test->devices.count == 1 ? "" : "s");
    for (size_t i = 0; i < test->devices.count && go_on(test); i++)
        selftest_latencies(&test->devices.devices[i], &clock_real, &test->results[i]);
    cli_note(test->call, "%.1f s as it is; best with nothing running", test->duration_s);
    code = measure_stage(test, SELFTEST_IDLE, out_error);
    if (code == 0)
        code = measure_loaded(test, out_error);
    if (code == 0 && !test->stop.stopped && cli_flag(test->call, "turn-knobs"))
        code = selftest_knobs_run(test, out_error);
    return code;
}

static int emit_report(const struct selftest *test, struct fly_error *out_error)
{
    const struct cli_call *call = test->call;
    char path[OUTPUT_PATH_MAX];
    int code = 0;

    if (cli_set(call, "output"))
        code = output_path_expand(cli_text(call, "output"), path, out_error);
    if (code == 0 && cli_set(call, "output"))
        code = table_save_json(selftest_report_json(test), path, out_error);
    if (code < 0)
        return code;
    switch (cli_format(call)) {
    case TABLE_FORMAT_JSON:
        return cli_emit_json(call, selftest_report_json(test), out_error);
    case TABLE_FORMAT_CSV:
        return selftest_report_csv(test, out_error);
    default:
        return selftest_report_text(test, out_error);
    }
}

static int test_devices(struct selftest *test, struct fly_error *out_error)
{
    int code;

    if (test->devices.count == 0) {
        cli_note_backends(test->call, &test->devices);
        return error_set(out_error, FLY_EUNSUPPORTED, "there is no device to test; see 'flyball doctor'");
    }
    stop_signals_hold(&test->stop);
    code = measure(test, out_error);
    stop_signals_release(&test->stop);
    if (test->stop.stopped) {
        cli_warn(test->call, "interrupted; nothing is reported");
        cli_exit_with(test->call, INTERRUPTED);
        return 0;
    }
    return code < 0 ? code : emit_report(test, out_error);
}

static int selftest_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct selftest *test = calloc(1, sizeof *test);
    char path[OUTPUT_PATH_MAX];
    int code;

    if (test == NULL)
        return error_no_memory(out_error);
    test->call = call;
    test->duration_s = cli_real(call, "duration");
    test->poll_s = poll_s;
    code = cli_set(call, "output") ? output_path_expand(cli_text(call, "output"), path, out_error) : 0;
    if (code == 0)
        code = cli_open_devices(call, GPUS_ALL, &test->devices, NULL, out_error);
    if (code == 0) {
        code = test_devices(test, out_error);
        device_list_close(&test->devices);
    }
    free(test);
    return code;
}

const struct cli_command cmd_selftest = {
    .words = "selftest",
    .summary = "test the sensors of this machine, and write a report of it",
    .paragraphs =
        {"Measures what the devices of this machine are like as instruments, all together: how long each "
         "call "
         "of the driver takes, how often the energy counter and the power readings change, and whether the "
         "counter and the integrated power say the same, first as the machine is and then under load. "
         "Nothing is set, but with --turn-knobs.",
         "With --turn-knobs each GPU whose power limit this user may set is then set to four limits from the "
         "highest to the lowest, all GPUs together: the report says whether the mean power keeps them, how "
         "long "
         "its readings take to follow, and how much of the load's work is left. Then a process that holds "
         "limits down is killed with SIGKILL, and the time until what stood before stands again is taken. "
         "It is left out on a GPU that somebody else uses, as 'flyball help power set' says.",
         "The load on NVIDIA's GPUs is an arithmetic kernel that CUDA's driver compiles, in a process of its "
         "own; no toolkit is needed. Where the driver library is missing, and on other devices, the second "
         "measurement is of whatever runs, and says so.",
         "A value that does not change hides its updates: its period is then not known. What the counter and "
         "the integral have in common, such as the gain of the board's sensor, no program can see.",
         "The report for programs, with --output or --format json, names the devices' models, their driver "
         "and "
         "the kernel's version, and neither the host nor the cards. docs/howto/selftest.md says how to read "
         "it and "
         "how to send it."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .examples = {{"flyball selftest", "test all devices"},
                 {"flyball selftest -i 0 --output report.json", "test one GPU and keep the report"},
                 {"sudo flyball selftest --turn-knobs", "see whether power limits do what they say here"},
                 {"flyball selftest --load none", "put no load on anything"}},
    .outputs = {&selftest_quantities},
    .run = selftest_run,
};
