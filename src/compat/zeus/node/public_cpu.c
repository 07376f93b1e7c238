/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that read CPU packages and their memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "compat/zeus/node/public_private.h"
#include "shapes/shape_rows.h"

enum { ID_MAX = 12, LINE_MAX_BYTES = 64 };

/* The part of "cpu-0" and "dram-0" that names the package. */
static const char *package_of(const char *uuid)
{
    const char *at = strchr(uuid, '-');

    return at != NULL ? at : "";
}

size_t public_find_cpus(struct watch *watch, struct public_cpu cpus[WATCH_CPUS_MAX])
{
    struct device_info infos[WATCH_CPUS_MAX];
    size_t places = watch_cpu_count(watch), count = 0;

    for (size_t i = 0; i < places; i++) {
        watch_gpu_info(watch, WATCH_CPU_FIRST + i, &infos[i]);
        if (infos[i].kind == DEVICE_CPU)
            cpus[count++] = (struct public_cpu){.id = infos[i].index, .cpu = WATCH_CPU_FIRST + i, .dram = -1};
    }
    for (size_t i = 0; i < places; i++) {
        for (size_t cpu = 0; cpu < count && infos[i].kind == DEVICE_DRAM; cpu++) {
            const char *package = package_of(infos[cpus[cpu].cpu - WATCH_CPU_FIRST].uuid);

            if (strcmp(package_of(infos[i].uuid), package) == 0)
                cpus[cpu].dram = (int)(WATCH_CPU_FIRST + i);
        }
    }
    return count;
}

/* ---- which are meant ---- */

/* Keeps those of the list, in its order; notes a failure for each that is not there. */
static size_t keep_named(struct public_exchange *exchange, struct public_cpu cpus[WATCH_CPUS_MAX],
                         size_t count)
{
    const struct public_query *query = &exchange->query;
    struct public_cpu kept[WATCH_CPUS_MAX] = {{0}};
    size_t kept_count = 0;

    for (size_t i = 0; i < query->id_count; i++) {
        char text[LINE_MAX_BYTES];
        size_t at = 0;

        while (at < count && cpus[at].id != query->ids[i])
            at++;
        if (at < count) {
            kept[kept_count++] = cpus[at];
            continue;
        }
        snprintf(text, sizeof text, "there is no CPU %u", query->ids[i]);
        public_fail(&exchange->failures, query->ids[i], PUBLIC_BAD, text);
    }
    memcpy(cpus, kept, kept_count * sizeof kept[0]);
    return kept_count;
}

bool public_take_cpus(struct public_exchange *exchange, struct public_cpu cpus[WATCH_CPUS_MAX],
                      size_t *out_count)
{
    const struct node_public_options *options = &exchange->public->options;
    size_t count = public_find_cpus(options->watch, cpus);

    if (!admit_reads_cpus(options->admit, exchange->request)) {
        public_refuse(
            exchange->answer, PUBLIC_FORBIDDEN,
            "CPUs are not shown without a token that holds; send one, or use the daemon's Unix socket");
        return false;
    }
    if ((exchange->query.given & PUBLIC_BIT(PUBLIC_CPU_IDS)) != 0)
        count = keep_named(exchange, cpus, count);
    *out_count = count;
    return !public_answer_failures(exchange);
}

/* ---- energy ---- */

struct energy {
    char id[ID_MAX];
    struct {
        int64_t cpu_energy_uj, dram_energy_uj; /* -1: unknown, or not asked for */
    } figures;
};
struct energies {
    const struct energy *rows;
    size_t count;
};
/* clang-format off */
static const struct shape_field figure_rows[] = {
    {.name = "cpu_energy_uj", .at = 0, .kind = SHAPE_I64, .most = INT64_MAX, .null = SHAPE_BELOW_0},
    {.name = "dram_energy_uj", .at = sizeof(int64_t), .kind = SHAPE_I64, .most = INT64_MAX, .null = SHAPE_BELOW_0},
};
static const struct shape figures_shape = {.size = 2 * sizeof(int64_t), .fields = figure_rows, .count = 2};
/* clang-format on */
static const struct shape_field energy_rows[] = {
    {SHAPE_AT(energy, id), .kind = SHAPE_CHARS, .longest = ID_MAX - 1},
    {SHAPE_AT(energy, figures), SHAPE_IS_STRUCT(&figures_shape)},
};
static const struct shape energy_shape = {SHAPE_OF(energy, energy_rows)};
static const struct shape_field energies_rows[] = {
    {SHAPE_AT(energies, rows), .kind = SHAPE_MAP, .shape = &energy_shape, .longest = UINT32_MAX,
     .beside = offsetof(struct energies, count)},
};
static const struct shape energies_shape = {SHAPE_OF(energies, energies_rows), .bare = true};

