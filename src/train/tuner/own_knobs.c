/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/own_knobs.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "meter/meter.h"
#include "train/tuner/knob_turner.h"

struct own_knobs {
    struct knob *knob;
    struct knob_turner turner;
    const struct fly_turner *calls;
    size_t count;
    const struct device *gpus[DEVICES_MAX];
};

static int range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;

    return knobs->calls->range(&knobs->turner, out_range, out_error);
}

/*
 * When the driver refuses, there is one remedy to name, unless the site offers ways of its own: those have
 * said why they failed.
 */
static int set(void *data, double setting, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;
    int code = knobs->calls->set(&knobs->turner, setting, out_error);

    if (code == FLY_EPERM && geteuid() != 0 && !site_offers_more(knob_site(knobs->knob), knobs->gpus[0]))
        error_set(out_error, code,
                  "the driver lets root alone set it; start the program with 'sudo -E', or give its user "
                  "a way (docs/power.md)");
    return code;
}

/*
 * When the guard has ended, everything must be put back at once: nobody would do it if this program were
 * killed.
 */
static int standing(void *data, double *out_setting, struct fly_error *out_error)
{
    struct own_knobs *knobs = data;
    struct pollfd guard = {.fd = knob_watch_fd(knobs->knob), .events = POLLIN};

    if (guard.fd >= 0 && poll(&guard, 1, 0) > 0) {
        int code = knob_check(knobs->knob, out_error);

        if (code < 0)
            return code;
    }
    return knobs->calls->standing(&knobs->turner, out_setting, out_error);
}

const struct fly_turner own_knobs_turner = {.range = range, .set = set, .standing = standing};

static void find_gpus(struct own_knobs *knobs, const struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU)
            knobs->gpus[knobs->count++] = &list->devices[i];
    }
}

static int open_knob(struct own_knobs *knobs, const char *nvml_path, struct fly_error *out_error)
{
    const struct knob_options options = {.program = "a program that tunes its training",
                                         .nvml_path = nvml_path,
                                         .mps_pipe_directory = getenv("CUDA_MPS_PIPE_DIRECTORY")};
    int code;

    if (knobs->count == 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the meter has no GPU whose power could be limited; see 'flyball doctor'");
    code = knob_open(&options, knobs->gpus, knobs->count, &knobs->knob, out_error);
    for (size_t i = 0; i < knobs->count && code == 0; i++)
        code = knob_may_turn(knobs->knob, i, out_error);
    return code;
}

int own_knobs_open(struct fly_meter *meter, enum fly_tuner_knob knob, struct own_knobs **out_knobs,
                   struct fly_error *out_error)
{
    struct own_knobs *knobs = calloc(1, sizeof *knobs);
    int code;

    if (knobs == NULL)
        return error_no_memory(out_error);
    knobs->calls = knob == FLY_TUNER_CLOCK ? &clock_turner : &knob_turner;
    find_gpus(knobs, meter_devices(meter));
    code = open_knob(knobs, meter_nvml_path(meter), out_error);
    if (code < 0) {
        own_knobs_close(knobs);
        return code;
    }
    knobs->turner = (struct knob_turner){.knob = knobs->knob, .devices = knobs->gpus, .count = knobs->count};
    *out_knobs = knobs;
    return 0;
}

void own_knobs_close(struct own_knobs *knobs)
{
    if (knobs == NULL)
        return;
    knob_close(knobs->knob, NULL);
    free(knobs);
}
