/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the devices' readings. Lines go to the file as they come, so that an interruption loses
 * at most the reading that was about to be made.
 */
#include "cli/machine/machine_commands.h"
#include "cli/options/open_devices.h"
#include "cli/options/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/append_file.h"
#include "cli/machine/record_facts.h"
#include "cli/program/child.h"
#include "device/recording/recording.h"

/* The figures that belong to the moment of a reading; they are read first and by themselves. */
static const quantity_set figures = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                                    QUANTITY_BIT(QUANTITY_POWER_AVERAGE);
/* Figures that follow the load a little later. */
static const quantity_set circumstances =
    QUANTITY_BIT(QUANTITY_TEMPERATURE) | QUANTITY_BIT(QUANTITY_UTILIZATION) |
    QUANTITY_BIT(QUANTITY_UTILIZATION_MEMORY) | QUANTITY_BIT(QUANTITY_THROTTLE) |
    QUANTITY_BIT(QUANTITY_CLOCK_GPU) | QUANTITY_BIT(QUANTITY_CLOCK_MEMORY);
/* Everything else changes only when somebody changes it, and is read at this interval. */
static const double settings_s = 1.0;

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
    {.name = "interval",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0.001,
     .maximum = 3600,
     .default_text = "0.1",
     .help = "Time from one reading to the next."},
    {.name = "duration",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0,
     .maximum = 31536000,
     .help = "How long to record; if not given, until Ctrl-C."},
    {.name = "facts",
     .type = CLI_FLAG,
     .help =
         "Write what this machine says of itself instead: one moment and no course, without what names it "
         "or its users."},
    {.name = "yes", .type = CLI_FLAG, .help = "With --facts, write without asking."},
};

struct record {
    const struct cli_call *call;
    const char *path;
    int file;
    struct device_list devices;
    struct recording_writer writer;
    struct mono_time settings_due;
    uint64_t rounds, bytes;
};

static int write_failed(const struct record *record, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EWRITE, "'%s': writing failed: %s; what was recorded until then is kept",
                     record->path, strerror(errno));
}

/* Writes the lines that have accumulated. */
static int write_lines(struct record *record, struct fly_error *out_error)
{
    struct buffer *lines = &record->writer.lines;

    if (lines->error < 0)
        return error_no_memory(out_error);
    errno = append_file_lines(record->file, lines->data, lines->length);
    if (errno != 0)
        return write_failed(record, out_error);
    record->bytes += lines->length;
    buffer_clear(lines);
    return 0;
}

/* Opens a new file, so that no earlier recording is lost; or a pipe or device that already exists. */
static int open_file(const char *path, int *out_file, struct fly_error *out_error)
{
    struct stat status;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);

    if (file < 0 && errno == EEXIST) {
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
            return error_set(out_error, FLY_EUSAGE, "'%s' exists; name another file, or remove it", path);
        file = open(path, O_WRONLY | O_CLOEXEC);
    }
    if (file < 0)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_EWRITE,
                         "'%s' cannot be written: %s; name another file", path, strerror(errno));
    *out_file = file;
    return 0;
}

static void read_device(struct record *record, size_t index, bool settings)
{
    const struct device *device = &record->devices.devices[index];
    struct device_reading reading, later;
    quantity_set wanted = settings ? QUANTITY_ALL & ~figures : circumstances;

    device_read(device, &clock_real, figures, &reading);
    device_read(device, &clock_real, wanted, &later);
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if ((wanted & QUANTITY_BIT(i)) != 0)
            reading.values[i] = later.values[i];
    }
    recording_writer_add(&record->writer, index, wanted | figures, &reading);
}

static int read_all(struct record *record, struct fly_error *out_error)
{
    struct mono_time now = mono_now();
    bool settings = now.ns >= record->settings_due.ns;

    for (size_t i = 0; i < record->devices.count; i++)
        read_device(record, i, settings);
    if (settings)
        record->settings_due = mono_after_s(now, settings_s);
    record->rounds++;
    return write_lines(record, out_error);
}

/* Reads until a signal or the end. A reading that takes longer than the interval is not made up for. */
static int read_until(struct record *record, struct stop_signals *stop, struct fly_error *out_error)
{
    const struct cli_call *call = record->call;
    double interval_s = cli_real(call, "interval");
    bool bounded = cli_set(call, "duration");
    struct mono_time now = record->writer.start, next = now;
    struct mono_time end =
        bounded ? mono_after_s(now, cli_real(call, "duration")) : (struct mono_time){INT64_MAX};
    int code;

    do {
        code = read_all(record, out_error);
        now = mono_now();
        next = mono_after_s(next, interval_s);
        next = next.ns < now.ns ? now : next;
    } while (code == 0 && next.ns < end.ns && !stop_signals_wait(stop, next));
    if (code == 0 && bounded)
        stop_signals_wait(stop, end);
    return code;
}

