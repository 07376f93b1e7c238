/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's own way to set power limits, for programs that choose them. */
#include <flyball/power_knob.h>

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "train/tuner/own_knobs.h"

struct fly_power_knob {
    uint64_t forks; /* identifies the process that made it */
    struct own_knobs *knobs;
};

int fly_power_knob_open(struct fly_meter *meter, struct fly_power_knob **out_knob,
                        struct fly_error *out_error)
{
    struct fly_power_knob *knob = malloc(sizeof *knob);
    int code;

    if (knob == NULL)
        return error_no_memory(out_error);
    *knob = (struct fly_power_knob){.forks = fork_generation()};
    code = own_knobs_open(meter, &knob->knobs, out_error);
    if (code < 0)
        free(knob);
    else
        *out_knob = knob;
    return code;
}

static int check(const struct fly_power_knob *knob, struct fly_error *out_error)
{
    if (knob->forks == fork_generation())
        return 0;
    return error_set(out_error, FLY_ESTATE,
                     "the knob was opened before a fork and turns in the parent alone; open another here");
}

int fly_power_knob_range(struct fly_power_knob *knob, double *out_lowest_w, double *out_highest_w,
                         struct fly_error *out_error)
{
    struct fly_turner_range range;
    int code = check(knob, out_error);

    if (code < 0)
        return code;
    code = own_limit_turner.range(knob->knobs, &range, out_error);
    if (code < 0)
        return code;
    *out_lowest_w = range.lowest;
    *out_highest_w = range.highest;
    return 0;
}

int fly_power_knob_set(struct fly_power_knob *knob, double limit_w, struct fly_error *out_error)
{
    int code = check(knob, out_error);

    if (code < 0)
        return code;
    /* 0 would leave the GPUs as they are. */
    if (!(limit_w >= 1.0 && limit_w <= 1e6))
        return error_set(out_error, FLY_EUSAGE, "a power limit of %g W is none; give watts", limit_w);
    return own_limit_turner.set(knob->knobs, limit_w, out_error);
}

int fly_power_knob_limit(struct fly_power_knob *knob, double *out_limit_w, struct fly_error *out_error)
{
    int code = check(knob, out_error);

    return code < 0 ? code : own_limit_turner.standing(knob->knobs, out_limit_w, out_error);
}

void fly_power_knob_close(struct fly_power_knob *knob)
{
    if (knob == NULL)
        return;
    own_knobs_close(knob->knobs);
    free(knob);
}
