/* SPDX-License-Identifier: Apache-2.0 */
#include "emulated_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/control.h"
#include "model/gpu_model.h"

static const struct gpu_load load = {
    .sample_s = 0.2e-3, .step_s = 4e-3, .half_busy_batch = 24.0, .nature = {.clock_share = 0.7}};

struct emulated_work {
    struct emulator *emulator;
    struct clock clock;
    const struct gpu_shape *shape;
    double pace;
    unsigned gpu;
    int slot;
};

/* The number in a variable; `otherwise` when it is none. */
static double number_of(const char *name, double otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    double value = text != NULL ? strtod(text, &end) : 0.0;

    return text != NULL && end != text && value >= 0.0 ? value : otherwise;
}

/* The number at that place of CUDA_VISIBLE_DEVICES; the place itself where the variable has none there. */
static unsigned gpu_at(unsigned place)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    char *end = NULL;

    for (unsigned i = 0; i < place && text != NULL; i++) {
        text = strchr(text, ',');
        text = text != NULL ? text + 1 : NULL;
    }
    if (text != NULL) {
        unsigned long number = strtoul(text, &end, 10);

        return end != text ? (unsigned)number : place;
    }
    return place;
}

struct emulated_work *emulated_work_begin(unsigned place)
{
    const char *path = getenv("FLYBALL_EMULATOR_STATE");
    struct emulated_work *work = calloc(1, sizeof *work);
    struct emulator_load idle = {.wanted_w = 0.0};

    if (work == NULL || path == NULL || emulator_open(path, &work->emulator, NULL) < 0) {
        free(work);
        return NULL;
    }
    work->clock = emulator_clock(work->emulator);
    work->shape = emulator_shape(work->emulator, 0);
    idle.wanted_w = work->shape->idle_w;
    work->pace = fmax(number_of("EMULATED_PACE", 1.0), 0.01);
    work->gpu = (unsigned)fmin(gpu_at(place), emulator_gpu_count(work->emulator) - 1.0);
    if (emulator_work_begin(work->emulator, work->gpu, &idle, &work->slot, NULL) < 0) {
        emulator_close(work->emulator);
        free(work);
        return NULL;
    }
    return work;
}

double emulated_work_load(struct emulated_work *work, uint32_t samples)
{
    struct emulator_load wanted = {gpu_wanted_w(work->shape, &load, samples), 1.0, 0, true, load.nature};

    emulator_work_change(work->emulator, work->gpu, work->slot, &wanted);
    return (load.sample_s * samples + load.step_s) * emulator_slowdown(work->emulator, work->gpu) /
           work->pace;
}

void emulated_work_step(struct emulated_work *work, uint32_t samples)
{
    double time_s;

    if (work == NULL)
        return;
    time_s = emulated_work_load(work, samples);
    work->clock.sleep_until(work->clock.state, mono_after_s(work->clock.now(work->clock.state), time_s));
}

void emulated_work_end(struct emulated_work *work)
{
    if (work == NULL)
        return;
    emulator_work_end(work->emulator, work->gpu, work->slot);
    emulator_close(work->emulator);
    free(work);
}
