/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: any bytes are either refused with file and line, or give windows with a finite sum, in which no
 * device has a negative energy.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "meter/tally/run_reports.h"
#include "shapes/json_place.h"

enum { TEXT_MAX = 1 << 16 };

static void check_refusal(int code, const struct fly_error *error)
{
    FUZZ_CHECK(code == FLY_EDATA && error->code == code);
    FUZZ_CHECK(strncmp(error->text, "name:", 5) == 0);
    FUZZ_CHECK(error->text[5] >= '1' && error->text[5] <= '9');
}

static void check_sum(const struct run_reports *reports)
{
    struct tally tally;
    size_t windows = 0;

    FUZZ_CHECK(tally_make(reports->windows, reports->window_count, &tally, NULL) == 0);
    for (size_t i = 0; i < tally.count; i++) {
        const struct tally_device *device = &tally.devices[i];

        windows += device->windows;
        FUZZ_CHECK(device->node[0] != '\0' && device->uuid[0] != '\0');
        FUZZ_CHECK(isnan(device->energy_j) || device->energy_j >= 0);
        FUZZ_CHECK(device->uncertainty_j >= 0 && device->time_s >= 0 && device->unknown_s >= 0);
    }
    FUZZ_CHECK(windows == reports->window_count);
    tally_deinit(&tally);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX];
    struct run_reports reports;
    struct fly_error error = {.code = 0};
    int code;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    run_reports_init(&reports);
    /* Twice, so that windows overlap. */
    code = run_reports_read_text(&reports, "name", text, size, NULL, &error);
    if (code == 0)
        FUZZ_CHECK(run_reports_read_text(&reports, "name", text, size, NULL, &error) == 0);
    if (code < 0)
        check_refusal(code, &error);
    else
        check_sum(&reports);
    FUZZ_CHECK(json_place_line(text, "/devices/1/energy_j") >= 1);
    run_reports_deinit(&reports);
    return 0;
}
