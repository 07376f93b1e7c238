/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <flyball/record.h>

#include "base/error.h"
#include "base/file/append_file.h"
#include "base/file/atomic_file.h"
#include "base/harmless.h"
#include "cli/kit/table_print.h"
#include "cli/measure/run_result.h"
#include "cli/options/open_devices.h"
#include "cli/run/run_carbon.h"
#include "cli/run/run_job.h"
#include "cli/run/run_tune.h"
#include "meter/device_figures.h"
#include "shapes/shape_told.h"
#include "shapes/text_value.h"

enum { LINE_MAX_BYTES = 1 << 14 };

int run_output_check(const char *path, struct fly_error *out_error)
{
    struct atomic_file file;
    struct stat status;
    int result;

    /*
     * To open a pipe and close it again would end its reader, and to wait for the reader would hold
     * up the program.
     */
    if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        return 0;
    result = atomic_file_open(path, &file, out_error);
    if (result == 0)
        atomic_file_discard(&file);
    return result;
}

int run_paths_name(const struct cli_call *call, struct run_paths *out_paths, struct run_result *result,
                   struct fly_error *out_error)
{
    const char *output = cli_text(call, "output"), *csv = cli_text(call, "csv");
    int code = output != NULL ? output_path_expand(output, out_paths->output.path, out_error) : 0;

    out_paths->output.lock = -1;
    if (code == 0 && csv != NULL)
        code = output_path_expand(csv, out_paths->csv, out_error);
    result->output = output != NULL ? out_paths->output.path : NULL;
    result->csv = csv != NULL ? out_paths->csv : NULL;
    return code;
}

void run_output_hold(const struct cli_call *call, struct run_paths *paths, const struct run_result *result)
{
    struct fly_error error;

    if (result->output == NULL)
        return;
    output_path_hold(call, &paths->output);
    if (run_output_check(paths->output.path, &error) < 0)
        cli_warn(call, "there will be no report, and the program runs without: %s", error.text);
}

int run_output_write(const struct run_result *result, const char *path, struct fly_error *out_error)
{
    return table_save_json(run_report_json(result), path, out_error);
}

static int failed(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, errno == EACCES || errno == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "'%s': cannot add a line: %s; name another file with --csv", path, strerror(errno));
}

/* Compares the file's first line with the heading; an empty file has none yet. */
static int check_heading(int fd, const char *path, const char *heading, bool *out_empty,
                         struct fly_error *out_error)
{
    static char found[LINE_MAX_BYTES];
    size_t length = strlen(heading);
    ssize_t count = pread(fd, found, length, 0);

    if (count < 0)
        return failed(path, out_error);
    *out_empty = count == 0;
    if (count == 0)
        return 0;
    if ((size_t)count == length && memcmp(found, heading, length) == 0)
        return 0;
    return error_set(out_error, FLY_EDATA,
                     "'%s': its heading is not '%.*s', as lines of these GPUs need; name another file with "
                     "--csv",
                     path, (int)(length - 1), heading);
}

/* Checks whether a file could be made in the path's directory. */
static int check_place(const char *path, struct fly_error *out_error)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int code;

    if (directory == NULL)
        return error_no_memory(out_error);
    code = faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : failed(path, out_error);
    free(directory);
    return code;
}

