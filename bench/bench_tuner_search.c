/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon and how surely the tuner finds the best limit, in virtual time on all emulated boards.
 *
 *     bench_tuner_search LIBRARY [SEED [TUNINGS]]
 *
 * First, steps and time until the tuner has settled, its check included, against the public rule: every limit
 * for 10 steps of warm-up and 40 measured ones. Then random tunings from the distribution of
 * docs/explanation/tuning_how.md: how far the chosen limit's cost is above the least that the bound allows,
 * as measured on the board without noise.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flyball/tuner.h>

#include "base/math/order.h"
#include "device/backend.h"
#include "emulator/boards.h"
#include "emulator/control.h"
#include "meter/meter.h"
#include "model/gpu_model.h"
#include "policy/power_score.h"
#include "train/tuner/tuner.h"

enum { LIMITS_MAX = 64, PUBLIC_STEPS = 50, RUN_STEPS = 20000, TUNINGS = 200, TUNINGS_MAX = 5000 };

/* The limits that are tried are this far apart. */
static const double apart_w = 25.0;
/* A step is cut into pieces no longer than this, so that it feels how a limit settles. */
static const double piece_s = 0.05;
/* The noise of windows changes with the limit, and after this time. */
static const double visit_s = 30.0;

/* A training on a board. */
struct training {
    const char *board;
    double step_s;      /* at full clock */
    double clock_share; /* of that time, which the clock stretches */
    double drawn;       /* power wanted, as a share of the way from the lowest to the highest limit */
    double step_noise, window_noise;
    struct fly_objective objective;
};

struct scene {
    struct training training;
    struct emulator *emulator;
    struct clock clock;
    struct device_list list;
    struct fly_meter *meter;
    char path[64];
    double lowest_w, highest_w, wanted_w;
    uint64_t random;
    double visited_w, visit_time, visit_power;
    struct mono_time visit_until;
};

/* What is true of a limit. */
struct truth {
    size_t count;
    struct fly_power_point points[LIMITS_MAX]; /* highest first */
};

static const char *library;

__attribute__((noreturn)) static void die(const char *text)
{
    fprintf(stderr, "bench_tuner_search: %s\n", text);
    exit(1);
}

static double uniform(uint64_t *random)
{
    uint64_t bits = *random += UINT64_C(0x9e3779b97f4a7c15);

    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((bits ^ bits >> 31) >> 11) * 0x1p-53;
}

/* 1 on average, nearly normal: a sum of uniforms. */
static double noisy(struct scene *scene, double spread)
{
    double sum = -6.0;

    for (int i = 0; i < 12; i++)
        sum += uniform(&scene->random);
    return fmax(1.0 + spread * sum, 0.1);
}

static int scene_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    const struct scene *scene = data;

    (void)out_error;
    *out_range =
        (struct fly_turner_range){.lowest = scene->lowest_w, .highest = scene->highest_w, .step = apart_w};
    return 0;
}

static int scene_set(void *data, double limit_w, struct fly_error *out_error)
{
    struct scene *scene = data;

    return emulator_set_limit_w(scene->emulator, 0, limit_w, out_error);
}

static int scene_standing(void *data, double *out_limit_w, struct fly_error *out_error)
{
    struct scene *scene = data;

    (void)out_error;
    *out_limit_w = emulator_limit_w(scene->emulator, 0);
    return 0;
}

static const struct fly_turner scene_turner = {scene_range, scene_set, scene_standing};

static void scene_start(struct scene *scene, const struct training *training, uint64_t seed)
{
    struct emulator_settings settings = emulator_default_settings;
    struct meter_parts parts = {.devices = &scene->list, .clock = &scene->clock, .threadless = true};
    struct device_options options = {.nvml_path = library, .clock = &scene->clock};
    const struct gpu_shape *shape = gpu_shape_find(training->board);
    struct fly_error error;
    char text[96];

    memset(scene, 0, sizeof *scene);
    scene->training = *training;
    scene->random = seed;
    scene->lowest_w = shape->lowest_limit_w;
    scene->highest_w = shape->highest_limit_w;
    scene->wanted_w = scene->lowest_w + training->drawn * (scene->highest_w - scene->lowest_w);
    snprintf(scene->path, sizeof scene->path, "/tmp/flyball-bench-search-%d", (int)getpid());
    unlink(scene->path);
    setenv("FLYBALL_EMULATOR_STATE", scene->path, 1);
    snprintf(text, sizeof text, "gpus=1,seed=%u,time=virtual,model=%s", (unsigned)(seed % 100000),
             training->board);
    if (emulator_settings_parse(&settings, text, &error) < 0 ||
        emulator_create(scene->path, &settings, &scene->emulator, &error) < 0)
        die(error.text);
    scene->clock = emulator_clock(scene->emulator);
    if (device_backend_nvml.open(&options, &scene->list, &error) < 0 ||
        meter_new(&parts, &scene->meter, &error) < 0)
        die(error.text);
}

