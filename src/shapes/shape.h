/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_SHAPE_H
#define FLYBALL_SHAPES_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

/*
 * Converts plain structs to JSON objects and back. A shape is the table of a struct's members. The same table
 * writes the struct, reads it with an error for each fault, and describes it by a JSON Schema, so the three
 * cannot differ. shape_rows.h has macros for the tables' rows.
 *
 *     code = shape_parse(body, length, &json, out_error);
 *     code = shape_read(&shape_epoch, json, SHAPE_STRICT, &arena, &epoch, out_error);
 *     ... "member 'hardware.gpu_count': expected a whole number from 1 to 4294967295" ...
 *     code = shape_write(&shape_answered, &answered, &json, out_error);
 *
 * Numbers that JSON cannot express are null when a member allows it: unknown ones (NAN) or infinite ones
 * (INFINITY). Texts are UTF-8 without control characters.
 */
enum __attribute__((packed)) shape_kind {
    SHAPE_U32,
    SHAPE_U64, /* at most INT64_MAX */
    SHAPE_I32, /* an int; here and in SHAPE_I64 `least` may be below 0 */
    SHAPE_I64,
    SHAPE_SIZE,   /* a size_t */
    SHAPE_NUMBER, /* a double */
    SHAPE_BOOL,
    SHAPE_WORD,        /* an enum by its word */
    SHAPE_TEXT,        /* const char *; NULL is written as "", or as null with SHAPE_OR_NULL */
    SHAPE_CHARS,       /* char[longest + 1] */
    SHAPE_OBJECT,      /* const char *, the text of any JSON object */
    SHAPE_JSON,        /* json_t *, any value; reading borrows it, writing shares it */
    SHAPE_JSON_OBJECT, /* like SHAPE_JSON, but an object */
    SHAPE_CODED,       /* a text that functions write and read: struct shape_coding */
    SHAPE_STRUCT,      /* a struct within the struct */
    SHAPE_U32S,        /* lists: a pointer, with a size_t `beside` it */
    SHAPE_NUMBERS,     /* of doubles */
    SHAPE_TEXTS,       /* of const char * */
    SHAPE_STRUCTS,
    SHAPE_STRUCTS_HERE, /* an array of `longest` within the struct */
    SHAPE_MAP,    /* an object with any members, as a list of structs: the first row of `shape` is a member's
                     name (any kind of text), the second its value */
    SHAPE_REST,   /* like SHAPE_MAP, for the members that no other row names; an array of `longest` within the
                     struct; the last row */
    SHAPE_MERGED, /* only written: a pointer to a struct, whose members are written among those of this one;
                     members without a reason of their own get this row's */
    SHAPE_POINTED, /* only written: a pointer to a struct, as a value of its own; NULL is null */
    SHAPE_MADE,    /* only written: what `make` returns for the struct, a new reference; NULL is null */
};

enum __attribute__((packed)) shape_need {
    SHAPE_NEEDED,
    SHAPE_OPTIONAL, /* when missing, it gets the shape's default */
    SHAPE_FLAGGED,  /* a bool `beside` it says whether it is present */
    SHAPE_SPARING,  /* optional; when it has no information ("", NAN, 0, false, no JSON, no pointer) it is not
                       written, so that a service older than the member accepts it */
};

enum __attribute__((packed)) shape_null {
    SHAPE_NOT_NULL,
    SHAPE_UNKNOWN,    /* NAN */
    SHAPE_ENDLESS,    /* INFINITY */
    SHAPE_NOT_FINITE, /* NAN; an infinite number is also written as null */
    SHAPE_ZERO,       /* 0, for a whole number */
    SHAPE_BELOW_0,    /* any value below 0, for a whole number that is only written */
    SHAPE_OR_NULL,    /* NULL, for a text or a JSON value */
    SHAPE_AS_MISSING, /* reads as if the member were missing */
    SHAPE_AS_DEFAULT, /* the shape's default, for a whole number, a number or a text */
};

enum __attribute__((packed)) shape_range {
    SHAPE_ANY,
    SHAPE_FROM_0,
    SHAPE_ABOVE_0,
    SHAPE_FROM_0_TO_1,
    SHAPE_FROM_1
};

struct shape;

enum { SHAPE_CODED_MAX = 128 /* bytes of a coded text, with its NUL */ };

struct shape_coding {
    const char *expected;                            /* "where the generator stands" */
    size_t size;                                     /* bytes of the value */
    bool (*read)(const char *text, void *out_value); /* returns false unless it is one */
    void (*write)(const void *value, char text[SHAPE_CODED_MAX]);
};