static int finish(struct record *record, struct fly_error *out_error)
{
    int code;

    recording_writer_end(&record->writer, mono_now());
    code = write_lines(record, out_error);
    /* A pipe cannot be synced to the disk, and need not be. */
    if (code == 0 && fsync(record->file) < 0 && errno != EINVAL && errno != EROFS)
        code = write_failed(record, out_error);
    if (code == 0)
        cli_note(record->call, "%llu readings of %zu device%s in '%s', %llu bytes; play them with --replay",
                 (unsigned long long)record->rounds, record->devices.count,
                 record->devices.count == 1 ? "" : "s", record->path, (unsigned long long)record->bytes);
    return code;
}

static int record_devices(struct record *record, struct fly_error *out_error)
{
    struct stop_signals stop;
    int code = recording_writer_init(&record->writer, &record->devices, &clock_real,
                                     cli_real(record->call, "interval"), out_error);

    if (code < 0)
        return code;
    if (!cli_set(record->call, "duration"))
        cli_note(record->call, "recording %zu device%s into '%s'; stop with Ctrl-C", record->devices.count,
                 record->devices.count == 1 ? "" : "s", record->path);
    stop_signals_hold(&stop);
    code = read_until(record, &stop, out_error);
    if (code == 0)
        code = finish(record, out_error);
    stop_signals_release(&stop);
    recording_writer_deinit(&record->writer);
    return code;
}

static int record_into_file(struct record *record, struct fly_error *out_error)
{
    int code;

    if (record->devices.count == 0) {
        cli_note_backends(record->call, &record->devices);
        return error_set(out_error, FLY_EUNSUPPORTED, "there is no device to record; see 'flyball doctor'");
    }
    code = open_file(record->path, &record->file, out_error);
    if (code < 0)
        return code;
    code = record_devices(record, out_error);
    if (close(record->file) < 0 && code == 0)
        code = write_failed(record, out_error);
    return code;
}

static int record_facts_of(const struct cli_call *call, const char *path, struct fly_error *out_error)
{
    if (cli_source(call, "interval") == CLI_OPTION || cli_source(call, "duration") == CLI_OPTION)
        return cli_usage(call, out_error, "--facts is one moment; leave out --interval and --duration");
    if (cli_set(call, "replay"))
        return cli_usage(call, out_error, "--facts is of this machine; leave out --replay");
    return record_facts(call, path, out_error);
}

static int record_run(const struct cli_call *call, struct fly_error *out_error)
{
    static char path[OUTPUT_PATH_MAX];
    struct record *record = NULL;
    int code;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error,
                         "no file given; name the one that the recording is to be written to");
    if (!cli_flag(call, "facts") && cli_flag(call, "yes"))
        return cli_usage(call, out_error, "--yes is for --facts; leave it out");
    code = output_path_expand(cli_operand(call, 0), path, out_error);
    if (code < 0)
        return code;
    if (cli_flag(call, "facts"))
        return record_facts_of(call, path, out_error);
    record = calloc(1, sizeof *record);
    if (record == NULL)
        return error_no_memory(out_error);
    record->call = call;
    record->path = path;
    code = cli_open_devices(call, GPUS_ALL, &record->devices, NULL, out_error);
    if (code == 0) {
        code = record_into_file(record, out_error);
        device_list_close(&record->devices);
    }
    free(record);
    return code;
}

const struct cli_command cmd_record = {
    .words = "record",
    .summary = "write what the devices say to a file, to be played back",
    .paragraphs =
        {"Reads every device again and again and writes what it says to FILE: the energy counter, power, "
         "temperature, use, throttling and clocks at every interval, limits and modes every second. What a "
         "device refuses is recorded as refused, with the driver's code. A file that is there already is not "
         "touched; %t in its name is the rank, %j the job, %h the machine, %p the process.",
         "The option --replay of the other commands plays the file in place of all devices, at the pace at "
         "which it was recorded; a figure measured on it counts the interval of the recording into its "
         "uncertainty.",
         "Every reading is in the file before the next one is made, so a recording that is killed is good up "
         "to that moment, and one whose last line a power cut tore off plays up to there. Only what changed "
         "is written: some 80 bytes for each reading of a device. The file names the devices and not the "
         "host.",
         "With --facts, FILE gets what the machine says of itself: its devices with what each answers or "
         "refuses, limits, clocks, how counters moved in a second, drivers, the CPU's energy counters, what "
         "this user may do. It is what to send of a machine on which something goes wrong. Nothing in it "
         "names a host, a user, a process or a board; GPUs have pseudonyms. All of it is shown first, and "
         "written after a yes at the terminal, or with --yes; without a terminal and without --yes it is "
         "shown and not written."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .operands = "FILE",
    .operand_maximum = 1,
    .exit_status =
        "1 when you answered that facts are not to be written; 64 also when there was no terminal to "
        "ask on; else as in flyball(1).",
    .examples = {{"flyball record run.jsonl", "record until Ctrl-C"},
                 {"flyball record --duration 60 --interval 0.02 run.jsonl",
                  "record a minute, 50 times a second"},
                 {"flyball devices --replay run.jsonl", "show the recorded devices"},
                 {"flyball record --facts machine.facts", "describe this machine to somebody else"}},
    .outputs = {&device_quantities},
    .run = record_run,
};
