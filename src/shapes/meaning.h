/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_MEANING_H
#define FLYBALL_SHAPES_MEANING_H

#include <stddef.h>

/*
 * What a figure means, in one place: its name and unit, how it behaves, and a sentence.
 *
 * These rows define the columns of tables and CSV, the members of JSON rows, the metric families of
 * Prometheus, and help --quantities. A table of rows is in the file that computes its figures:
 *
 *     static const struct meaning columns[] = {
 *         {"node", "node", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine of the device."},
 *         {"energy_j", "energy (J)", MEANING_REAL, 1, "J", MEANING_COUNTER, "Energy of the device."},
 *     };
 *     static const struct quantities quantities = {"a device of a machine", QUANTITIES(columns)};
 *
 * All of it is constant and in static storage.
 */

enum meaning_type {
    MEANING_TEXT,
    MEANING_DATE,  /* also a text: "2024-05-01T12:00:00Z" */
    MEANING_WHOLE, /* a whole number */
    MEANING_REAL,
    MEANING_LIST, /* of texts */
};

/* How the figure behaves. Prometheus has the same words for the last three. */
enum meaning_course {
    MEANING_FACT,    /* says what something is: a name, a number in place of a name, a setting */
    MEANING_GAUGE,   /* a momentary value, a mean, a share, a change: do not add it up */
    MEANING_COUNTER, /* may be added up, over time and over what it is of: joules, seconds, trials */
    MEANING_HISTOGRAM,
};

struct meaning {
    const char *key;   /* for programs, with the unit: "energy_j"; "" when only people see it */
    const char *title; /* for people: "energy (J)" */
    enum meaning_type type;
    int decimals;     /* of a real number, for people; or MEANING_DIGITS */
    const char *unit; /* "J"; NULL: none */
    enum meaning_course course;
    const char *help; /* one sentence, with its full stop */
};

/* In place of decimals: enough decimals to show the column's least value with this many digits. */
#define MEANING_DIGITS(digits) (-(digits))

/* A table of rows, each of which is or contains a meaning. */
struct quantities {
    const char *of; /* what a row of figures is of: "a device of a machine" */
    const struct meaning *first;
    size_t count;
    size_t stride; /* bytes from one meaning to the next */
};

/* Initialize the last three members: from an array of meanings, or of rows that have one in `member`. */
#define QUANTITIES(rows) (rows), sizeof(rows) / sizeof(rows)[0], sizeof(rows)[0]
#define QUANTITIES_IN(rows, member) &(rows)[0].member, sizeof(rows) / sizeof(rows)[0], sizeof(rows)[0]

const struct meaning *quantities_at(const struct quantities *quantities, size_t index);

/* "text", "date", "whole number", "number"; "fact", "gauge", "counter", "histogram". */
const char *meaning_type_name(enum meaning_type type);
const char *meaning_course_name(enum meaning_course course);

#endif