/* One row. Tables of rows are constants of the program, so a row is kept small. */
struct shape_field {
    const char *name;
    const char *about; /* one line */
    enum shape_kind kind;
    enum shape_need need;
    enum shape_null null;
    enum shape_range range; /* of a number, or of a list's numbers */
    bool free_text;         /* control characters are allowed */
    bool any_bytes;   /* of a text that is written: if it is not UTF-8, '?' replaces each byte above ASCII */
    bool loose;       /* a value that does not fit reads as the default; in a list, so does an entry */
    bool or_one;      /* of a list of structs: an object is read as a list of one */
    uint32_t at;      /* offset of the member */
    uint32_t beside;  /* offset of a list's size_t, or of the bool of SHAPE_FLAGGED */
    uint32_t because; /* offset of a const char * (not the first member) that says why; 0: `unavailable` */
    uint32_t longest; /* bytes of a text without its NUL, entries of a list */
    uint32_t word_count;
    union {                                /* by the kind: */
        const char *const *words;          /* SHAPE_WORD */
        const struct shape_coding *coding; /* SHAPE_CODED */
        json_t *(*make)(const void *from); /* SHAPE_MADE */
        const struct shape *shape;         /* of the structs inside, for all kinds that shape_inside knows */
    };
    uint64_t least, most; /* of whole numbers, also in a list; least: also bytes of a text */
    double highest;       /* of a number; 0: only the range's */
    double times;         /* of a number that is only written: the factor applied, 100 for %; 0: 1 */
    const char *expected; /* what errors say is expected; NULL: derived from the rest */
    const char
        *unavailable; /* why it is null, for the member NAME_unavailable after it; NULL: no such member */
};

/* The shape of the structs inside; NULL when the row's kind has none. */
const struct shape *shape_inside(const struct shape_field *field);

struct shape {
    const char *name;  /* "Epoch": the name of its schema */
    const char *about; /* NULL, like the name, when no schema is needed */
    size_t size;       /* bytes of the struct */
    const struct shape_field *fields;
    size_t count;
    const void *defaults; /* a struct with the values of missing members; NULL: 0, "", or what null means */
    bool as_list;         /* written as the list of its members' values, [100.0, 93.5, 1.2]; all are needed */
    bool longer;          /* such a list may be longer: further values are ignored */
    bool bare;            /* written as the value of its only row, without a name */
    const struct shape_field *alone; /* of a list: for a value that is no list; NULL: that is an error */
};

/*
 * Parses a JSON object or another value; stores a new reference. Returns FLY_EUSAGE with the line and column
 * when the text is no JSON, or names a member twice.
 */
int shape_parse(const char *text, size_t length, json_t **out_json, struct fly_error *out_error);

enum shape_manners {
    SHAPE_STRICT,    /* refuses unknown members, as a service does */
    SHAPE_LENIENT,   /* ignores unknown members, as a client of a newer service or a reader of a log does */
    SHAPE_BORROWING, /* like SHAPE_LENIENT, but texts are not copied: they are valid as long as the JSON */
    SHAPE_FOREIGN,   /* lenient, and a member may occur twice: for JSON of other programs */
};

/*
 * Reads a struct. Returns FLY_EDATA for a member that is missing, unknown, of another kind or out of its
 * range, FLY_ELIMIT for a text or list that is too long; the text names the member by its path. Texts and
 * lists go into the arena, which may be NULL when there are none. `out_struct` is written only on success;
 * parts of it that no row describes are zero.
 */
int shape_read(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
               void *out_struct, struct fly_error *out_error);

/*
 * A fault of a text, in parts, for errors with their own wording.
 *
 *     code = shape_read_text(&shape_report, text, length, SHAPE_LENIENT, &arena, &report, &fault, NULL);
 *     ... "run.json:17: field 'devices[1].energy_j': expected a number from 0, found -3"
 */
enum { SHAPE_PATH_SHOWN = 256, SHAPE_EXPECTED_MAX = 256, SHAPE_FOUND_MAX = 41 };
struct shape_fault {
    bool no_json;                      /* the text does not parse: `expected` is the parser's message */
    size_t line, column;               /* from 1, in the text; the column only when it does not parse */
    char path[SHAPE_PATH_SHOWN];       /* "devices[1].energy_j"; "": the whole text */
    char expected[SHAPE_EXPECTED_MAX]; /* "a number from 0" */
    char found[SHAPE_FOUND_MAX]; /* the begin of the value found; "nothing" when the member is missing */
};

/*
 * Like shape_parse, but returns FLY_EDATA. After an error fills in `out_fault`, unless NULL, like the
 * functions below.
 */
int shape_parse_as(const char *text, size_t length, enum shape_manners manners, json_t **out_json,
                   struct shape_fault *out_fault, struct fly_error *out_error);

/* Like shape_read; the fault has no line until shape_fault_locate finds it in the text. */
int shape_read_as(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
                  void *out_struct, struct shape_fault *out_fault, struct fly_error *out_error);

