/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report/report_meters.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "device/recording/recording.h"

enum { HEAD_BYTES = 256, HOST_MAX = 256 };

void report_meters_init(struct report_meters *meters, double since_unix_s, double until_unix_s)
{
    *meters = (struct report_meters){.since_unix_s = since_unix_s, .until_unix_s = until_unix_s};
    run_reports_init(&meters->reports);
    recorded_init(&meters->recorded);
    used_init(&meters->used);
    name_index_init(&meters->places, USAGE_ROWS_MAX);
}

void report_meters_deinit(struct report_meters *meters)
{
    run_reports_deinit(&meters->reports);
    recorded_deinit(&meters->recorded);
    used_deinit(&meters->used);
    name_index_deinit(&meters->places);
    free(meters->nodes);
    free(meters->gpus);
}

/* ---- files ---- */

/* Decides by the first line. A file that is not regular cannot be read twice, so it counts as a report. */
static bool is_recording(const char *path)
{
    char head[HEAD_BYTES + 1];
    struct stat status;
    bool plain = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = plain ? fopen(path, "re") : NULL;
    size_t length = file != NULL ? fread(head, 1, HEAD_BYTES, file) : 0;

    if (file != NULL)
        fclose(file);
    head[length] = '\0';
    return strstr(head, "\"" RECORDING_SCHEMA "\"") != NULL;
}

static int read_file(struct report_meters *meters, const char *path, const char *host,
                     struct fly_error *out_error)
{
    if (used_is_record(path))
        return used_read(&meters->used, path, host, out_error);
    if (!is_recording(path))
        return run_reports_read(&meters->reports, path, NULL, out_error);
    meters->files++;
    return recorded_read(&meters->recorded, path, host, meters->since_unix_s, meters->until_unix_s,
                         out_error);
}

/* The files of flyballd's record: usage.jsonl, usage.jsonl.3, usage.now.jsonl. */
static int is_usage(const struct dirent *entry)
{
    static const char begin[] = "usage.";

    return strncmp(entry->d_name, begin, sizeof begin - 1) == 0 && strstr(entry->d_name, ".jsonl") != NULL;
}

static int is_record(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' && end != NULL &&
           (strcmp(end, ".jsonl") == 0 || strcmp(end, ".json") == 0);
}

static bool has_usage(const char *directory)
{
    char *file = NULL;
    bool has = asprintf(&file, "%s/usage.now.jsonl", directory) >= 0 && access(file, F_OK) == 0;

    free(file);
    return has;
}

static int read_directory(struct report_meters *meters, const char *path, const char *host,
                          struct fly_error *out_error)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, has_usage(path) ? is_usage : is_record, alphasort), code = 0;

    if (count <= 0)
        code = error_set(out_error, count < 0 ? FLY_EREAD : FLY_ENOTFOUND,
                         "there is no record of meters in '%s'; name files of 'flyball record', reports of "
                         "'flyball run --output', or flyballd's directory",
                         path);
    for (int i = 0; i < count; i++) {
        char *file = NULL;

        if (code == 0 && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
            code = error_no_memory(out_error);
        else if (code == 0)
            code = read_file(meters, file, host, out_error);
        free(file);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int report_meters_read(struct report_meters *meters, const char *named, struct fly_error *out_error)
{
    const char *equals = strchr(named, '=');
    char host[HOST_MAX] = "";
    const char *path = named;
    struct stat status;

    if (equals != NULL && equals != named && (size_t)(equals - named) < sizeof host &&
        memchr(named, '/', (size_t)(equals - named)) == NULL && access(named, F_OK) < 0) {
        memcpy(host, named, (size_t)(equals - named));
        path = equals + 1;
    }
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return read_directory(meters, path, host, out_error);
    return read_file(meters, path, host, out_error);
}

/* ---- sums ---- */

/* Cuts the window to the period, at its mean power. Returns whether any of it remains. */
static bool cut(const struct report_meters *meters, struct tally_window *window)
{
    double begin_s = fmax(window->start_unix_s, meters->since_unix_s);
    double end_s = fmin(window->start_unix_s + window->time_s, meters->until_unix_s);

    if (!(end_s > begin_s) || window->time_s <= 0.0)
        return false;
    window->energy_j *= (end_s - begin_s) / window->time_s;
    window->start_unix_s = begin_s;
    window->time_s = end_s - begin_s;
    return true;
}

static int note_place(struct report_meters *meters, const struct tally_window *window,
                      struct fly_error *out_error)
{
    const char **nodes;
    size_t number;
    int code = name_index_take(&meters->places, window->uuid, "", &number, out_error);

    if (code < 0)
        return code;
    nodes = array_grow(meters->nodes, number, &meters->node_capacity, sizeof nodes[0]);
    if (nodes == NULL)
        return error_no_memory(out_error);
    meters->nodes = nodes;
    meters->nodes[number] = window->node;
    return 0;
}

/* A GPU is the same one whoever recorded it; other devices get their name from their node. */
static int take_windows(struct report_meters *meters, const struct tally_window *from, size_t count,
                        struct tally_window *windows, size_t *io_count, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        struct tally_window window = from[i];

        if (!cut(meters, &window))
            continue;
        if (window.kind == DEVICE_GPU && window.node[0] != '\0')
            code = note_place(meters, &window, out_error);
        if (window.kind == DEVICE_GPU)
            window.node = "";
        windows[(*io_count)++] = window;
    }
    return code;
}

static void take_device(struct report_meters *meters, const struct usage *usage,
                        const struct tally_device *device)
{
    const char *host = usage_host_of(usage, device->uuid);
    size_t number;

    if (device->kind != DEVICE_GPU) {
        meters->others++;
        meters->others_j += isnan(device->energy_j) ? 0.0 : device->energy_j;
        return;
    }
    if (isnan(device->energy_j)) {
        meters->without_figure++;
        return;
    }
    if (name_index_find(&meters->places, device->uuid, "", &number))
        host = meters->nodes[number];
    meters->gpus[meters->count++] = (struct usage_meter){.uuid = device->uuid,
                                                         .host = host,
                                                         .model = usage_model_of(usage, device->uuid),
                                                         .energy_j = device->energy_j,
                                                         .time_s = device->time_s - device->unknown_s};
}

int report_meters_sum(struct report_meters *meters, const struct usage *usage, struct fly_error *out_error)
{
    int code = used_end(&meters->used, meters->since_unix_s, meters->until_unix_s, out_error);
    size_t most = meters->recorded.count + meters->reports.window_count + meters->used.window_count,
           count = 0;
    struct tally_window *windows = calloc(most + 1, sizeof windows[0]);
    struct tally tally = {.count = 0};

    if (windows == NULL)
        return error_no_memory(out_error);
    if (code == 0)
        code =
            take_windows(meters, meters->used.windows, meters->used.window_count, windows, &count, out_error);
    if (code == 0)
        code = take_windows(meters, meters->recorded.windows, meters->recorded.count, windows, &count,
                            out_error);
    if (code == 0)
        code = take_windows(meters, meters->reports.windows, meters->reports.window_count, windows, &count,
                            out_error);
    if (code == 0)
        code = tally_make(windows, count, &tally, out_error);
    if (code == 0) {
        meters->gpus = calloc(tally.count + 1, sizeof meters->gpus[0]);
        if (meters->gpus == NULL)
            code = error_no_memory(out_error);
    }
    for (size_t i = 0; i < tally.count && code == 0; i++)
        take_device(meters, usage, &tally.devices[i]);
    tally_deinit(&tally);
    free(windows);
    return code;
}
