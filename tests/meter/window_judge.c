/* SPDX-License-Identifier: Apache-2.0 */
#include "window_judge.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/math/order.h"
#include "emulated_machine.h"
#include "meter/figure.h"
#include "meter/meter_handle.h"
#include "model/gpu_model.h"

/* Before the first window, as a training that has run for a while. */
static const double settled_s = 20.0;

const struct judge_span judge_spans[JUDGE_SPANS] = {
    {"20-100 ms", 0.02, 0.1}, {"0.1-1 s", 0.1, 1.0}, {"1-4 s", 1.0, 4.0}, {"4-30 s", 4.0, 30.0}};

/* One window after the other, of lengths of one span. */
struct stream {
    const struct judge_span *span;
    struct judged_windows *out;
    unsigned left;
    fly_window open; /* 0: none */
    double next_s;   /* when it ends, or the next begins */
    double begin_s;
    double truth_j[MADE_LOADS];
};

static void keep(struct judged_windows *of, const struct judged_window *window)
{
    if (of->count == of->capacity) {
        of->capacity = of->capacity == 0 ? 1024 : 2 * of->capacity;
        of->windows = realloc(of->windows, of->capacity * sizeof of->windows[0]);
        if (of->windows == NULL)
            abort();
    }
    of->windows[of->count++] = *window;
}

void judge_free(struct judged_windows spans[JUDGE_SPANS])
{
    for (int i = 0; i < JUDGE_SPANS; i++) {
        free(spans[i].windows);
        spans[i] = (struct judged_windows){.windows = NULL};
    }
}

static double truth_j(const struct machine *machine, unsigned gpu)
{
    return emulator_truth_energy_j(machine->emulator, gpu, machine->clock.now(machine->clock.state));
}

/* What an open window holds so far if counter and sampled power are not joined. */
static struct figure plain_figure(const struct machine *machine, const struct stream *stream, unsigned gpu)
{
    uint32_t slot = (uint32_t)(stream->open & UINT32_MAX) - 1;
    struct account *account = &machine->meter->accounts[gpu];
    double length_s = machine_now_s(machine) - stream->begin_s;
    struct device_reading reading;
    struct account_window window;
    struct figure figure;

    device_read(account->device, &machine->clock, account_wanted(account), &reading);
    account_peek(account, slot, &reading, &window);
    figure = figure_by_counter(&window, length_s);
    if (!figure.known) {
        figure = figure_by_integral(&window, length_s);
        figure.known = figure.known && !figure_is_averaged_away(&window.sensing, length_s);
    }
    figure.known = figure.known && figure.half_j < figure.energy_j;
    return figure;
}

static void begin(struct machine *machine, struct stream *stream)
{
    double ratio = stream->span->to_s / stream->span->from_s;

    assert_int_equal(fly_meter_begin(machine->meter, "judged", &stream->open, NULL), 0);
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++)
        stream->truth_j[gpu] = truth_j(machine, gpu);
    stream->begin_s = machine_now_s(machine);
    stream->next_s =
        stream->begin_s + stream->span->from_s * exp(test_uniform(&machine->random) * log(ratio));
}

static void end(struct machine *machine, struct stream *stream)
{
    struct fly_device_energy energies[MADE_LOADS];
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = energies, .device_capacity = MADE_LOADS};
    struct figure plain[MADE_LOADS] = {{.known = false}};

    for (unsigned gpu = 0; gpu < machine->gpus; gpu++)
        plain[gpu] = plain_figure(machine, stream, gpu);
    assert_int_equal(fly_meter_end(machine->meter, stream->open, &measured, NULL), 0);
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        const struct fly_device_energy *energy = &energies[gpu];

        keep(stream->out, &(struct judged_window){
                              .figure = energy->source != FLY_ENERGY_UNAVAILABLE,
                              .disputed = strstr(energy->note, "sampled power gives") != NULL,
                              .length_s = machine_now_s(machine) - stream->begin_s,
                              .truth_j = truth_j(machine, gpu) - stream->truth_j[gpu],
                              .energy_j = energy->energy_j,
                              .half_j = energy->uncertainty_j,
                              .plain_figure = plain[gpu].known,
                              .plain_j = plain[gpu].energy_j,
                              .plain_half_j = plain[gpu].half_j,
                          });
    }
    stream->open = 0;
    stream->left--;
    stream->next_s = machine_now_s(machine) + 0.3 * test_uniform(&machine->random);
}

