/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/machine/machine_commands.h"
#include "cli/machine/monitor.h"
#include "cli/options/device_options.h"
#include "cli/options/open_devices.h"
#include "cli/program/stop_signals.h"

/* Time between the two readings of --once, so that counters which give only energy yield a power. */
static const double once_s = 0.25;

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
    {.name = "interval",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0.05,
     .maximum = 86400,
     .default_text = "1",
     .key = "monitor.interval_s",
     .help = "Time from one reading to the next."},
    {.name = "once", .type = CLI_FLAG, .help = "Print what the devices say now, and end."},
    {.name = "count",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e15,
     .help = "Off a terminal, end after so many readings; if not given, go on."},
    DEVICE_OPTIONS,
};

static int print_once(struct monitor *monitor, struct fly_error *out_error)
{
    monitor_read(monitor);
    clock_real.sleep_until(clock_real.state, mono_after_s(monitor->start, once_s));
    monitor_read(monitor);
    return monitor_put_table(monitor, out_error);
}

static int print_lines(struct monitor *monitor, struct fly_error *out_error)
{
    bool endless = !cli_set(monitor->call, "count");
    int64_t count = endless ? 0 : cli_integer(monitor->call, "count");
    struct stop_signals stop;
    int result = 0;

    stop_signals_hold(&stop);
    for (int64_t i = 0; result == 0 && (endless || i < count); i++) {
        if (i > 0 && stop_signals_wait(&stop, monitor->due))
            break;
        monitor_read(monitor);
        result = monitor_put_lines(monitor, i == 0, out_error);
    }
    stop_signals_release(&stop);
    return result;
}

static int tell(struct monitor *monitor, struct fly_error *out_error)
{
    const struct cli_call *call = monitor->call;
    bool screen =
        cli_out_is_terminal(call) && isatty(STDIN_FILENO) == 1 && cli_format(call) == TABLE_FORMAT_TABLE;

    if (cli_flag(call, "once"))
        return print_once(monitor, out_error);
    return screen ? monitor_screen(monitor, out_error) : print_lines(monitor, out_error);
}

static int monitor_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct device_list list; /* large */
    struct monitor monitor = {.call = call, .list = &list, .interval_s = cli_real(call, "interval")};
    int result = cli_open_devices(call, GPUS_ALL, &list, NULL, out_error);

    if (result < 0)
        return result;
    monitor.start = monitor.due = mono_now();
    monitor.watches = calloc(list.count + 1, sizeof *monitor.watches);
    if (monitor.watches == NULL)
        result = error_no_memory(out_error);
    else if (list.count == 0)
        result =
            error_set(out_error, FLY_EUNSUPPORTED,
                      "no device here can be measured; 'flyball doctor' says why, and what would change it");
    for (size_t i = 0; result == 0 && i < list.count; i++)
        monitored_init(&monitor.watches[i], &list.devices[i]);
    if (result == 0)
        result = tell(&monitor, out_error);
    free(monitor.watches);
    device_list_close(&list);
    return result;
}

const struct cli_command cmd_monitor = {
    .words = "monitor",
    .summary = "watch power, energy, heat and throttling of the devices",
    .paragraphs =
        {"On a terminal, a screen with a row for every device: power, the limit in force, energy since the "
         "start, temperature, utilisation, why a GPU is held down, and the last powers as small bars that "
         "the "
         "limit fills. q quits.",
         "Elsewhere, or with --format csv or json, a line for every device at every interval; JSON is one "
         "object a line, with null and a reason for what is not known. --once prints one table or document.",
         "Energy comes from the device's counter, or is the sampled power summed; the column 'source' says "
         "which. Nothing is set on any device but what a killed program left."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball monitor", "watch all devices"},
                 {"flyball monitor --once", "print one table"},
                 {"flyball monitor -i 0 --interval 0.1 --format csv > gpu0.csv",
                  "keep ten readings a second of one GPU"}},
    .outputs = {&monitor_quantities},
    .run = monitor_run,
};
