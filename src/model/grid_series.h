/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GRID_SERIES_H
#define FLYBALL_MODEL_GRID_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * What a kWh from the grid costs over time, in grams of CO2 or in money: one series of
 * periods in UTC, each with its own length, from whatever provider.
 *
 *     grid_series_init(&series, &kind, 1 << 20);
 *     grid_series_add(&series, &period, out_error);    as they come: unordered, twice, overlapping
 *     grid_series_settle(&series, out_error);          now ordered and without overlap
 *     ... grid_series_at(&series, time_s) ...
 *     grid_series_deinit(&series);
 *
 * Values are g/kWh, or money/kWh in the kind's currency; others are converted before
 * (grid_units.h). A series is of one kind: average and marginal, direct and life-cycle
 * figures, two providers, two currencies are never mixed in one, and adding one to the
 * other is refused. A period whose value is not known is kept as such, so that a gap that
 * the provider states and one that it leaves are the same thing and neither is a zero.
 *
 * Settling: where periods overlap the one that was issued last counts, of equally old
 * ones the shorter, then the one that was added last; so a revision replaces what it
 * revises, and a finer signal a coarser one. What a period loses its neighbours keep
 * their part of, so lengths may become uneven. A period without a value never covers
 * one with a value.
 *
 * Pure but for memory; a series is one thread's until it is settled, then anybody's to read.
 */
enum grid_quantity { GRID_CARBON, GRID_PRICE, GRID_QUANTITY_COUNT };
enum grid_signal { GRID_SIGNAL_UNKNOWN, GRID_AVERAGE, GRID_MARGINAL, GRID_SIGNAL_COUNT };
enum grid_scope { GRID_SCOPE_UNKNOWN, GRID_DIRECT, GRID_LIFE_CYCLE, GRID_SCOPE_COUNT };

/* Where a value comes from, best first. */
enum grid_quality {
    GRID_MEASURED,
    GRID_ESTIMATED,    /* an actual value that the provider calls estimated */
    GRID_FORECAST,     /* published */
    GRID_OWN_FORECAST, /* made from history */
    GRID_FALL_BACK,    /* a last value, a mean */
    GRID_UNKNOWN,      /* none: the value is NaN */
    GRID_QUALITY_COUNT
};

enum { GRID_NAME_MAX = 32, GRID_CURRENCY_MAX = 8 };

struct grid_kind {
    enum grid_quantity quantity;
    enum grid_signal signal;
    enum grid_scope scope;
    char provider[GRID_NAME_MAX];
    char zone[GRID_NAME_MAX];
    char currency[GRID_CURRENCY_MAX]; /* of a price */
};

#define GRID_TIME_UNKNOWN INT64_MIN

struct grid_period {
    int64_t start_s; /* since 1970, UTC */
    int64_t end_s;   /* the first second after it */
    double value;    /* NaN: not known */
    enum grid_quality quality;
    int64_t issued_s; /* when the provider said so, or GRID_TIME_UNKNOWN, which is older than any */
};

/* What was left out or cut while a series was made. */
struct grid_remarks {
    size_t missing;     /* added without a value, or absent between others */
    size_t zero;        /* an intensity of 0, which no grid has: taken as missing */
    size_t absurd;      /* negative intensities, too great or infinite values: taken as missing */
    size_t duplicates;  /* replaced by another of the same span */
    size_t overlapping; /* cut or replaced by one of another span */
    size_t unordered;   /* came after a later one */
};

struct grid_series {
    struct grid_kind kind;
    struct grid_period *periods; /* owned */
    size_t count;
    size_t capacity;
    size_t maximum;
    bool settled;
    struct grid_remarks remarks;
};

/* An intensity above this, in g/kWh, is an error of the source; so is a price of more money per kWh. */
#define GRID_CARBON_MOST 5000.0
#define GRID_PRICE_MOST 1e6

void grid_series_init(struct grid_series *series, const struct grid_kind *kind, size_t maximum);
void grid_series_deinit(struct grid_series *series);

/* Whether figures of both may stand in one sum. */
bool grid_kind_equal(const struct grid_kind *a, const struct grid_kind *b);

/* FLY_EDATA for a period that does not end after its start, FLY_ELIMIT beyond the maximum, FLY_ENOMEM. */
int grid_series_add(struct grid_series *series, const struct grid_period *period,
                    struct fly_error *out_error);

/* All periods of `other`; FLY_ECONFLICT where the kinds differ. */
int grid_series_merge(struct grid_series *series, const struct grid_series *other,
                      struct fly_error *out_error);

/* Of a settled series: the period that holds the moment, or NULL; one without a value is returned too. */
const struct grid_period *grid_series_at(const struct grid_series *series, int64_t time_s);

/* The index of the first period that ends after the moment; `count` when there is none. */
size_t grid_series_find(const struct grid_series *series, int64_t time_s);

/*
 * Mean over the known part of [from_s, to_s), and which share of it is known, 0 .. 1.
 * NaN where nothing is.
 */
double grid_series_mean(const struct grid_series *series, int64_t from_s, int64_t to_s, double *out_coverage);

/* The usual length of a period: the median; 0 for an empty series. */
int64_t grid_series_step(const struct grid_series *series);

/* "measured", "marginal", ...; static. */
const char *grid_quality_name(enum grid_quality quality);
const char *grid_signal_name(enum grid_signal signal);
const char *grid_scope_name(enum grid_scope scope);

#endif
