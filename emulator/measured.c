/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/measured.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file/patient_file.h"
#include "base/text/csv.h"
#include "emulator/boards.h"

enum { HEAD_MAX = 512 };

/* Reads the begin of the file. */
static int look(const char *path, char head[HEAD_MAX], struct fly_error *out_error)
{
    FILE *stream = patient_file_read(path);

    if (stream == NULL)
        return csv_open_failed(path, errno, out_error);
    head[fread(head, 1, HEAD_MAX - 1, stream)] = '\0';
    fclose(stream);
    return 0;
}

int measured_read(const char *path, const char *workload, struct measured *out_measured,
                  struct fly_error *out_error)
{
    struct measured measured = {.count = 0};
    char head[HEAD_MAX] = "";
    int code = look(path, head, out_error);
    bool is_json = head[strspn(head, " \t\r\n\xef\xbb\xbf")] == '{';

    if (code == 0 && workload[0] != '\0' && is_json)
        code = error_set(out_error, FLY_EUSAGE,
                         "%s: only a CSV file has several workloads; leave '%.80s' out", path, workload);
    if (code == 0 && is_json && strstr(head, "\"flyball.recording/") != NULL)
        code = measured_read_log(path, &measured, out_error);
    else if (code == 0 && is_json)
        code = measured_read_json(path, &measured, out_error);
    else if (code == 0)
        code = measured_read_csv(path, workload, &measured, out_error);
    if (code < 0)
        return code;
    if (measured.count < GPU_FIT_POINTS_MIN)
        return error_set(out_error, FLY_EDATA,
                         "%s: %zu power limits are not enough to tell how a board answers to limits; measure "
                         "at least %d",
                         path, measured.count, GPU_FIT_POINTS_MIN);
    *out_measured = measured;
    return 0;
}

/* The length of the word that a title begins with: "A100" of "A100-SXM4-80GB". */
static size_t chip_length(const char *title)
{
    return strcspn(title, "-");
}

/* Whether the text has the word, in any case, with no letter or digit around it. */
static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (strncasecmp(at, word, length) == 0 && (at == text || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[length]))
            return true;
    }
    return false;
}

int measured_board(const char *gpu)
{
    int found = -1;

    for (int i = 0; emulated_boards[i].name != NULL; i++) {
        const struct emulated_board *board = &emulated_boards[i];

        if (has_word(gpu, board->title, strlen(board->title)) || strcmp(gpu, board->name) == 0)
            return i;
        if (found < 0 && has_word(gpu, board->title, chip_length(board->title)))
            found = i;
    }
    return found;
}

static int fit(const char *path, const struct measured *measured, const struct gpu_shape *usual,
               struct gpu_shape *out_shape, struct emulator_workload *out_workload,
               struct fly_error *out_error)
{
    struct gpu_fit fit;
    struct fly_error error;
    int code = gpu_fit_of(measured->points, measured->count, &fit, &error);

    if (code < 0)
        return error_set(out_error, FLY_EDATA, "%s: %s; correct the file", path, error.text);
    *out_shape = fit.shape;
    /* Idle as usual, and the static power of the recorded work as fitted. */
    out_shape->idle_w = fmin(usual->idle_w, fit.shape.static_w);
    out_shape->static_w = out_shape->idle_w + (fit.shape.static_w - out_shape->idle_w) *
                                                  (fit.shape.busy_w - out_shape->idle_w) /
                                                  (fit.wanted_w - out_shape->idle_w);
    *out_workload = (struct emulator_workload){
        .is_known = true,
        .wanted_w = fit.wanted_w,
        .full_clock_s = measured->of_steps ? fit.full_clock_s : 0.0,
        .nature = fit.nature,
    };
    return 0;
}

int measured_follow(struct emulator_settings *settings, struct gpu_shape *out_shape,
                    struct emulator_workload *out_workload, struct fly_error *out_error)
{
    struct measured measured = {.count = 0};
    const char *slash = strrchr(settings->profile, '/');
    int code = measured_read(settings->profile, settings->workload, &measured, out_error);
    int board;

    if (code < 0)
        return code;
    board = measured_board(measured.gpu[0] != '\0' ? measured.gpu
                           : slash != NULL         ? slash + 1
                                                   : settings->profile);
    if (!settings->board_given && board >= 0)
        settings->board = (unsigned)board;
    return fit(settings->profile, &measured, gpu_shape_find(emulated_boards[settings->board].name), out_shape,
               out_workload, out_error);
}