static void scene_stop(struct scene *scene)
{
    fly_meter_close(scene->meter);
    device_list_close(&scene->list);
    emulator_close(scene->emulator);
    emulator_remove(scene->path, NULL);
}

static struct mono_time now(const struct scene *scene)
{
    return scene->clock.now(scene->clock.state);
}

static void pass(struct scene *scene, double duration_s)
{
    struct mono_time until = mono_after_s(now(scene), duration_s);

    while (meter_next_sample(scene->meter).ns <= until.ns) {
        scene->clock.sleep_until(scene->clock.state, meter_next_sample(scene->meter));
        meter_sample(scene->meter);
    }
    scene->clock.sleep_until(scene->clock.state, until);
}

/* One step that wants so much power and takes so long at full clock. */
static void work(struct scene *scene, double wanted_w, double full_clock_s)
{
    double share = scene->training.clock_share;

    emulator_set_load(scene->emulator, 0, wanted_w);
    while (full_clock_s > 1e-9) {
        double slower = share / emulator_speed(scene->emulator, 0) + 1.0 - share;
        double piece = fmin(full_clock_s * slower, piece_s);

        pass(scene, piece);
        full_clock_s -= piece / slower;
    }
}

static void step(struct scene *scene)
{
    const struct training *training = &scene->training;
    double limit_w = emulator_limit_w(scene->emulator, 0);

    if (limit_w != scene->visited_w || now(scene).ns >= scene->visit_until.ns) {
        scene->visited_w = limit_w;
        scene->visit_time = noisy(scene, training->window_noise);
        scene->visit_power = noisy(scene, training->window_noise);
        scene->visit_until = mono_after_s(now(scene), visit_s);
    }
    work(scene, scene->wanted_w * scene->visit_power * noisy(scene, training->step_noise),
         training->step_s * scene->visit_time * noisy(scene, training->step_noise));
}

/* Measures every limit on the board itself, without noise and after it has settled. */
static void find_truth(struct scene *scene, struct truth *out_truth)
{
    enum { SETTLING = 2, MEASURED = 4 }; /* s */

    memset(out_truth, 0, sizeof *out_truth);
    while (scene->highest_w - apart_w * (double)out_truth->count >= scene->lowest_w) {
        double limit_w = scene->highest_w - apart_w * (double)out_truth->count;
        struct fly_power_point *point = &out_truth->points[out_truth->count++];
        double step_s = scene->training.step_s, steps = ceil(MEASURED / step_s), energy_j;
        struct mono_time begin;

        emulator_set_limit_w(scene->emulator, 0, limit_w, NULL);
        for (int i = 0; i < SETTLING / step_s; i++)
            work(scene, scene->wanted_w, step_s);
        begin = now(scene);
        energy_j = emulator_truth_energy_j(scene->emulator, 0, begin);
        for (int i = 0; i < steps; i++)
            work(scene, scene->wanted_w, step_s);
        energy_j = emulator_truth_energy_j(scene->emulator, 0, now(scene)) - energy_j;
        point->limit_w = limit_w;
        point->time_s = mono_elapsed_s(begin, now(scene)) / steps;
        point->power_w = energy_j / mono_elapsed_s(begin, now(scene));
    }
    emulator_set_limit_w(scene->emulator, 0, scene->highest_w, NULL);
    pass(scene, 1.0);
}

static const struct fly_power_point *find_point(const struct truth *truth, double limit_w)
{
    for (size_t i = 0; i < truth->count; i++) {
        if (truth->points[i].limit_w == limit_w)
            return &truth->points[i];
    }
    die("the tuner chose a limit that was not to be tried");
}

struct verdict {
    double excess; /* of the chosen limit's cost over the least that the bound allows; 0 beyond the bound */
    double beyond; /* by how much the chosen limit exceeds the bound, as a fraction; 0: it does not */
};

static struct verdict judge(const struct scene *scene, const struct truth *truth, double limit_w)
{
    const struct fly_objective *objective = &scene->training.objective;
    double allowed_s = objective->max_slowdown * truth->points[0].time_s * (1.0 + 1e-9), best = INFINITY;
    const struct fly_power_point *chosen = find_point(truth, limit_w);

    for (size_t i = 0; i < truth->count; i++) {
        if (truth->points[i].time_s <= allowed_s)
            best = fmin(best, power_score(&truth->points[i], objective, scene->highest_w));
    }
    if (chosen->time_s > allowed_s)
        return (struct verdict){0.0, chosen->time_s / allowed_s - 1.0};
    return (struct verdict){power_score(chosen, objective, scene->highest_w) / best - 1.0, 0.0};
}

