/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that read GPUs: from the watch's newest samples, all GPUs that were asked for or none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "compat/zeus/node/public_private.h"
#include "shapes/shape_rows.h"

enum { ID_MAX = 12, UJ_PER_MJ = 1000 };

/* What one GPU answers; which members count, the reading says. */
struct figures {
    uint64_t first, second;
    bool flag;
};
struct row {
    char id[ID_MAX];
    struct figures figures;
};
struct rows {
    int64_t timestamp_ms; /* of the newest sample */
    const struct row *rows;
    size_t count;
};

#define ROW_ID                                                        \
    {                                                                 \
        SHAPE_AT(row, id), .kind = SHAPE_CHARS, .longest = ID_MAX - 1 \
    }
#define ROWS_OF(what) \
    .kind = SHAPE_MAP, .shape = (what), .longest = UINT32_MAX, .beside = offsetof(struct rows, count)
#define FIGURE(title, member)                                           \
    {                                                                   \
        SHAPE_AT_AS(title, figures, member), SHAPE_IS_U64(0, INT64_MAX) \
    }

static const struct shape_field energy_rows[] = {FIGURE("energy_mj", first)};
static const struct shape_field limit_rows[] = {FIGURE("power_limit_mw", first)};
static const struct shape_field constraint_rows[] = {FIGURE("min_power_limit_mw", first),
                                                     FIGURE("max_power_limit_mw", second)};
static const struct shape_field persistence_rows[] = {{SHAPE_AT_AS("enabled", figures, flag), SHAPE_IS_BOOL}};
static const struct shape energy = {SHAPE_OF(figures, energy_rows)}, limit = {SHAPE_OF(figures, limit_rows)},
                          constraints = {SHAPE_OF(figures, constraint_rows)},
                          persistence = {SHAPE_OF(figures, persistence_rows)};

/* {"0": {"energy_mj": 4711}, ...} */
#define MAP_OF(what)                                                                                      \
    static const struct shape_field what##_entry_rows[] = {                                               \
        ROW_ID, {SHAPE_AT(row, figures), SHAPE_IS_STRUCT(&what)}};                                        \
    static const struct shape what##_entry = {SHAPE_OF(row, what##_entry_rows)};                          \
    static const struct shape_field what##_map_rows[] = {{SHAPE_AT(rows, rows), ROWS_OF(&what##_entry)}}; \
    static const struct shape what##_map = {SHAPE_OF(rows, what##_map_rows), .bare = true}
MAP_OF(energy);
MAP_OF(limit);
MAP_OF(constraints);
MAP_OF(persistence);

/* {"timestamp_ms": 1, "power_mw": {"0": 250000, ...}} */
static const struct shape_field power_entry_rows[] = {
    ROW_ID, {SHAPE_AT_AS("power_mw", row, figures.first), SHAPE_IS_U64(0, INT64_MAX)}};
static const struct shape power_entry = {SHAPE_OF(row, power_entry_rows)};
static const struct shape_field power_map_rows[] = {
    {SHAPE_AT(rows, timestamp_ms), SHAPE_IS_TIME},
    {SHAPE_AT_AS("power_mw", rows, rows), ROWS_OF(&power_entry)},
};
static const struct shape power_map = {SHAPE_OF(rows, power_map_rows)};

/* Takes a reading that must be there. */
static int take(const struct watch_sample *sample, enum quantity quantity, uint64_t *out_value,
                struct fly_error *out_error)
{
    const struct reading *reading = &sample->reading.values[quantity];

    if (reading->state == READING_OK && reading->value >= 0) {
        *out_value = (uint64_t)reading->value;
        return 0;
    }
    return error_set(out_error,
                     reading->state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED
                     : reading->state == READING_DENIED    ? FLY_EPERM
                                                           : FLY_EREAD,
                     "%s: %s", quantity_facts[quantity].title, reading_state_clause(reading->state));
}

/* Whether the sample may be older than what a client has turned since. */
static bool is_behind(const struct public_exchange *exchange, const struct watch_sample *sample)
{
    size_t gpu = sample->gpu;

    return gpu < exchange->public->options.leased &&
           sample->reading.before.ns <= atomic_load(&exchange->public->turned_ns[gpu]);
}

static int read_energy(const struct public_exchange *exchange, const struct watch_sample *sample,
                       struct figures *out_figures, struct fly_error *out_error)
{
    int code = take(sample, QUANTITY_ENERGY, &out_figures->first, out_error);

    (void)exchange;
    out_figures->first /= UJ_PER_MJ;
    return code;
}

int public_power_mw(const struct watch_sample *sample, uint64_t *out_power_mw, struct fly_error *out_error)
{
    if (take(sample, QUANTITY_POWER_INSTANT, out_power_mw, NULL) == 0)
        return 0;
    return take(sample, QUANTITY_POWER_AVERAGE, out_power_mw, out_error);
}

