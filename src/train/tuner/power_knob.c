/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's own way to set power limits, for programs that choose them. */
#include <flyball/power_knob.h>

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "train/tuner/idle_turner.h"
#include "train/tuner/own_knobs.h"

struct fly_power_knob {
    uint64_t forks; /* identifies the process that made it */
    struct own_knobs *knobs;
    const struct fly_turner *turner; /* own_limit_turner, or with steps the idle one before it */
    void *data;
    bool turned;
    /* With steps. */
    bool follows;
    uint64_t steps;
    struct idle_turner idle;
    struct fly_turner_range range;
};

int fly_power_knob_open(struct fly_meter *meter, struct fly_power_knob **out_knob,
                        struct fly_error *out_error)
{
    struct fly_power_knob *knob = malloc(sizeof *knob);
    int code;

    if (knob == NULL)
        return error_no_memory(out_error);
    *knob = (struct fly_power_knob){.forks = fork_generation(), .turner = &own_limit_turner};
    code = own_knobs_open(meter, &knob->knobs, out_error);
    knob->data = knob->knobs;
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

/* Where the GPUs are released the knobs may not be asked. Between this and idle_turner_let_go they are not.
 */
static bool hold(struct fly_power_knob *knob)
{
    if (!knob->follows)
        return false;
    idle_turner_hold(&knob->idle);
    return idle_turner_is_idle(&knob->idle);
}

int fly_power_knob_range(struct fly_power_knob *knob, double *out_lowest_w, double *out_highest_w,
                         struct fly_error *out_error)
{
    struct fly_turner_range range;
    int code = check(knob, out_error);

    if (code < 0)
        return code;
    if (hold(knob))
        range = knob->range;
    else
        code = own_limit_turner.range(knob->knobs, &range, out_error);
    if (knob->follows)
        idle_turner_let_go(&knob->idle);
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
    if (knob->follows && !(limit_w >= knob->range.lowest && limit_w <= knob->range.highest))
        return error_set(out_error, FLY_EUSAGE,
                         "a power limit of %g W is none of these GPUs; they take %g to %g W", limit_w,
                         knob->range.lowest, knob->range.highest);
    knob->turned = true;
    return knob->turner->set(knob->data, limit_w, out_error);
}

int fly_power_knob_limit(struct fly_power_knob *knob, double *out_limit_w, struct fly_error *out_error)
{
    int code = check(knob, out_error);
    double start_w;

    if (code < 0)
        return code;
    if (!knob->follows || !idle_turner_is_idle(&knob->idle))
        return knob->turner->standing(knob->data, out_limit_w, out_error);
    start_w = idle_turner_start(knob->data);
    if (isnan(start_w))
        return error_set(out_error, FLY_EREAD, "the limit that the GPUs were given back with is not known");
    *out_limit_w = start_w;
    return 0;
}

int fly_power_knob_hold_clock(struct fly_power_knob *knob, enum fly_clock clock, uint32_t floor_mhz,
                              uint32_t ceiling_mhz, struct fly_error *out_error)
{
    int code = check(knob, out_error);

    if (code < 0)
        return code;
    if (knob->follows)
        return error_set(out_error, FLY_ESTATE,
                         "the knob follows steps and turns limits alone; open another one for clocks");
    knob->turned = true;
    return own_knobs_hold_clock(
        knob->knobs, clock == FLY_CLOCK_GPU ? QUANTITY_CLOCK_CEILING : QUANTITY_MEMORY_CLOCK_CEILING,
        (struct clock_range){.floor_mhz = floor_mhz, .ceiling_mhz = ceiling_mhz}, out_error);
}

int fly_power_knob_follow_steps(struct fly_power_knob *knob, double give_back_s, struct fly_error *out_error)
{
    int code = check(knob, out_error);
    double start_w;

    if (code == 0 && !(give_back_s >= 0.0))
        code = error_set(out_error, FLY_EUSAGE, "%g s without a step are none; give 0 or more", give_back_s);
    if (code == 0 && (knob->follows || knob->turned))
        code = error_set(out_error, FLY_ESTATE,
                         "the knob follows steps from its opening on, or not at all; "
                         "say so once, before the first limit is set");
    if (code == 0)
        code = own_limit_turner.range(knob->knobs, &knob->range, out_error);
    if (code < 0)
        return code;
    idle_turner_init(&knob->idle, &(struct idle_options){.steps = &knob->steps,
                                                         .clock = &clock_real,
                                                         .give_back_s = give_back_s,
                                                         .open = own_knobs_take,
                                                         .close = own_knobs_give_back,
                                                         .data = knob->knobs});
    knob->follows = true;
    idle_turner_add(&knob->idle, &knob->turner, &knob->data);
    (void)knob->turner->standing(knob->data, &start_w, NULL); /* it remembers */
    return 0;
}

int fly_power_knob_step_begin(struct fly_power_knob *knob, struct fly_error *out_error)
{
    int code = check(knob, out_error);
    double gap_s;

    if (code < 0 || !knob->follows)
        return code;
    idle_turner_look(&knob->idle);
    if (idle_turner_is_idle(&knob->idle)) {
        code = idle_turner_wake(&knob->idle, &gap_s, out_error);
        if (code < 0)
            return code;
        code = 1;
    }
    __atomic_store_n(&knob->steps, knob->steps + 1, __ATOMIC_RELAXED);
    idle_turner_look(&knob->idle);
    return code;
}

int fly_power_knob_give_back(struct fly_power_knob *knob, struct fly_error *out_error)
{
    int code = check(knob, out_error);

    if (code == 0 && !knob->follows)
        code = error_set(out_error, FLY_ESTATE, "the knob follows no steps; close it to give its GPUs back");
    if (code == 0)
        idle_turner_give_back(&knob->idle);
    return code;
}

void fly_power_knob_close(struct fly_power_knob *knob)
{
    if (knob == NULL)
        return;
    idle_turner_end(&knob->idle);
    own_knobs_close(knob->knobs);
    free(knob);
}
