/* SPDX-License-Identifier: Apache-2.0 */
/* Waits with the first limit until the GPUs have work, and finds those that have none. */
#include <math.h>
#include <stdio.h>

#include "meter/meter.h"
#include "train/tuner/tuner_private.h"

static const double look_s = 0.1; /* between looks, about */
/* Drivers tell of work up to a second late, and of one GPU before another. */
static const double others_s = 2.0;

static const struct device *gpu_at(const struct fly_tuner *tuner, size_t place)
{
    const struct device_list *list = meter_devices(tuner->options.meter);

    return place < list->count && list->devices[place].info.kind == DEVICE_GPU ? &list->devices[place] : NULL;
}

/* Whether a GPU has work at this moment; what its driver does not tell counts as work. */
static bool may_work(const struct fly_tuner *tuner, const struct device *gpu)
{
    struct device_reading reading;
    const struct reading *use = &reading.values[QUANTITY_UTILIZATION];

    device_read(gpu, tuner->clock, QUANTITY_BIT(QUANTITY_UTILIZATION), &reading);
    return use->state != READING_OK || use->value > 0;
}

/* Looks at the GPUs of this rank, and at what they did since the last epoch began. */
static void look(struct fly_tuner *tuner, double *out_gpus, double *out_seen)
{
    struct fly_measurement measured = tuner_measurement(tuner);
    struct tuner_work *work = &tuner->work;
    const struct device *gpu;

    if (tuner->cost.open &&
        meter_peek_at_once(tuner->options.meter, tuner->cost.window, &measured, NULL) == 0)
        (void)tuner_note_work(tuner);
    *out_gpus = *out_seen = 0.0;
    for (size_t i = 0; (gpu = gpu_at(tuner, i)) != NULL; i++) {
        work->seen[i] = work->seen[i] || may_work(tuner, gpu);
        *out_gpus += 1.0;
        *out_seen += work->seen[i];
    }
}

/* Leaves those GPUs alone that had no work; a rank without work turns its GPUs with the others. */
static double leave_alone(struct fly_tuner *tuner, double seen)
{
    struct tuner_work *work = &tuner->work;
    double tuned = 0.0;

    for (size_t i = 0; gpu_at(tuner, i) != NULL; i++) {
        work->left_alone[i] = work->may_leave && seen > 0.0 && !work->seen[i];
        tuned += !work->left_alone[i];
    }
    return tuned;
}

/* Which GPUs have no work, all or those that are left alone, and what follows: "GPU 1 had no work". */
static void say(const struct fly_tuner *tuner, bool left_alone, const char *follows,
                char text[FLY_TUNER_TEXT_MAX])
{
    const struct tuner_work *work = &tuner->work;
    const struct device *gpu;
    char names[FLY_TUNER_TEXT_MAX / 2] = "";
    size_t count = 0, length = 0;

    for (size_t i = 0; (gpu = gpu_at(tuner, i)) != NULL; i++) {
        if ((left_alone && !work->left_alone[i]) || length >= sizeof names)
            continue;
        length += (size_t)snprintf(names + length, sizeof names - length, count++ > 0 ? ", %u" : "%u",
                                   gpu->info.index);
    }
    if (count > 0)
        snprintf(text, FLY_TUNER_TEXT_MAX, "GPU%s %s had no work%s", count > 1 ? "s" : "", names, follows);
}

const bool *tuner_left_alone(struct fly_tuner *tuner)
{
    tuner->work.may_leave = true;
    return tuner->work.left_alone;
}

void tuner_work_text(const struct fly_tuner *tuner, char text[FLY_TUNER_TEXT_MAX])
{
    say(tuner, false, "", text);
}

/* The GPUs with work are known: those alone are tuned. Whether they are others than before. Collective. */
static bool begin(struct fly_tuner *tuner, double seen)
{
    double tuned = leave_alone(tuner, seen), nothing = 0.0, before = (double)tuner->key.gpu_count;
    double usual_w = tuner->highest_power_w * before;

    if (!tuner_exchange(tuner, &tuned, 1, &nothing, 0) || tuned == before)
        return false;
    tuner->key.gpu_count = (uint64_t)tuned;
    if (tuner->options.max_power_w == usual_w)
        tuner->options.max_power_w = tuner->highest_power_w * tuned;
    tuner->report.knob_note[0] = '\0';
    say(tuner, true, ": left alone", tuner->report.knob_note);
    return true;
}

enum tuner_work_state tuner_ask_work(struct fly_tuner *tuner)
{
    struct tuner_work *work = &tuner->work;
    struct mono_time now;
    double sums[2], maxima[2], seen;

    tuner_cost_open(tuner);
    if (tuner->count.begun < work->look_at)
        return work->state;
    now = tuner->clock->now(tuner->clock->state);
    look(tuner, &sums[0], &sums[1]);
    seen = sums[1];
    maxima[0] = work->every > 0.0 ? mono_elapsed_s(work->looked, now) : 0.0;
    maxima[1] = work->state == TUNER_WORK_SOME ? mono_elapsed_s(work->since, now) : 0.0;
    if (!tuner_exchange(tuner, sums, 2, maxima, 2))
        return work->state;
    /* All ranks count the same steps to the next look. */
    work->every = fmax(1.0, fmin(2.0 * work->every, floor(work->every * look_s / maxima[0])));
    work->look_at = tuner->count.begun + (uint64_t)work->every;
    work->looked = now;
    if (sums[1] == sums[0] || maxima[1] >= others_s) {
        work->state = TUNER_WORK_FOUND;
        work->others = begin(tuner, seen);
    } else if (sums[1] > 0.0 && work->state != TUNER_WORK_SOME) {
        work->state = TUNER_WORK_SOME;
        work->since = now;
    } else if (!(sums[1] > 0.0)) {
        work->state = TUNER_WORK_NONE;
    }
    return work->state;
}
