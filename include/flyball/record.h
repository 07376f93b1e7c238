/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_RECORD_H
#define FLYBALL_RECORD_H

#include <stddef.h>

#include <flyball/export.h>
#include <flyball/meter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Measurements as text, for files that gather many windows.
 *
 *     char text[4096];
 *
 *     fly_record_header(meter, FLY_RECORD_CSV_GPUS, text, sizeof text);
 *     fputs(text, file);
 *     ...
 *     fly_meter_end(meter, window, &measured, &error);
 *     fly_record_window(meter, &measured, FLY_RECORD_CSV_GPUS, text, sizeof text);
 *     fputs(text, file);
 *
 * What is not known is an empty field in CSV, and null with "<key>_unavailable"
 * in JSON, never 0. Numbers are the same in every locale. Thread-safe.
 */
enum fly_record_form {
    FLY_RECORD_CSV_GPUS, /* a line for each window:
                            start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy, as ZeusMonitor's log
                            file; seconds since 1970, seconds, joules; GPUs only */
    FLY_RECORD_CSV,      /* a line for each device of each window, with source and uncertainty */
    FLY_RECORD_JSON,     /* a line for each window, an object with all of its devices */
};

/*
 * The line before all others; no text at all for JSON. Both functions end each
 * line with "\n" and the text with a NUL, cut it to `capacity` as snprintf does,
 * and return the length of the whole text, or FLY_EUSAGE for an unknown form,
 * FLY_ENOMEM. `text` may be NULL where `capacity` is 0.
 */
FLY_API int fly_record_header(const struct fly_meter *meter, enum fly_record_form form, char *text,
                              size_t capacity);

/* The lines of one window, measured by that meter. */
FLY_API int fly_record_window(const struct fly_meter *meter, const struct fly_measurement *measured,
                              enum fly_record_form form, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