/* One tuning: its search, and what was chosen when it had settled and at the end. */
struct outcome {
    double steps, time_s;
    double public_steps, public_time_s;
    struct verdict settled, end;
};

static double chosen_w(const struct fly_tuner *tuner)
{
    struct fly_tuner_report report = {.size = sizeof report};

    (void)fly_tuner_report(tuner, &report);
    if (report.state == FLY_TUNER_STOPPED)
        die(report.text);
    return report.limit_w;
}

/* Makes steps until the tuner has settled, or `most` have been made; returns how many. */
static unsigned step_until_settled(struct scene *scene, struct fly_tuner *tuner, unsigned most)
{
    unsigned steps = 0;

    while (steps < most && fly_tuner_state(tuner) != FLY_TUNER_SETTLED) {
        (void)fly_tuner_step_begin(tuner);
        step(scene);
        steps++;
    }
    return steps;
}

static struct outcome run(const struct training *training, uint64_t seed, unsigned run_steps)
{
    struct scene scene;
    struct truth truth;
    struct outcome outcome = {0};
    struct fly_tuner_options options = {
        .size = sizeof options, .turner = &scene_turner, .turner_data = &scene};
    struct fly_tuner *tuner;
    struct fly_error error;
    struct mono_time begin;
    unsigned steps;

    scene_start(&scene, training, seed);
    find_truth(&scene, &truth);
    options.meter = scene.meter;
    options.objective = training->objective;
    if (tuner_new(&options, &scene.clock, &tuner, &error) < 0)
        die(error.text);
    begin = now(&scene);
    steps = step_until_settled(&scene, tuner, run_steps);
    outcome.steps = steps;
    outcome.time_s = mono_elapsed_s(begin, now(&scene));
    outcome.settled = outcome.end = judge(&scene, &truth, chosen_w(tuner));
    for (size_t i = 0; i < truth.count; i++) {
        outcome.public_steps += PUBLIC_STEPS;
        outcome.public_time_s += PUBLIC_STEPS * truth.points[i].time_s;
    }
    for (; steps < run_steps; steps++) {
        (void)fly_tuner_step_begin(tuner);
        step(&scene);
    }
    if (steps > outcome.steps) {
        step_until_settled(&scene, tuner, run_steps);
        outcome.end = judge(&scene, &truth, chosen_w(tuner));
    }
    fly_tuner_free(tuner);
    scene_stop(&scene);
    return outcome;
}

static double quantile(double *values, size_t count, double share)
{
    size_t place = (size_t)ceil(share * (double)count);

    qsort(values, count, sizeof values[0], order_doubles);
    return values[place > 0 ? place - 1 : 0];
}

/* The public rule's steps and time, on every board, for three lengths of steps and four objectives. */
static void bench_settling(uint64_t seed)
{
    static const double step_s[] = {0.01, 0.04, 0.2};
    static const struct fly_objective objectives[] = {{FLY_OBJECTIVE_ENERGY, 0.0, INFINITY},
                                                      {FLY_OBJECTIVE_ENERGY, 0.0, 1.05},
                                                      {FLY_OBJECTIVE_COST, 0.5, INFINITY},
                                                      {FLY_OBJECTIVE_COST, 0.5, 1.10}};
    enum { STEP_LENGTHS = 3, OBJECTIVES = 4, LOADS = 3, ROW = OBJECTIVES * LOADS, BOARDS_MAX = 16 };

    printf("steps until settled, of the public rule's: every limit, 10 + 40 steps each\n");
    for (size_t k = 0; k < STEP_LENGTHS; k++) {
        double all[ROW * BOARDS_MAX] = {0}, all_time[ROW * BOARDS_MAX] = {0};
        size_t count = 0;

        for (unsigned b = 0; b < emulated_board_count && b < BOARDS_MAX; b++) {
            double row[ROW] = {0}, row_time[ROW] = {0}, steps[ROW] = {0}, public_steps = 0.0;

            for (unsigned i = 0; i < ROW; i++) {
                unsigned load = i / OBJECTIVES;
                const struct training training = {.board = emulated_boards[b].name,
                                                  .step_s = step_s[k],
                                                  .clock_share = 0.7,
                                                  .drawn = 0.6 + 0.15 * load,
                                                  .step_noise = 0.005,
                                                  .window_noise = 0.001,
                                                  .objective = objectives[i % OBJECTIVES]};
                struct outcome outcome = run(&training, seed + i, 10000);

                steps[i] = outcome.steps;
                public_steps = outcome.public_steps;
                all[count] = row[i] = outcome.steps / outcome.public_steps;
                all_time[count++] = row_time[i] = outcome.time_s / outcome.public_time_s;
            }
            printf("  %-10s %3.0f ms  %5.0f of %5.0f steps, %.2f of its steps and %.2f of its time at the "
                   "median, %.2f at most\n",
                   emulated_boards[b].name, step_s[k] * 1e3, quantile(steps, ROW, 0.5), public_steps,
                   quantile(row, ROW, 0.5), quantile(row_time, ROW, 0.5), quantile(row, ROW, 1.0));
        }
        printf("  %-10s %3.0f ms  %.2f of its steps and %.2f of its time at the median, %.2f and %.2f at "
               "most\n",
               "all", step_s[k] * 1e3, quantile(all, count, 0.5), quantile(all_time, count, 0.5),
               quantile(all, count, 1.0), quantile(all_time, count, 1.0));
    }
}

