/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/sensor.h"

#include <math.h>

#include "base/math/philox.h"
#include "emulator/boards.h"

enum stream { STREAM_PHASES, STREAM_INSTANT, STREAM_AVERAGE };

static const double none = -1.0;

static const int64_t stamps_late_most_ns = 50000000;

static const struct emulated_board *board_of(const struct emulated_gpu *gpu)
{
    return &emulated_boards[gpu->board];
}

static struct philox random_at(const struct emulated_gpu *gpu, enum stream stream, int64_t index)
{
    struct philox_key key = {.seed = gpu->sensor.seed, .job = gpu->index};

    return philox_open(key, (uint32_t)stream, (uint64_t)index, 0);
}

static double uniform(struct philox *random)
{
    return (double)(philox_u64(random) >> 11) * 0x1p-53;
}

/* Twelve uniform numbers minus their mean: a variance of 1, and never beyond 6. */
static double noise(const struct emulated_gpu *gpu, enum stream stream, int64_t tick)
{
    struct philox random = random_at(gpu, stream, tick);
    double sum = -6.0;

    if (gpu->sensor.noise_w <= 0.0)
        return 0.0;
    for (int i = 0; i < 12; i++)
        sum += uniform(&random);
    return gpu->sensor.noise_w * sum;
}

/* The last update at or before `at_ns`, counted from the phase; may be negative. */
static int64_t tick_at(int64_t at_ns, int64_t period_ns, int64_t phase_ns)
{
    int64_t since = at_ns - phase_ns;
    int64_t tick = since / period_ns;

    return since % period_ns < 0 ? tick - 1 : tick;
}

static int64_t tick_ns(int64_t tick, int64_t period_ns, int64_t phase_ns)
{
    return phase_ns + tick * period_ns;
}

/* The moment to which a value that is updated every `period_ns` refers. */
static int64_t made_ns(int64_t at_ns, int64_t period_ns, int64_t phase_ns)
{
    if (period_ns == 0)
        return at_ns;
    return tick_ns(tick_at(at_ns, period_ns, phase_ns), period_ns, phase_ns);
}

static unsigned read_mw(const struct emulated_gpu *gpu, enum stream stream, double window_s, int64_t made)
{
    double mean_w = history_mean_w(&gpu->history, &gpu->inertia, made, window_s);
    double read_w = mean_w * gpu->sensor.gain + noise(gpu, stream, made);

    return (unsigned)(fmax(read_w, 0.0) * 1000.0 + 0.5);
}

static unsigned usage_mw(const struct emulated_gpu *gpu, int64_t made)
{
    if (gpu->sensor.usage_is_average)
        return read_mw(gpu, STREAM_AVERAGE, gpu->sensor.average_window_s, made);
    return read_mw(gpu, STREAM_INSTANT, gpu->sensor.instant_window_s, made);
}

static int64_t power_made_ns(const struct emulated_gpu *gpu, int64_t at_ns)
{
    return made_ns(at_ns, gpu->sensor.power_period_ns, gpu->sensor.power_phase_ns);
}

static void start_sum(struct emulated_gpu *gpu, int64_t now_ns)
{
    const struct emulator_sensor *sensor = &gpu->sensor;

    gpu->summed_j = 0.0;
    gpu->summed_tick =
        sensor->power_period_ns > 0 ? tick_at(now_ns, sensor->power_period_ns, sensor->power_phase_ns) : 0;
}

static bool is_sum(const struct emulator_sensor *sensor)
{
    return sensor->counter_from_power && sensor->power_period_ns > 0;
}

int64_t sensor_counter_made_ns(const struct emulated_gpu *gpu, int64_t at_ns)
{
    int64_t made = gpu->counter_least_ns;

    if (!gpu->sensor.counter_on_read)
        made = counter_clock_made_ns(&gpu->sensor.counter, at_ns);
    return made > gpu->counter_least_ns ? made : gpu->counter_least_ns;
}

/* What was drawn up to `made`, as the counter has it. */
static double updated_j(const struct emulated_gpu *gpu, int64_t made)
{
    if (is_sum(&gpu->sensor))
        return gpu->summed_j;
    return gpu->sensor.gain * history_energy_j(&gpu->history, &gpu->inertia, made);
}