static struct stream *next_of(struct stream streams[JUDGE_SPANS])
{
    struct stream *next = NULL;

    for (int i = 0; i < JUDGE_SPANS; i++) {
        if (streams[i].left > 0 && (next == NULL || streams[i].next_s < next->next_s))
            next = &streams[i];
    }
    return next;
}

static void start(struct machine *machine, const struct judge_case *of, struct window_load loads[MADE_LOADS])
{
    struct machine_load sources[MADE_LOADS];
    char settings[256];

    for (unsigned gpu = 0; gpu < MADE_LOADS; gpu++) {
        loads[gpu] = window_load_draw(of->load, gpu_shape_find(of->model)->highest_limit_w,
                                      of->seed * 1000 + 16 * of->load + gpu);
        sources[gpu] = (struct machine_load){window_load_next, &loads[gpu]};
    }
    snprintf(settings, sizeof settings, "time=virtual,model=%s,noise-w=%g,%s", of->model, of->noise_w,
             of->settings);
    machine_start(machine, settings, true, 0.0, of->seed, sources);
}

void judge_measure(const struct judge_case *of, struct judged_windows spans[JUDGE_SPANS])
{
    static struct machine machine;
    struct window_load loads[MADE_LOADS];
    struct stream streams[JUDGE_SPANS], *stream;

    start(&machine, of, loads);
    for (int i = 0; i < JUDGE_SPANS; i++)
        streams[i] = (struct stream){.span = &judge_spans[i],
                                     .out = &spans[i],
                                     .left = (of->windows[i] + MADE_LOADS - 1) / MADE_LOADS,
                                     .next_s = machine_now_s(&machine) + settled_s + i};
    while ((stream = next_of(streams)) != NULL) {
        machine_move_to(&machine, stream->next_s);
        if (stream->open == 0)
            begin(&machine, stream);
        else
            end(&machine, stream);
    }
    machine_stop(&machine);
}

static double quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof values[0], order_doubles);
    return count > 0 ? values[(size_t)(share * (double)(count - 1))] : NAN;
}

static struct judge_figures judge_figures(const struct judged_windows *of, bool plain)
{
    struct judge_figures figures = {.count = 0};
    double *errors = malloc(2 * (of->count + 1) * sizeof errors[0]), *halves;

    if (errors == NULL)
        abort();
    halves = errors + of->count;
    for (size_t i = 0; i < of->count; i++) {
        const struct judged_window *window = &of->windows[i];
        double error_j = fabs((plain ? window->plain_j : window->energy_j) - window->truth_j);
        double half_j = plain ? window->plain_half_j : window->half_j;

        if (plain ? !window->plain_figure : !window->figure)
            continue;
        errors[figures.count] = error_j / window->truth_j;
        halves[figures.count++] = half_j / window->truth_j;
        figures.covered += error_j <= half_j;
    }
    figures.error_median = quantile(errors, figures.count, 0.5);
    figures.error_p95 = quantile(errors, figures.count, 0.95);
    figures.half_median = quantile(halves, figures.count, 0.5);
    free(errors);
    return figures;
}

struct judge_finding judge_find(const struct judged_windows *of)
{
    struct judge_finding finding = {
        .windows = of->count, .meter = judge_figures(of, false), .plain = judge_figures(of, true)};

    for (size_t i = 0; i < of->count; i++)
        finding.disputed += of->windows[i].disputed;
    return finding;
}

double judge_chance(size_t hits, size_t trials, double share)
{
    double n = (double)trials, chance = 0.0;

    for (size_t i = 0; i <= hits; i++) {
        double k = (double)i;

        chance += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) + k * log(share) +
                      (n - k) * log1p(-share));
    }
    return chance;
}