void shape_fault_locate(struct shape_fault *fault, const char *text, size_t length);

/* Parses and reads a text, which need not be kept; not with SHAPE_BORROWING. */
int shape_read_text(const struct shape *shape, const char *text, size_t length, enum shape_manners manners,
                    struct arena *arena, void *out_struct, struct shape_fault *out_fault,
                    struct fly_error *out_error);

/*
 * Writes a struct; stores a new reference. Returns FLY_EDATA and FLY_ELIMIT, as above, for what could not be
 * read back.
 */
int shape_write(const struct shape *shape, const void *from, json_t **out_json, struct fly_error *out_error);

/*
 * Writes what a program tells, by a shape that refuses nothing (shape_told.h): returns a new reference, NULL
 * without memory.
 */
json_t *shape_tell(const struct shape *shape, const void *from);

/*
 * Like shape_tell for several structs, as a list; and for texts, where '?' replaces bytes above ASCII when a
 * text is not UTF-8.
 */
json_t *shape_tell_list(const struct shape *shape, const void *first, size_t count);
json_t *shape_tell_texts(const char *const *texts, size_t count);

/* Replaces one member of an object; keeps all others, known or not, and their order. */
int shape_write_member(const struct shape *shape, const char *name, const void *from, json_t *object,
                       struct fly_error *out_error);

/* Like shape_write, as text without blanks; the caller frees it. */
int shape_write_text(const struct shape *shape, const void *from, char **out_text,
                     struct fly_error *out_error);

enum shape_style {
    SHAPE_COMPACT,     /* without blanks */
    SHAPE_INDENTED,    /* on several lines */
    SHAPE_NINE_DIGITS, /* without blanks, at most nine digits a number */
    SHAPE_SPARE,       /* without blanks, with the fewest digits that read back: 250, 0.1 */
    SHAPE_SPARE_ASCII, /* the same, with escapes for characters beyond ASCII */
};

/* Appends the text; base/buffer.h explains how a buffer reports that it is full or lacks memory. */
int shape_put(const struct shape *shape, const void *from, enum shape_style style, struct buffer *out,
              struct fly_error *out_error);

/*
 * Visits each member that the two structs are written with differently: with its values before and now, NULL
 * for none. Members that both have, or only the first has, come first.
 */
typedef void shape_difference(void *context, const char *name, const json_t *before, const json_t *now);
int shape_differences(const struct shape *shape, const void *before, const void *now, shape_difference *visit,
                      void *context, struct fly_error *out_error);

/*
 * Returns the JSON Schema (2020-12) of the shape; it refers to shapes inside as "#/components/schemas/NAME".
 * `closed` shapes have no other members. NULL when memory is exhausted.
 */
json_t *shape_schema(const struct shape *shape, bool closed);

/* ---- for shape_read.c, shape_write.c and shape_schema.c ---- */

/* What a number must be, in words and bounds. */
struct shape_bounds {
    const char *words; /* "a number from 0" */
    double least;      /* -INFINITY: none */
    double most;
    bool above; /* least itself is excluded */
};
const struct shape_bounds *shape_bounds_of(enum shape_range range);
bool shape_in_range(enum shape_range range, double value);             /* finite, and in the range */
bool shape_number_fits(const struct shape_field *field, double value); /* and not above its highest */

/* Whether the value has the form in which the shape is written: an object, or a list. */
bool shape_is_form(const struct shape *shape, const json_t *json);

/* The value that null means. */
double shape_of_null(enum shape_null null);

/*
 * A place in a document: a member or an entry of an outer place. Each is on the stack of the function that
 * reads or writes it, and becomes a text, "hardware.limits_w[3]", only when there is a fault.
 */
struct shape_path {
    const struct shape_path *outer; /* NULL: the whole */
    const char *name;               /* NULL: an entry */
    size_t index;
};

/* Fills in the fault for a field that was refused with that code. */
void shape_fault_fill(struct shape_fault *fault, const struct shape_path *path,
                      const struct shape_field *field, bool entry, int code, json_t *found);

/* Sets the error `code` with "member 'PATH'" and the rest of the text. */
__attribute__((format(printf, 4, 5))) int shape_complain(const struct shape_path *path, int code,
                                                         struct fly_error *out_error, const char *rest, ...);

/* Returns FLY_EDATA with what the field, or an entry of it, must be. */
int shape_refuse(const struct shape_path *path, const struct shape_field *field, bool entry,
                 struct fly_error *out_error);
int shape_too_long(const struct shape_path *path, size_t longest, const char *what,
                   struct fly_error *out_error);

/* Checks a text against the field: 0, FLY_EDATA or FLY_ELIMIT. */
int shape_check_text(const struct shape_path *path, const struct shape_field *field, const char *text,
                     size_t length, struct fly_error *out_error);

#endif
