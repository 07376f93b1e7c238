/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/own_knobs.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "meter/meter.h"
#include "train/tuner/knob_turner.h"

struct own_knobs {
    const struct fly_meter *meter;
    struct knob *knob; /* NULL: given back for now */
    struct knob_turner turner;
    size_t count;
    const struct device *gpus[DEVICES_MAX];
};

static int limit_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;

    return knob_turner.range(&knobs->turner, out_range, out_error);
}

static int clock_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;

    return clock_turner.range(&knobs->turner, out_range, out_error);
}

static int workload_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;

    return workload_turner.range(&knobs->turner, out_range, out_error);
}

/*
 * When the driver refuses, there is one remedy to name, unless the site offers ways of its own: those have
 * said why they failed. A GPU that somebody else turns is left, and what else was turned goes back.
 */
static int explain(struct own_knobs *knobs, int code, struct fly_error *out_error)
{
    if (code == FLY_EPERM && geteuid() != 0 && !site_offers_more(knob_site(knobs->knob)))
        error_set(out_error, code,
                  "the driver lets root alone set it; start the program with 'sudo -E', or give its user "
                  "a way (docs/howto/power.md)");
    if (code == FLY_ESTATE)
        (void)knob_restore(knobs->knob, NULL);
    return code;
}

static int set_with(const struct fly_turner *turner, struct own_knobs *knobs, double setting,
                    struct fly_error *out_error)
{
    return explain(knobs, turner->set(&knobs->turner, setting, out_error), out_error);
}

int own_knobs_hold_clock(struct own_knobs *knobs, enum quantity quantity, struct clock_range range,
                         struct fly_error *out_error)
{
    const struct clock_range *ranges[DEVICES_MAX];

    for (size_t i = 0; i < knobs->count; i++)
        ranges[i] = &range;
    return explain(knobs, knob_set_clocks(knobs->knob, quantity, ranges, out_error), out_error);
}

static int set_limit(void *data, double limit_w, struct fly_error *out_error)
{
    return set_with(&knob_turner, data, limit_w, out_error);
}

static int set_ceiling(void *data, double ceiling_mhz, struct fly_error *out_error)
{
    return set_with(&clock_turner, data, ceiling_mhz, out_error);
}

static int set_workload(void *data, double setting, struct fly_error *out_error)
{
    return set_with(&workload_turner, data, setting, out_error);
}

/*
 * When the guard has ended, everything must be put back at once: nobody would do it if this program were
 * killed.
 */
static int check_guard(struct own_knobs *knobs, struct fly_error *out_error)
{
    struct pollfd guard = {.fd = knob_watch_fd(knobs->knob), .events = POLLIN};

    return guard.fd >= 0 && poll(&guard, 1, 0) > 0 ? knob_check(knobs->knob, out_error) : 0;
}

static int limit_standing(void *data, double *out_limit_w, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;
    int code = check_guard(knobs, out_error);

    return code < 0 ? code : knob_turner.standing(&knobs->turner, out_limit_w, out_error);
}

static int ceiling_standing(void *data, double *out_ceiling_mhz, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;
    int code = check_guard(knobs, out_error);

    return code < 0 ? code : clock_turner.standing(&knobs->turner, out_ceiling_mhz, out_error);
}

static int workload_standing(void *data, double *out_setting, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;
    int code = check_guard(knobs, out_error);

    return code < 0 ? code : workload_turner.standing(&knobs->turner, out_setting, out_error);
}

const struct fly_turner own_limit_turner = {
    .range = limit_range, .set = set_limit, .standing = limit_standing};
const struct fly_turner own_clock_turner = {
    .range = clock_range, .set = set_ceiling, .standing = ceiling_standing};
const struct fly_turner own_workload_turner = {
    .range = workload_range, .set = set_workload, .standing = workload_standing};

static void find_gpus(struct own_knobs *knobs, const struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU)
            knobs->gpus[knobs->count++] = &list->devices[i];
    }
}

static int open_knob(struct own_knobs *knobs, bool resumes, struct fly_error *out_error)
{
    const struct knob_options options = {.program = "a program that tunes its training",
                                         .nvml_path = meter_nvml_path(knobs->meter),
                                         .amdsmi_path = meter_amdsmi_path(knobs->meter),
                                         .mps_pipe_directory = getenv("CUDA_MPS_PIPE_DIRECTORY"),
                                         .resumes = resumes};
    int code;

    if (knobs->count == 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the meter has no GPU whose power could be limited; see 'flyball doctor'");
    code = knob_open(&options, knobs->gpus, knobs->count, &knobs->knob, out_error);
    for (size_t i = 0; i < knobs->count && code == 0; i++)
        code = knob_may_turn(knobs->knob, i, out_error);
    knobs->turner.knob = knobs->knob;
    return code;
}

int own_knobs_take(void *data, struct fly_error *out_error)
{
    return open_knob(data, true, out_error);
}

void own_knobs_give_back(void *data)
{
    struct own_knobs *knobs = data;

    knob_close(knobs->knob, NULL);
    knobs->knob = knobs->turner.knob = NULL;
}

int own_knobs_open(struct fly_meter *meter, struct own_knobs **out_knobs, struct fly_error *out_error)
{
    struct own_knobs *knobs = calloc(1, sizeof *knobs);
    int code;

    if (knobs == NULL)
        return error_no_memory(out_error);
    knobs->meter = meter;
    find_gpus(knobs, meter_devices(meter));
    knobs->turner = (struct knob_turner){.devices = knobs->gpus, .count = knobs->count};
    code = open_knob(knobs, false, out_error);
    if (code < 0) {
        own_knobs_close(knobs);
        return code;
    }
    *out_knobs = knobs;
    return 0;
}

void own_knobs_leave_alone(struct own_knobs *knobs, const bool *left_alone)
{
    knobs->turner.left_alone = left_alone;
}

void own_knobs_close(struct own_knobs *knobs)
{
    if (knobs == NULL)
        return;
    knob_close(knobs->knob, NULL);
    free(knobs);
}