int run_csv_check(const struct fly_meter *meter, const char *path, struct fly_error *out_error)
{
    static char heading[LINE_MAX_BYTES];
    /* Without O_NONBLOCK, a FIFO would wait for its reader. */
    int fd = open(path, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool empty;
    int code = 0;

    if (fd < 0)
        return errno == ENOENT ? check_place(path, out_error) : failed(path, out_error);
    if (lseek(fd, 0, SEEK_CUR) < 0)
        code = failed(path, out_error);
    else if (meter != NULL && fly_record_header(meter, FLY_RECORD_CSV_GPUS, heading, sizeof heading) < 0)
        code = error_no_memory(out_error);
    else if (meter != NULL)
        code = check_heading(fd, path, heading, &empty, out_error);
    close(fd);
    return code;
}

int run_csv_append(const struct fly_meter *meter, const struct fly_measurement *measured, const char *path,
                   struct fly_error *out_error)
{
    static char heading[LINE_MAX_BYTES];
    static char line[LINE_MAX_BYTES], lines[2 * LINE_MAX_BYTES];
    int length = fly_record_window(meter, measured, FLY_RECORD_CSV_GPUS, line, sizeof line);
    int result = fly_record_header(meter, FLY_RECORD_CSV_GPUS, heading, sizeof heading);
    bool empty = false;
    int fd;

    if (length < 0 || result < 0)
        return error_no_memory(out_error);
    fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(path, out_error);
    /*
     * If the lock fails, as on some file systems, runs that end at the same moment may both write a
     * heading.
     */
    flock(fd, LOCK_EX);
    result = check_heading(fd, path, heading, &empty, out_error);
    if (result == 0) {
        snprintf(lines, sizeof lines, "%s%s", empty ? heading : "", line);
        errno = append_file_lines(fd, lines, strlen(lines));
        result = errno != 0 ? failed(path, out_error) : 0;
    }
    if (close(fd) < 0 && result == 0)
        result = failed(path, out_error);
    return result;
}

/*
 * The report on a run for programs. It uses tables of members, so that every unknown figure has
 * its reason.
 */

static const char not_said[] = "the device does not say", none[] = "there is none";
static const char no_gpu[] = "no GPU says it", kernel_silent[] = "the kernel does not say";

/* ---- devices ---- */

/* The members of one device. */
struct told_device {
    const struct device_info *info;
    const struct claim *claim;
    const struct fly_device_energy *energy;
    const char *why; /* the reason why figures are not known */
    double module_energy_j;
};

static json_t *kind_of(const void *from)
{
    return json_string(device_kind_name(((const struct device_info *)from)->kind));
}

static json_t *source_of(const void *from)
{
    return json_string(fly_energy_source_name(((const struct told_device *)from)->energy->source));
}

static const struct shape_field info_rows[] = {
    {.name = "kind", TOLD_MADE(kind_of)},
    {SHAPE_AT(device_info, index), TOLD_U32},
    {SHAPE_AT(device_info, name), TOLD_CHARS(device_info, name)},
    {SHAPE_AT(device_info, uuid), TOLD_CHARS(device_info, uuid)},
    {SHAPE_AT(device_info, pci), TOLD_CHARS(device_info, pci)},
    {SHAPE_AT(device_info, driver), TOLD_CHARS(device_info, driver)},
    {SHAPE_AT(device_info, emulated), TOLD_BOOL},
    {SHAPE_AT(device_info, estimated), TOLD_BOOL},
    {SHAPE_AT(device_info, module_power), TOLD_BOOL},
    {SHAPE_AT(device_info, mig), TOLD_BOOL},
};

static const struct shape info_shape = {SHAPE_OF(device_info, info_rows)};

static const struct shape_field claim_rows[] = {
    {SHAPE_AT(claim, counted), TOLD_BOOL},
    {SHAPE_AT_AS("counted_by", claim, by), TOLD_CHARS(claim, by), TOLD_ELSE("this report counts it")},
};

static const struct shape claim_shape = {SHAPE_OF(claim, claim_rows)};

static const struct shape figures_shape = {
    .size = sizeof(struct fly_device_energy), .fields = device_figures, .count = DEVICE_FIGURES};

static const struct shape_field behind_rows[] = {
    {SHAPE_AT_AS("sources_disagree", fly_device_energy, disagree), TOLD_BOOL},
    {SHAPE_AT(fly_device_energy, samples), TOLD_U64},
    {SHAPE_AT(fly_device_energy, note), TOLD_ANY_CHARS(fly_device_energy, note)},
};

static const struct shape behind_shape = {SHAPE_OF(fly_device_energy, behind_rows)};

static const struct shape_field device_rows[] = {
    {SHAPE_AT(told_device, info), TOLD_MERGED(&info_shape), TOLD_ELSE(not_said)},
    {SHAPE_AT(told_device, claim), TOLD_MERGED(&claim_shape)},
    {.name = "source", TOLD_MADE(source_of)},
    {SHAPE_AT(told_device, energy), TOLD_MERGED(&figures_shape), TOLD_ELSE_AT(told_device, why)},
    {SHAPE_AT(told_device, energy), TOLD_MERGED(&behind_shape)},
    {SHAPE_AT(told_device, module_energy_j), TOLD_NUMBER,
     TOLD_ELSE("the device tells no energy of a module")},
};

static const struct shape device_shape = {SHAPE_OF(told_device, device_rows)};

static json_t *devices_of(const void *from)
{
    const struct run_result *result = from;
    struct told_device devices[DEVICES_MAX];
    size_t count = result->fault == NULL ? result->list->count : 0;

    for (size_t i = 0; i < count; i++) {
        const struct fly_device_energy *energy = &result->measured.devices[i];
        bool noted = energy->note[0] != '\0' && !isfinite(energy->energy_j);

        devices[i] = (struct told_device){&result->list->devices[i].info, &result->claims->devices[i], energy,
                                          noted ? energy->note : not_said, result->module_energies_j[i]};
    }
    return shape_tell_list(&device_shape, devices, count);
}

/* ---- drivers: what became of every one ---- */

static json_t *driver_name_of(const void *from)
{
    return json_string(((const struct backend_report *)from)->backend->name);
}

static json_t *driver_fault_of(const void *from)
{
    const struct fly_error *error = &((const struct backend_report *)from)->error;

    return error->code < 0 && error->text[0] != '\0' ? text_value(error->text) : NULL;
}

static const struct shape_field driver_rows[] = {
    {.name = "name", TOLD_MADE(driver_name_of)},
    {SHAPE_AT(backend_report, found), TOLD_SIZE},
    {.name = "fault", TOLD_MADE(driver_fault_of), TOLD_ELSE(none)},
};

static const struct shape driver_shape = {SHAPE_OF(backend_report, driver_rows)};

static json_t *drivers_of(const void *from)
{
    const struct device_list *list = ((const struct run_result *)from)->list;

    return shape_tell_list(&driver_shape, list->reports, list->report_count);
}

/* ---- the job ---- */

static const struct shape_field identity_rows[] = {
    {SHAPE_AT_AS("named_by", identity, job_source), TOLD_TEXT},
    {SHAPE_AT(identity, step), TOLD_CHARS(identity, step)},
    {SHAPE_AT(identity, node), TOLD_CHARS(identity, node), TOLD_ELSE("the machine has no name")},
    {SHAPE_AT_AS("ranked_by", identity, rank_source), TOLD_TEXT},
    {SHAPE_AT(identity, rank), TOLD_I32},
    {SHAPE_AT(identity, world_size), TOLD_I32},
    {SHAPE_AT(identity, local_rank), TOLD_I32},
    {SHAPE_AT(identity, local_size), TOLD_I32},
    {SHAPE_AT(identity, node_rank), TOLD_I32},
    {SHAPE_AT(identity, node_count), TOLD_I32},
};

static const struct shape identity_shape = {SHAPE_OF(identity, identity_rows)};

struct told_job {
    const char *id;
    const struct identity *identity;
    const char *claim_fault;
};

static const struct shape_field job_rows[] = {
    {SHAPE_AT(told_job, id), TOLD_ANY_TEXT},
    {SHAPE_AT(told_job, identity), TOLD_MERGED(&identity_shape),
     TOLD_ELSE("no variable of a scheduler or launcher says it")},
    {SHAPE_AT(told_job, claim_fault), TOLD_TEXT, TOLD_ELSE(none)},
};

static const struct shape job_shape = {SHAPE_OF(told_job, job_rows)};

static json_t *job_of(const void *from)
{
    const struct run_result *result = from;
    const struct told_job job = {result->claims->job, result->identity, result->claims->fault};

    return shape_tell(&job_shape, &job);
}

/* ---- sums ---- */

struct told_total {
    struct run_totals sums;
    const char *no_energy, *no_bound; /* why either is not known */
};

static const struct shape_field total_rows[] = {
    {SHAPE_AT_AS("energy_j", told_total, sums.energy_j), TOLD_NUMBER, TOLD_ELSE_AT(told_total, no_energy)},
    {SHAPE_AT_AS("uncertainty_j", told_total, sums.uncertainty_j), TOLD_NUMBER,
     TOLD_ELSE_AT(told_total, no_bound)},
    {SHAPE_AT_AS("devices", told_total, sums.devices), TOLD_SIZE},
    {SHAPE_AT_AS("devices_without_bound", told_total, sums.without_bound), TOLD_SIZE},
    {SHAPE_AT_AS("devices_emulated", told_total, sums.emulated), TOLD_SIZE},
    {SHAPE_AT_AS("devices_estimated", told_total, sums.estimated), TOLD_SIZE},
    {SHAPE_AT_AS("devices_unavailable", told_total, sums.unavailable), TOLD_SIZE},
    {SHAPE_AT_AS("devices_counted_elsewhere", told_total, sums.elsewhere), TOLD_SIZE},
    {SHAPE_AT_AS("gpu_idle_share", told_total, sums.idle_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_idle_energy_share", told_total, sums.idle_energy_share), TOLD_NUMBER,
     TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_capped_share", told_total, sums.capped_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_heat_share", told_total, sums.heat_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_brake_share", told_total, sums.brake_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
};

static const struct shape total_shape = {SHAPE_OF(told_total, total_rows)};

static json_t *total_of(const void *from)
{
    static const char nothing[] = "no device that is counted here has a figure";
    struct told_total total;

    run_totals(from, &total.sums);
    total.no_energy = nothing;
    total.no_bound = total.sums.devices > 0 ? "no device states a bound" : nothing;
    if (total.sums.devices == 0)
        total.sums.energy_j = NAN;
    if (total.sums.devices <= total.sums.without_bound)
        total.sums.uncertainty_j = NAN;
    return shape_tell(&total_shape, &total);
}

/* ---- the idle boost ---- */

static const char *const boost_names[IDLE_BOOST_DRIVER_COUNT] = {[IDLE_BOOST_NO_GPU] = "no GPU",
                                                                 [IDLE_BOOST_UNKNOWN] = "unknown",
                                                                 [IDLE_BOOST_EMULATED] = "emulated",
                                                                 [IDLE_BOOST_TOO_OLD] = "too old",
                                                                 [IDLE_BOOST_KNOWN] = "knows it"};

struct told_boost {
    const char *variable, *driver, *source, *text;
    enum idle_boost_driver driver_state;
};

static const struct shape_field boost_rows[] = {
    {SHAPE_AT(told_boost, variable), TOLD_TEXT},
    {SHAPE_AT(told_boost, driver), TOLD_TEXT, TOLD_ELSE("there is none, or it does not say")},
    {SHAPE_AT(told_boost, driver_state), SHAPE_IS_WORD(boost_names, IDLE_BOOST_DRIVER_COUNT)},
    {SHAPE_AT(told_boost, text), TOLD_TEXT},
    {SHAPE_AT(told_boost, source), TOLD_TEXT},
};

static const struct shape boost_shape = {SHAPE_OF(told_boost, boost_rows)};

static json_t *idle_boost_of(const void *from)
{
    const struct idle_boost *boost = ((const struct run_result *)from)->idle_boost;
    const struct told_boost told = {.variable = IDLE_BOOST_VARIABLE "=1",
                                    .driver = boost->version,
                                    .source = IDLE_BOOST_SOURCE,
                                    .text = idle_boost_text(boost->driver),
                                    .driver_state = boost->driver};

    return shape_tell(&boost_shape, &told);
}

/* ---- all of it ---- */

static json_t *schema_of(const void *from)
{
    (void)from;
    return json_string("flyball.run/2");
}

static json_t *command_of(const void *from)
{
    char *const *arguments = ((const struct run_result *)from)->arguments;
    size_t count = 0;

    while (arguments[count] != NULL)
        count++;
    return shape_tell_texts((const char *const *)arguments, count);
}

static json_t *not_included_of(const void *from)
{
    const char *texts[NOT_INCLUDED_MAX];

    return shape_tell_texts(texts, run_not_included(from, texts));
}

static json_t *tune_of(const void *from)
{
    return run_tune_json(((const struct run_result *)from)->tune);
}

static json_t *recurrence_of(const void *from)
{
    return run_job_json(((const struct run_result *)from)->job);
}

static json_t *carbon_of(const void *from)
{
    return run_carbon_json(((const struct run_result *)from)->carbon);
}

static const struct shape_field own_rows[] = {
    {SHAPE_AT_AS("cpu_s", run_result, own_cpu_s), TOLD_NUMBER, TOLD_ELSE(kernel_silent)},
    {SHAPE_AT_AS("memory_bytes", run_result, own_memory_bytes), TOLD_I64, TOLD_ELSE(kernel_silent)},
};

static const struct shape own_shape = {SHAPE_OF(run_result, own_rows)};

static const struct shape_field document_rows[] = {
    {.name = "schema", TOLD_MADE(schema_of)},
    {.name = "command", TOLD_MADE(command_of)},
    {SHAPE_AT_AS("exit_status", run_result, status), TOLD_I32},
    {SHAPE_AT(run_result, signal), .kind = SHAPE_I32, .null = SHAPE_ZERO, .most = INT32_MAX,
     TOLD_ELSE("no signal ended the program")},
    {SHAPE_AT_AS("start_unix_s", run_result, measured.start_unix_s), TOLD_NUMBER},
    {SHAPE_AT_AS("time_s", run_result, measured.time_s), TOLD_NUMBER},
    {SHAPE_AT_AS("unmeasured_s", run_result, early_s), TOLD_NUMBER},
    {SHAPE_AT(run_result, fault), TOLD_TEXT, TOLD_ELSE(none)},
    {SHAPE_AT(run_result, selection), TOLD_TEXT, TOLD_ELSE("nothing hides GPUs")},
    {.name = "job", TOLD_MADE(job_of)},
    {.name = "devices", TOLD_MADE(devices_of)},
    {.name = "drivers", TOLD_MADE(drivers_of)},
    {.name = "total", TOLD_MADE(total_of)},
    {.name = "not_included", TOLD_MADE(not_included_of)},
    {SHAPE_AT(run_result, tune), TOLD_MADE(tune_of), .need = SHAPE_SPARING},
    {SHAPE_AT_AS("recurrence", run_result, job), TOLD_MADE(recurrence_of), .need = SHAPE_SPARING},
    {SHAPE_AT(run_result, carbon), TOLD_MADE(carbon_of), .need = SHAPE_SPARING},
    {SHAPE_AT(run_result, idle_boost), TOLD_MADE(idle_boost_of), .need = SHAPE_SPARING},
    {.name = "own", SHAPE_IS_STRUCT(&own_shape)},
};

static const struct shape document_shape = {SHAPE_OF(run_result, document_rows)};

json_t *run_report_json(const struct run_result *result)
{
    return shape_tell(&document_shape, result);
}

enum { STATUS_LINE_MAX = 256 };

/* Returns this process's peak resident memory in bytes; -1 if the kernel does not say. */
static int64_t most_memory_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[STATUS_LINE_MAX];
    long long kibibytes = -1;

    while (status != NULL && kibibytes < 0 && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kibibytes = strtoll(line + 6, NULL, 10);
    }
    if (status != NULL)
        fclose(status);
    return kibibytes < 0 ? -1 : kibibytes * 1024;
}

/* Records what this process itself has used so far: processor time, and its peak memory. */
static void own_use_count(struct run_result *result)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    result->own_cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    result->own_memory_bytes = most_memory_bytes();
}

enum { REPORT_MAX = 1 << 22 };

/* The report in the form of --format. */
static void put_report(const struct cli_call *call, const struct run_result *result,
                       const struct fly_meter *meter, struct buffer *out)
{
    static char lines[REPORT_MAX / 8];
    json_t *document;

    switch (cli_format(call)) {
    case TABLE_FORMAT_TABLE:
        run_report_text(result, cli_flag(call, "verbose"), out);
        break;
    case TABLE_FORMAT_JSON:
        document = run_report_json(result);
        table_print_json(document, out, NULL);
        json_decref(document);
        break;
    case TABLE_FORMAT_CSV:
        if (result->fault != NULL)
            break;
        if (fly_record_header(meter, FLY_RECORD_CSV, lines, sizeof lines) > 0)
            buffer_puts(out, lines);
        if (fly_record_window(meter, &result->measured, FLY_RECORD_CSV, lines, sizeof lines) > 0)
            buffer_puts(out, lines);
        break;
    }
}

void run_report_emit(const struct cli_call *call, struct run_result *result, const struct fly_meter *meter)
{
    const char *output = result->output, *csv = result->csv;
    struct fly_error error;
    struct buffer text;

    own_use_count(result);
    if (output != NULL && run_output_write(result, output, &error) < 0) {
        cli_warn(call, "no report: %s", error.text);
        result->output = NULL;
    }
    if (csv != NULL && result->fault != NULL)
        cli_warn(call, "'%s': no line is added, since nothing was measured", csv);
    else if (csv != NULL && run_csv_append(meter, &result->measured, csv, &error) < 0)
        cli_warn(call, "%s", error.text);
    if (cli_flag(call, "quiet"))
        return;
    buffer_init(&text, REPORT_MAX);
    put_report(call, result, meter, &text);
    if (text.length > 0)
        text.length = harmless_make(text.data, text.length, true);
    fwrite(text.data, 1, text.length, cli_err(call));
    fflush(cli_err(call));
    buffer_deinit(&text);
}