static int read_power(const struct public_exchange *exchange, const struct watch_sample *sample,
                      struct figures *out_figures, struct fly_error *out_error)
{
    (void)exchange;
    return public_power_mw(sample, &out_figures->first, out_error);
}

/* A client sees at once what it has set. */
static int read_limit(const struct public_exchange *exchange, const struct watch_sample *sample,
                      struct figures *out_figures, struct fly_error *out_error)
{
    struct leases_gpu hand;
    int code = take(sample, QUANTITY_POWER_LIMIT, &out_figures->first, out_error);

    if (code < 0 || !is_behind(exchange, sample))
        return code;
    leases_look(exchange->public->options.leases, sample->gpu, &hand);
    if (hand.report.set_mw > 0)
        out_figures->first = (uint64_t)hand.report.set_mw;
    return 0;
}

static int read_constraints(const struct public_exchange *exchange, const struct watch_sample *sample,
                            struct figures *out_figures, struct fly_error *out_error)
{
    int code = take(sample, QUANTITY_POWER_LIMIT_MIN, &out_figures->first, out_error);

    (void)exchange;
    return code < 0 ? code : take(sample, QUANTITY_POWER_LIMIT_MAX, &out_figures->second, out_error);
}

/* The watch reads persistence mode seldom, so what is leased counts first. */
static int read_persistence(const struct public_exchange *exchange, const struct watch_sample *sample,
                            struct figures *out_figures, struct fly_error *out_error)
{
    struct leases_gpu hand = {.leases = 0};
    uint64_t value = 0;
    int code = take(sample, QUANTITY_PERSISTENCE, &value, out_error);

    if (code < 0)
        return code;
    if (sample->gpu < exchange->public->options.leased)
        leases_look(exchange->public->options.leases, sample->gpu, &hand);
    if (hand.leases > 0 && (hand.wish.asked & QUANTITY_BIT(QUANTITY_PERSISTENCE)) != 0)
        value = (uint64_t)hand.wish.persistence;
    out_figures->flag = value != 0;
    return 0;
}

static const struct {
    int (*read)(const struct public_exchange *exchange, const struct watch_sample *sample,
                struct figures *out_figures, struct fly_error *out_error);
    const struct shape *shape;
} readings[PUBLIC_READING_COUNT] = {
    [PUBLIC_READ_ENERGY] = {read_energy, &energy_map},
    [PUBLIC_READ_POWER] = {read_power, &power_map},
    [PUBLIC_READ_LIMIT] = {read_limit, &limit_map},
    [PUBLIC_READ_CONSTRAINTS] = {read_constraints, &constraints_map},
    [PUBLIC_READ_PERSISTENCE] = {read_persistence, &persistence_map},
};

/* Reads one GPU; `out_unix_ms` is when its sample was taken. */
static int read_one(const struct public_exchange *exchange, size_t gpu, struct figures *out_figures,
                    int64_t *out_unix_ms, struct fly_error *out_error)
{
    const struct node_public_options *options = &exchange->public->options;
    struct rights_decision decision;
    struct watch_sample sample;

    admit_decide(options->admit, exchange->request, gpu, &decision);
    if (!decision.may_read)
        return error_set(out_error, FLY_EPERM, "%s", decision.why);
    if (watch_latest(options->watch, gpu, &sample, out_error) < 0)
        return error_set(out_error, FLY_EREAD, "%s", out_error->text);
    *out_unix_ms = sample.unix_ms;
    return readings[exchange->route->what].read(exchange, &sample, out_figures, out_error);
}

void public_read_gpus(struct public_exchange *exchange)
{
    struct public_query *query = &exchange->query;
    struct row rows[PUBLIC_IDS_MAX];
    struct rows answer = {.rows = rows};

    public_all_gpus(exchange, query);
    memset(rows, 0, sizeof rows);
    for (size_t i = 0; i < query->id_count; i++) {
        int gpu = public_find_gpu(exchange->public->options.watch, query->ids[i]);
        struct row *row = &rows[answer.count++];
        int64_t unix_ms = 0;
        struct fly_error error;
        int code = gpu < 0 ? error_set(&error, FLY_EUSAGE, "there is no GPU %u", query->ids[i])
                           : read_one(exchange, (size_t)gpu, &row->figures, &unix_ms, &error);

        snprintf(row->id, sizeof row->id, "%u", query->ids[i]);
        if (code < 0)
            public_fail(&exchange->failures, query->ids[i], public_status(code), error.text);
        if (unix_ms > answer.timestamp_ms)
            answer.timestamp_ms = unix_ms;
    }
    if (!public_answer_failures(exchange))
        serve_answer_struct(exchange->answer, PUBLIC_OK, readings[exchange->route->what].shape, &answer);
}
