/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_MEASURED_H
#define FLYBALL_EMULATOR_MEASURED_H

#include "emulator/state.h"
#include "model/gpu_fit.h"

/*
 * What a file says that was recorded on a real board: how long some work took, and what one GPU drew, under
 * each of several power limits. These files are read:
 *
 * - CSV with window_name, elapsed_time and gpu0_energy, gpu1_energy, ...: windows of the same work, as in log
 *   files of ZeusMonitor and of 'flyball run --csv'; a window's name ends in _ and its limit in W;
 * - CSV with power_limit, time_per_epoch and average_power: epochs, as in the traces published with Zeus;
 *   columns dataset, network, batch_size and optimizer tell workloads apart;
 * - CSV with limit_w, power_w and step_time_s or time_s: as of 'flyball profile --format csv';
 * - JSON of 'flyball profile', with --format json or --output;
 * - a recording of 'flyball record', during which limits changed.
 *
 * Several measurements of one limit count as their mean. Each error names the file, and its line and field
 * where there is one.
 */
enum { MEASURED_GPU_MAX = 96 };

struct measured {
    struct fly_power_point points[GPU_FIT_POINTS_MAX]; /* power of one GPU */
    unsigned times_seen[GPU_FIT_POINTS_MAX];
    size_t count;
    bool of_steps;              /* the times are those of a step */
    char gpu[MEASURED_GPU_MAX]; /* the board's name; "": the file does not say */
};

/*
 * Reads a file. `workload` chooses one of several, as dataset/network/batch_size/optimizer or the begin of
 * that, or "". FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD; FLY_EDATA for what is none of the above; FLY_EUSAGE where
 * the workload is not in the file or not the only one; FLY_ELIMIT, FLY_ENOMEM.
 */
int measured_read(const char *path, const char *workload, struct measured *out_measured,
                  struct fly_error *out_error);

/* Adds a measurement; FLY_ELIMIT beyond GPU_FIT_POINTS_MAX limits. */
int measured_add(struct measured *measured, const struct fly_power_point *point, const char *path,
                 struct fly_error *out_error);

/* The readers of measured_csv.c, measured_json.c and measured_log.c; as measured_read. */
int measured_read_csv(const char *path, const char *workload, struct measured *measured,
                      struct fly_error *out_error);
int measured_read_json(const char *path, struct measured *measured, struct fly_error *out_error);
int measured_read_log(const char *path, struct measured *measured, struct fly_error *out_error);

/* The board that is called so, in settings or as part of a title: "NVIDIA A100-SXM4-80GB"; -1 for none. */
int measured_board(const char *gpu);

/*
 * Makes a board of the settings' profile: fits the model to it, and stores which board it is in the settings,
 * unless one was given there. The limits are those of the file, since the fit is a guess outside of them;
 * what the fit does not know, such as the idle power, is that of the settings' board. Errors as of
 * measured_read; FLY_EDATA for what cannot be fitted.
 */
int measured_follow(struct emulator_settings *settings, struct gpu_shape *out_shape,
                    struct emulator_workload *out_workload, struct fly_error *out_error);

#endif