/* A random training: the distribution of docs/explanation/tuning_how.md. */
static struct training draw(uint64_t *random)
{
    static const double step_s[] = {0.01, 0.04, 0.2};
    struct training training = {.board =
                                    emulated_boards[(unsigned)(uniform(random) * emulated_board_count)].name};

    training.step_s = step_s[(unsigned)(uniform(random) * 3.0)];
    training.clock_share = 0.3 + 0.7 * uniform(random);
    training.drawn = 0.4 + 0.6 * uniform(random);
    training.step_noise = 0.002 * pow(10.0, uniform(random));
    training.window_noise = fmax(0.003 * (2.0 * uniform(random) - 1.0), 0.0);
    training.objective.max_slowdown = uniform(random) < 0.5 ? INFINITY : 1.02 + 0.13 * uniform(random);
    training.objective.kind = uniform(random) < 0.5 ? FLY_OBJECTIVE_ENERGY : FLY_OBJECTIVE_COST;
    training.objective.eta =
        training.objective.kind == FLY_OBJECTIVE_COST ? 0.3 + 0.6 * uniform(random) : 0.0;
    return training;
}

static void print_verdicts(const char *when, const struct verdict *verdicts, size_t count, size_t bounded)
{
    static double excess[TUNINGS_MAX];
    size_t near = 0, beyond = 0;
    double most_beyond = 0.0;

    for (size_t i = 0; i < count; i++) {
        excess[i] = verdicts[i].excess;
        beyond += verdicts[i].beyond > 0.0;
        most_beyond = fmax(most_beyond, verdicts[i].beyond);
        near += verdicts[i].excess <= 0.01 && verdicts[i].beyond == 0.0;
    }
    printf("  %-18s within 1 %% of the best allowed cost: %zu of %zu; excess p95 %.2f %%, p99 %.2f %%, at "
           "most %.2f %%; bound broken in %zu of %zu, by %.2f %% at most\n",
           when, near, count, 100.0 * quantile(excess, count, 0.95), 100.0 * quantile(excess, count, 0.99),
           100.0 * quantile(excess, count, 1.0), beyond, bounded, 100.0 * most_beyond);
}

static void bench_choices(uint64_t seed, size_t count)
{
    static struct verdict settled[TUNINGS_MAX], end[TUNINGS_MAX];
    static double ratios[TUNINGS_MAX];
    uint64_t random = seed;
    size_t bounded = 0;

    for (size_t i = 0; i < count; i++) {
        struct training training = draw(&random);
        struct outcome outcome = run(&training, seed * 7919 + i, RUN_STEPS);

        settled[i] = outcome.settled;
        end[i] = outcome.end;
        ratios[i] = outcome.steps / outcome.public_steps;
        bounded += isfinite(training.objective.max_slowdown);
        if (getenv("FLYBALL_BENCH_SHOW") != NULL && (end[i].excess > 0.01 || end[i].beyond > 0.0))
            printf("    %zu: %s, steps of %g ms, clock share %.2f, draws %.2f, noise %.4f and %.4f, kind %d, "
                   "eta %.2f, bound %.4f: excess %.4f, at the end %.4f, beyond %.5f\n",
                   i, training.board, training.step_s * 1e3, training.clock_share, training.drawn,
                   training.step_noise, training.window_noise, (int)training.objective.kind,
                   training.objective.eta, training.objective.max_slowdown, settled[i].excess, end[i].excess,
                   end[i].beyond);
    }
    printf("%zu random tunings with seed %llu, settled after %.2f of the public rule's steps at the median\n",
           count, (unsigned long long)seed, quantile(ratios, count, 0.5));
    print_verdicts("when settled", settled, count, bounded);
    print_verdicts("after 20000 steps", end, count, bounded);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    size_t tunings = argc > 3 ? strtoull(argv[3], NULL, 10) : TUNINGS;

    if (argc < 2 || tunings > TUNINGS_MAX)
        die("usage: bench_tuner_search LIBRARY [SEED [TUNINGS]]");
    library = argv[1];
    bench_settling(seed);
    bench_choices(seed, tunings);
    return 0;
}