static double counter_j(const struct emulated_gpu *gpu, int64_t at_ns)
{
    if (gpu->sensor.counter_on_read)
        return gpu->counter_offset_j + gpu->counter_read_j;
    return gpu->counter_offset_j + updated_j(gpu, sensor_counter_made_ns(gpu, at_ns));
}

/* From here on, the counter's value is at least as new as at `at_ns`. */
static void update_on_read(struct emulated_gpu *gpu, int64_t at_ns)
{
    gpu->counter_least_ns = at_ns;
    gpu->counter_read_j = updated_j(gpu, at_ns);
}

static void choose_windows(struct emulator_sensor *sensor, const struct emulated_board *board,
                           enum emulator_sensor_kind kind)
{
    static const struct {
        double period_s, instant_window_s, average_window_s;
        bool usage_is_average;
    } kinds[] = {
        [EMULATOR_SENSOR_PART_TIME] = {0.1, 0.025, -1.0, false},
        [EMULATOR_SENSOR_SECOND] = {0.1, -1.0, 1.0, true},
        [EMULATOR_SENSOR_EXACT] = {0.0, 0.0, -1.0, false},
    };

    if (kind == EMULATOR_SENSOR_BOARD) {
        sensor->power_period_ns = (int64_t)(board->power_period_s * 1e9 + 0.5);
        sensor->instant_window_s = board->instant_window_s;
        sensor->average_window_s = board->average_window_s > 0.0 ? board->average_window_s : none;
        sensor->usage_is_average = board->usage_is_average;
        return;
    }
    sensor->power_period_ns = (int64_t)(kinds[kind].period_s * 1e9 + 0.5);
    sensor->instant_window_s = kinds[kind].instant_window_s;
    sensor->average_window_s = kinds[kind].average_window_s;
    sensor->usage_is_average = kinds[kind].usage_is_average;
}

static int64_t ns_of(double duration_s)
{
    return (int64_t)(duration_s * 1e9 + 0.5);
}

static struct counter_clock counter_clock_of(const struct emulated_gpu *gpu,
                                             const struct emulator_settings *settings, double period_s)
{
    return (struct counter_clock){.period_ns = ns_of(period_s),
                                  .origin_ns = gpu->settled_ns,
                                  .slew_ppm = settings->counter_slew_ppm,
                                  .slew_s = settings->counter_slew_s,
                                  .slew_steps = settings->counter_slew_steps,
                                  .jitter_ns = ns_of(settings->counter_jitter_s),
                                  .skipped = settings->counter_skip,
                                  .sleeps = sleeps_of(settings, gpu->settled_ns),
                                  .seed = settings->seed,
                                  .gpu = gpu->index};
}

void sensor_init(struct emulated_gpu *gpu, const struct emulator_settings *settings)
{
    struct emulator_sensor *sensor = &gpu->sensor;
    double period_s = board_of(gpu)->counter_period_s;
    struct philox random;

    *sensor = (struct emulator_sensor){
        .counter_from_power = settings->counter_from_power,
        .counter_missing = settings->counter_missing,
        .counter_on_read = settings->counter_on_read,
        .counter_step_mj = settings->counter_step_mj,
        .stamps = settings->stamps,
        .gain = settings->gain,
        .noise_w = emulator_setting_or(settings, settings->noise_w, board_of(gpu)->noise_w),
        .seed = settings->seed};
    choose_windows(sensor, board_of(gpu), settings->sensor);
    if (!isnan(settings->counter_period_s))
        period_s = settings->counter_period_s;
    else if (settings->sensor == EMULATOR_SENSOR_EXACT)
        period_s = 0.0;
    sensor->counter = counter_clock_of(gpu, settings, period_s);
    random = random_at(gpu, STREAM_PHASES, 0);
    sensor->counter.phase_ns = (int64_t)(uniform(&random) * (double)sensor->counter.period_ns);
    sensor->power_phase_ns = (int64_t)(uniform(&random) * (double)sensor->power_period_ns);
    sensor->counter.drift_ppm = settings->counter_drift_ppm * (2.0 * uniform(&random) - 1.0);
    sensor->stamps_late_ns = (int64_t)(uniform(&random) * (double)stamps_late_most_ns);
    gpu->counter_least_ns = INT64_MIN;
    start_sum(gpu, gpu->settled_ns);
    if (sensor->counter_on_read)
        update_on_read(gpu, gpu->settled_ns);
}