/* A total goes on where the counter wraps. */
static int64_t total_uj(struct watch *watch, size_t place)
{
    struct watch_device device;

    watch_look(watch, place, &device);
    return device.total.counts ? device.total.energy_uj : -1;
}

void public_cpu_energy(struct public_exchange *exchange)
{
    const uint32_t *wanted = exchange->query.values;
    struct watch *watch = exchange->public->options.watch;
    struct public_cpu cpus[WATCH_CPUS_MAX];
    struct energy rows[WATCH_CPUS_MAX];
    struct energies answer = {.rows = rows};

    if (!public_take_cpus(exchange, cpus, &answer.count))
        return;
    for (size_t i = 0; i < answer.count; i++) {
        snprintf(rows[i].id, ID_MAX, "%u", cpus[i].id);
        rows[i].figures.cpu_energy_uj = wanted[PUBLIC_CPU] != 0 ? total_uj(watch, cpus[i].cpu) : -1;
        rows[i].figures.dram_energy_uj =
            wanted[PUBLIC_DRAM] != 0 && cpus[i].dram >= 0 ? total_uj(watch, (size_t)cpus[i].dram) : -1;
    }
    serve_answer_struct(exchange->answer, PUBLIC_OK, &energies_shape, &answer);
}

/* ---- power ---- */

int64_t public_mean_mw(const struct watch_sample *sample)
{
    return sample->since_s > 0 ? (int64_t)llround(sample->energy_j / sample->since_s * 1e3) : -1;
}

struct power {
    char id[ID_MAX];
    struct {
        int64_t cpu_mw, dram_mw; /* -1: unknown */
    } figures;
};
struct powers {
    int64_t timestamp_ms;
    const struct power *rows;
    size_t count;
};
/* clang-format off */
static const struct shape_field power_figure_rows[] = {
    {.name = "cpu_mw", .at = 0, .kind = SHAPE_I64, .most = INT64_MAX},
    {.name = "dram_mw", .at = sizeof(int64_t), .kind = SHAPE_I64, .most = INT64_MAX, .null = SHAPE_BELOW_0},
};
static const struct shape power_figures_shape = {.size = 2 * sizeof(int64_t), .fields = power_figure_rows, .count = 2};
/* clang-format on */
static const struct shape_field power_rows[] = {
    {SHAPE_AT(power, id), .kind = SHAPE_CHARS, .longest = ID_MAX - 1},
    {SHAPE_AT(power, figures), SHAPE_IS_STRUCT(&power_figures_shape)},
};
static const struct shape power_shape = {SHAPE_OF(power, power_rows)};
static const struct shape_field powers_rows[] = {
    {SHAPE_AT(powers, timestamp_ms), SHAPE_IS_TIME},
    {SHAPE_AT_AS("power_mw", powers, rows), .kind = SHAPE_MAP, .shape = &power_shape, .longest = UINT32_MAX,
     .beside = offsetof(struct powers, count)},
};
static const struct shape powers_shape = {SHAPE_OF(powers, powers_rows)};

static int read_power(struct watch *watch, const struct public_cpu *cpu, struct power *out_power,
                      int64_t *out_unix_ms, struct fly_error *out_error)
{
    struct watch_sample sample;
    int code = watch_latest(watch, cpu->cpu, &sample, out_error);

    if (code < 0)
        return error_set(out_error, FLY_EREAD, "%s", out_error->text);
    snprintf(out_power->id, ID_MAX, "%u", cpu->id);
    out_power->figures.cpu_mw = public_mean_mw(&sample);
    if (out_power->figures.cpu_mw < 0)
        return error_set(out_error, FLY_EREAD, "CPU %u was read only once so far; ask again", cpu->id);
    *out_unix_ms = sample.unix_ms;
    out_power->figures.dram_mw = cpu->dram >= 0 && watch_latest(watch, (size_t)cpu->dram, &sample, NULL) == 0
                                     ? public_mean_mw(&sample)
                                     : -1;
    return 0;
}

void public_cpu_power(struct public_exchange *exchange)
{
    struct public_cpu cpus[WATCH_CPUS_MAX];
    struct power rows[WATCH_CPUS_MAX];
    struct powers answer = {.rows = rows};

    if (!public_take_cpus(exchange, cpus, &answer.count))
        return;
    for (size_t i = 0; i < answer.count; i++) {
        int64_t unix_ms = 0;
        struct fly_error error;
        int code = read_power(exchange->public->options.watch, &cpus[i], &rows[i], &unix_ms, &error);

        if (code < 0)
            public_fail(&exchange->failures, cpus[i].id, public_status(code), error.text);
        if (unix_ms > answer.timestamp_ms)
            answer.timestamp_ms = unix_ms;
    }
    if (!public_answer_failures(exchange))
        serve_answer_struct(exchange->answer, PUBLIC_OK, &powers_shape, &answer);
}
