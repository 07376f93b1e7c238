/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GRID_SERIES_H
#define FLYBALL_MODEL_GRID_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * What a kWh from the grid costs over time, in grams of CO2 or in money: one series of periods in
 * UTC, each with its own length, from any provider.
 *
 *     grid_series_init(&series, &kind, 1 << 20);
 *     grid_series_add(&series, &period, out_error);    as they come: unordered, twice, overlapping
 *     grid_series_settle(&series, out_error);          now ordered and without overlap
 *     ... grid_series_at(&series, time_s) ...
 *     grid_series_deinit(&series);
 *
 * Values are g/kWh, or money/kWh in the kind's currency; convert other units first
 * (grid_units.h). A series is of one kind: it never mixes average with marginal figures, direct
 * with life-cycle figures, two providers, or two currencies, and merging series of different
 * kinds is refused. A period whose value is unknown is kept as such. So a gap that the provider
 * states and one that it leaves out are treated alike, and neither reads as zero.
 *
 * Settling resolves overlaps: the period issued last counts; among equally old ones the shorter;
 * then the one added last. So a revision replaces what it revises, and a finer signal replaces a
 * coarser one. Where only a part of a period is replaced, the rest of it stays, so lengths may
 * become uneven. A period without a value never covers one with a value.
 *
 * Pure except for memory. A series belongs to one thread until it is settled; then any thread may
 * read it.
 */
enum grid_quantity { GRID_CARBON, GRID_PRICE, GRID_QUANTITY_COUNT };
enum grid_signal { GRID_SIGNAL_UNKNOWN, GRID_AVERAGE, GRID_MARGINAL, GRID_SIGNAL_COUNT };
enum grid_scope { GRID_SCOPE_UNKNOWN, GRID_DIRECT, GRID_LIFE_CYCLE, GRID_SCOPE_COUNT };

/* How a value was obtained, best first. */
enum grid_quality {
    GRID_MEASURED,
    GRID_ESTIMATED,    /* an actual value that the provider marks as estimated */
    GRID_FORECAST,     /* by the provider */
    GRID_OWN_FORECAST, /* Flyball's, made from history */
    GRID_FALL_BACK,    /* the last known value, or a mean */
    GRID_UNKNOWN,      /* no value: it is NaN */
    GRID_QUALITY_COUNT
};

enum { GRID_NAME_MAX = 32, GRID_CURRENCY_MAX = 8 };

struct grid_kind {
    enum grid_quantity quantity;
    enum grid_signal signal;
    enum grid_scope scope;
    char provider[GRID_NAME_MAX];
    char zone[GRID_NAME_MAX];
    char currency[GRID_CURRENCY_MAX]; /* of prices */
};

#define GRID_TIME_UNKNOWN INT64_MIN

struct grid_period {
    int64_t start_s; /* since 1970, UTC */
    int64_t end_s;   /* the first second after the period */
    double value;    /* NaN: unknown */
    enum grid_quality quality;
    int64_t issued_s; /* when the provider published the value, or GRID_TIME_UNKNOWN, which counts as older
                       * than any time */
};

/* Counts what was left out or cut while a series was made. */
struct grid_remarks {
    size_t missing;     /* periods added without a value, or absent between others */
    size_t zero;        /* intensities of 0, which no grid has: taken as missing */
    size_t absurd;      /* negative intensities, and values too great or infinite: taken as missing */
    size_t duplicates;  /* periods replaced by another of the same span */
    size_t overlapping; /* periods cut or replaced by one of another span */
    size_t unordered;   /* periods that came after a later one */
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

/* Any intensity above this, in g/kWh, is an error of the source; so is any price of more money per kWh. */
#define GRID_CARBON_MOST 5000.0
#define GRID_PRICE_MOST 1e6

void grid_series_init(struct grid_series *series, const struct grid_kind *kind, size_t maximum);
void grid_series_deinit(struct grid_series *series);

/* Returns whether figures of both kinds may be summed. */
bool grid_kind_equal(const struct grid_kind *a, const struct grid_kind *b);

/* Adds a period. FLY_EDATA if it does not end after its start, FLY_ELIMIT beyond the maximum, FLY_ENOMEM. */
int grid_series_add(struct grid_series *series, const struct grid_period *period,
                    struct fly_error *out_error);

/* Adds all periods of `other`; FLY_ECONFLICT if the kinds differ. */
int grid_series_merge(struct grid_series *series, const struct grid_series *other,
                      struct fly_error *out_error);

/*
 * Returns the period of a settled series that holds the moment, even if it has no value; NULL if
 * none does.
 */
const struct grid_period *grid_series_at(const struct grid_series *series, int64_t time_s);

/* Returns the index of the first period that ends after the moment, or `count`. */
size_t grid_series_find(const struct grid_series *series, int64_t time_s);

/*
 * Returns the mean over the known part of [from_s, to_s), and in out_coverage the share of it
 * that is known, 0 .. 1. NaN if nothing is known.
 */
double grid_series_mean(const struct grid_series *series, int64_t from_s, int64_t to_s, double *out_coverage);

/* Returns the usual length of a period: the median; 0 for an empty series. */
int64_t grid_series_step(const struct grid_series *series);

/* Returns whether any period has a value. */
bool grid_series_has_value(const struct grid_series *series);

/* Return "measured", "marginal", ...; static strings. */
const char *grid_quality_name(enum grid_quality quality);
const char *grid_signal_name(enum grid_signal signal);
const char *grid_scope_name(enum grid_scope scope);

/* Orders the periods, and resolves what overlaps. FLY_ELIMIT, FLY_ENOMEM. */
int grid_series_settle(struct grid_series *series, struct fly_error *out_error);

/*
 * Counts as missing the periods that a settled series lacks between its others: as many as fit
 * into each gap.
 */
void grid_series_count_absent(struct grid_series *series);

/* The figures that a kWh may have. */
enum { CARBON_INTENSITY, CARBON_PRICE, CARBON_SIGNALS };

/* What a provider answers (grid/providers.h): two series of one kind. */
struct grid_answer {
    struct grid_series actual;
    struct grid_series published; /* forecasts; empty if there are none */

    /* Why a part of what was wanted is missing or old, although there is an answer; "" if it is complete. */
    char remark[FLY_ERROR_TEXT_MAX];
};

/* The most periods of a series: ten years of five-minute periods. */
enum { GRID_PERIODS_MAX = 1 << 20 };

void grid_answer_deinit(struct grid_answer *answer);

#endif