void sensor_change(struct emulated_gpu *gpu, const struct emulator_sensor *sensor, int64_t now_ns)
{
    double before_j = counter_j(gpu, now_ns);

    gpu->sensor = *sensor;
    start_sum(gpu, now_ns);
    if (sensor->counter_on_read)
        update_on_read(gpu, now_ns);
    gpu->counter_offset_j += before_j - counter_j(gpu, now_ns);
}

/* Whether all readings from `made` on are the same until something changes. */
static bool is_steady(const struct emulated_gpu *gpu, int64_t made)
{
    const struct segment *segment = history_newest(&gpu->history);
    double window_s = fmax(gpu->sensor.instant_window_s, gpu->sensor.average_window_s);

    return gpu->sensor.noise_w <= 0.0 &&
           (double)(made - segment->start_ns) / 1e9 > window_s + 50.0 * gpu->inertia.settle_s;
}

void sensor_sum_up_to(struct emulated_gpu *gpu, int64_t at_ns)
{
    const struct emulator_sensor *sensor = &gpu->sensor;
    double period_s = (double)sensor->power_period_ns / 1e9;
    int64_t last;

    if (!is_sum(sensor))
        return;
    /* A counter that is updated by reading may be read at any moment. */
    last = tick_at(sensor->counter_on_read ? at_ns : sensor_counter_made_ns(gpu, at_ns),
                   sensor->power_period_ns, sensor->power_phase_ns);
    while (gpu->summed_tick < last) {
        int64_t made = tick_ns(gpu->summed_tick + 1, sensor->power_period_ns, sensor->power_phase_ns);
        int64_t ticks = is_steady(gpu, made) ? last - gpu->summed_tick : 1;

        gpu->summed_j += usage_mw(gpu, made) / 1000.0 * period_s * (double)ticks;
        gpu->summed_tick += ticks;
    }
}

bool sensor_has_instant(const struct emulated_gpu *gpu)
{
    return gpu->sensor.instant_window_s >= 0.0;
}

bool sensor_has_average(const struct emulated_gpu *gpu)
{
    return gpu->sensor.average_window_s >= 0.0;
}

unsigned sensor_instant_mw(const struct emulated_gpu *gpu, int64_t at_ns)
{
    return read_mw(gpu, STREAM_INSTANT, gpu->sensor.instant_window_s, power_made_ns(gpu, at_ns));
}

unsigned sensor_average_mw(const struct emulated_gpu *gpu, int64_t at_ns)
{
    return read_mw(gpu, STREAM_AVERAGE, gpu->sensor.average_window_s, power_made_ns(gpu, at_ns));
}

unsigned sensor_usage_mw(const struct emulated_gpu *gpu, int64_t at_ns)
{
    return usage_mw(gpu, power_made_ns(gpu, at_ns));
}

unsigned long long sensor_counter_mj(const struct emulated_gpu *gpu, int64_t at_ns)
{
    unsigned long long shown_mj = (unsigned long long)fmax(counter_j(gpu, at_ns) * 1000.0, 0.0);

    return shown_mj - shown_mj % gpu->sensor.counter_step_mj;
}

unsigned long long sensor_read_counter_mj(struct emulated_gpu *gpu, int64_t at_ns)
{
    if (gpu->sensor.counter_on_read && at_ns - gpu->counter_least_ns >= gpu->sensor.counter.period_ns)
        update_on_read(gpu, at_ns);
    return sensor_counter_mj(gpu, at_ns);
}

void sensor_sleep(struct emulated_gpu *gpu, int64_t at_ns, int64_t duration_ns)
{
    gpu->counter_least_ns = sensor_counter_made_ns(gpu, at_ns);
    gpu->sensor.counter.sleeps.more_ns += duration_ns;
}

void sensor_reset_counter(struct emulated_gpu *gpu, int64_t at_ns)
{
    gpu->counter_offset_j -= counter_j(gpu, at_ns);
}

int64_t sensor_power_made_ns(const struct emulated_gpu *gpu, int64_t at_ns)
{
    return power_made_ns(gpu, at_ns);
}
