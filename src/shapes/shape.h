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
 * Plain structs as JSON objects. A shape is the table of a struct's members; from it
 * the struct is written, read with every error named, and described by a JSON Schema,
 * so that the three cannot differ. shape_rows.h has words for the tables' rows.
 *
 *     code = shape_parse(body, length, &json, out_error);
 *     code = shape_read(&shape_epoch, json, SHAPE_STRICT, &arena, &epoch, out_error);
 *     ... "member 'hardware.gpu_count': expected a whole number from 1 to 4294967295" ...
 *     code = shape_write(&shape_answered, &answered, &json, out_error);
 *
 * Numbers that JSON has no words for are null, where a member says so: unknown ones
 * (NAN) or those without an end (INFINITY). Texts are UTF-8 without control characters.
 */
enum __attribute__((packed)) shape_kind {
    SHAPE_U32,
    SHAPE_U64, /* at most INT64_MAX */
    SHAPE_I32, /* an int; of it and SHAPE_I64 `least` may be below 0 */
    SHAPE_I64,
    SHAPE_SIZE,   /* a size_t */
    SHAPE_NUMBER, /* a double */
    SHAPE_BOOL,
    SHAPE_WORD,        /* an enum by its word */
    SHAPE_TEXT,        /* const char *; NULL is written as "", or as null with SHAPE_OR_NULL */
    SHAPE_CHARS,       /* char[longest + 1] */
    SHAPE_OBJECT,      /* const char *, the text of any JSON object */
    SHAPE_JSON,        /* json_t *, any value; borrowed from what is read, shared with what is written */
    SHAPE_JSON_OBJECT, /* the same, an object */
    SHAPE_CODED,       /* a text that functions make and take apart: struct shape_coding */
    SHAPE_STRUCT,      /* one within the struct */
    SHAPE_U32S,        /* lists: a pointer, and a size_t beside it */
    SHAPE_NUMBERS,     /* of doubles */
    SHAPE_TEXTS,       /* of const char * */
    SHAPE_STRUCTS,
    SHAPE_STRUCTS_HERE, /* an array of `longest` within the struct */
    SHAPE_MAP,    /* an object of any members, as a list of structs: the first row of `shape` is a member's
                     name, a text of whatever kind, the second its value */
    SHAPE_REST,   /* the same of what no other row names, in an array of `longest` within the struct; the last
                     row */
    SHAPE_MERGED, /* only written: a pointer to a struct, whose members stand among those of this one; what
                     has no reason of its own has this row's */
    SHAPE_POINTED, /* only written: the same, as a value of its own; NULL is null */
    SHAPE_MADE,    /* only written: what `make` makes of the struct, a new reference; NULL is null */
};

enum __attribute__((packed)) shape_need {
    SHAPE_NEEDED,
    SHAPE_OPTIONAL, /* else it has the shape's default */
    SHAPE_FLAGGED,  /* a bool beside it says whether it is there */
    SHAPE_SPARING,  /* optional, and what says nothing ("", NAN, false, no JSON, no pointer) is not written,
                      so that a service of before the member takes it */
};

enum __attribute__((packed)) shape_null {
    SHAPE_NOT_NULL,
    SHAPE_UNKNOWN,    /* NAN */
    SHAPE_ENDLESS,    /* INFINITY */
    SHAPE_NOT_FINITE, /* NAN; an infinite number is written as null, too */
    SHAPE_ZERO,       /* 0, of a whole number */
    SHAPE_BELOW_0,    /* of a whole number that is only written: what is below 0 */
    SHAPE_OR_NULL,    /* a text or a JSON value, NULL */
    SHAPE_AS_MISSING, /* reads as if the member was not there */
    SHAPE_AS_DEFAULT, /* what the shape's default is, of a whole number, a number, or a text */
};

enum __attribute__((packed)) shape_range {
    SHAPE_ANY,
    SHAPE_FROM_0,
    SHAPE_ABOVE_0,
    SHAPE_FROM_0_TO_1,
    SHAPE_FROM_1
};

struct shape;

enum { SHAPE_CODED_MAX = 128 /* bytes of a coded text, with its end */ };

struct shape_coding {
    const char *expected;                            /* "where the generator stands" */
    size_t size;                                     /* bytes of the value */
    bool (*read)(const char *text, void *out_value); /* whether it is one */
    void (*write)(const void *value, char text[SHAPE_CODED_MAX]);
};

/* One row. Tables of them are constants of the program, so it is kept small. */
struct shape_field {
    const char *name;
    const char *about; /* one line */
    enum shape_kind kind;
    enum shape_need need;
    enum shape_null null;
    enum shape_range range; /* of a number, or of a list's */
    bool free_text;         /* control characters are fine */
    bool any_bytes;   /* of a text that is written: '?' for each byte above ASCII where it is not UTF-8 */
    bool loose;       /* what does not fit reads as the default; of a list, an entry that does not */
    bool or_one;      /* of a list of structs: an object for a list of one */
    uint32_t at;      /* its offset */
    uint32_t beside;  /* offset of a list's size_t, or of the bool of SHAPE_FLAGGED */
    uint32_t because; /* offset of a const char *, not the first member, that says why; 0: `unavailable` */
    uint32_t longest; /* bytes of a text without its end, entries of a list */
    uint32_t word_count;
    union {                                /* by the kind: */
        const char *const *words;          /* SHAPE_WORD */
        const struct shape_coding *coding; /* SHAPE_CODED */
        json_t *(*make)(const void *from); /* SHAPE_MADE */
        const struct shape *shape;         /* of those inside, of all kinds that shape_inside knows */
    };
    uint64_t least, most; /* of whole numbers, or of a list's; least: also bytes of a text */
    double highest;       /* of a number; 0: none but the range's */
    double times;         /* of a number that is only written: the factor to what is told, 100 for %; 0: 1 */
    const char *expected; /* what errors say that it has to be; NULL: what follows from the rest */
    const char
        *unavailable; /* why it is null: what NAME_unavailable behind it says; NULL: there is no such */
};

/* The shape of the structs inside, or NULL where the row's kind has none. */
const struct shape *shape_inside(const struct shape_field *field);

struct shape {
    const char *name;  /* "Epoch": of its schema */
    const char *about; /* NULL, like the name, where nobody asks for a schema */
    size_t size;       /* bytes of the struct */
    const struct shape_field *fields;
    size_t count;
    const void *defaults; /* a struct with what optional members have; NULL: 0, "", or what null stands for */
    bool as_list;         /* written as the list of its members' values, [100.0, 93.5, 1.2]: all are needed */
    bool longer;          /* such a list may be longer: what comes later is passed over */
    bool bare;            /* written as the value of its one row, without a name */
    const struct shape_field *alone; /* of a list: a value that is none is this row's; NULL: that is wrong */
};

/*
 * A JSON object or another value from its text; a new reference. FLY_EUSAGE with the
 * line and column for what is no JSON, or names a member twice.
 */
int shape_parse(const char *text, size_t length, json_t **out_json, struct fly_error *out_error);

enum shape_manners {
    SHAPE_STRICT,    /* refuses unknown members, as a service does */
    SHAPE_LENIENT,   /* passes over them, as a client of a newer service does, and who reads a log */
    SHAPE_BORROWING, /* the same, and texts stay where they are: they last as long as the JSON */
    SHAPE_FOREIGN,   /* lenient, and a member may stand twice: what other programs say */
};

/*
 * FLY_EDATA for a member that is missing, unknown, of another kind or out of its range,
 * FLY_ELIMIT for a text or list that is too long; the text names the member by its path.
 * Texts and lists go into the arena, which may be NULL where there are none. `out_struct` is written to only
 * in success; what no member is for is zero in it.
 */
int shape_read(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
               void *out_struct, struct fly_error *out_error);

/*
 * What is wrong with a text, in parts, for errors that say it in their own words.
 *
 *     code = shape_read_text(&shape_report, text, length, SHAPE_LENIENT, &arena, &report, &fault, NULL);
 *     ... "run.json:17: field 'devices[1].energy_j': expected a number from 0, found -3"
 */
enum { SHAPE_PATH_SHOWN = 256, SHAPE_EXPECTED_MAX = 256, SHAPE_FOUND_MAX = 41 };
struct shape_fault {
    bool no_json;                      /* it does not parse: `expected` is what the parser says of it */
    size_t line, column;               /* from 1, of a text; the column only where it does not parse */
    char path[SHAPE_PATH_SHOWN];       /* "devices[1].energy_j"; "": the whole */
    char expected[SHAPE_EXPECTED_MAX]; /* "a number from 0" */
    char found[SHAPE_FOUND_MAX];       /* its beginning; "nothing" where the member is missing */
};

/* As shape_parse, but FLY_EDATA. After an error `out_fault`, unless NULL, is filled in; also below. */
int shape_parse_as(const char *text, size_t length, enum shape_manners manners, json_t **out_json,
                   struct shape_fault *out_fault, struct fly_error *out_error);

/* As shape_read; the fault has no line, until shape_fault_locate looks for it in the text. */
int shape_read_as(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
                  void *out_struct, struct shape_fault *out_fault, struct fly_error *out_error);

void shape_fault_locate(struct shape_fault *fault, const char *text, size_t length);

/* Both, of a text that is not kept; not with SHAPE_BORROWING. */
int shape_read_text(const struct shape *shape, const char *text, size_t length, enum shape_manners manners,
                    struct arena *arena, void *out_struct, struct shape_fault *out_fault,
                    struct fly_error *out_error);

/* A new reference. FLY_EDATA and FLY_ELIMIT as above, for what could not be read again. */
int shape_write(const struct shape *shape, const void *from, json_t **out_json, struct fly_error *out_error);

/*
 * What a program tells, by a shape that refuses nothing (shape_told.h): a new reference, NULL without
 * memory.
 */
json_t *shape_tell(const struct shape *shape, const void *from);

/* The same of several, as a list; and texts, of which what is not UTF-8 has '?' for bytes above ASCII. */
json_t *shape_tell_list(const struct shape *shape, const void *first, size_t count);
json_t *shape_tell_texts(const char *const *texts, size_t count);

/* Writes one member over that of an object which keeps all its others, known or not, and their order. */
int shape_write_member(const struct shape *shape, const char *name, const void *from, json_t *object,
                       struct fly_error *out_error);

/* The same as shape_write as text, without blanks; the caller frees it. */
int shape_write_text(const struct shape *shape, const void *from, char **out_text,
                     struct fly_error *out_error);

enum shape_style {
    SHAPE_COMPACT,     /* without blanks */
    SHAPE_INDENTED,    /* on several lines */
    SHAPE_NINE_DIGITS, /* without blanks, at most nine digits a number */
    SHAPE_SPARE,       /* without blanks, the fewest digits that read back: 250, 0.1 */
    SHAPE_SPARE_ASCII, /* the same, with escapes for what is no ASCII */
};

/* Appends the text; how a buffer that is full or lacks memory says so is in base/buffer.h. */
int shape_put(const struct shape *shape, const void *from, enum shape_style style, struct buffer *out,
              struct fly_error *out_error);

/*
 * Visits each member that two structs are written with differently: with its values before and now,
 * NULL for none; those that stand in both or only before come first.
 */
typedef void shape_difference(void *context, const char *name, const json_t *before, const json_t *now);
int shape_differences(const struct shape *shape, const void *before, const void *now, shape_difference *visit,
                      void *context, struct fly_error *out_error);

/*
 * The JSON Schema (2020-12) of the shape; those inside are referred to as
 * "#/components/schemas/NAME". `closed` shapes have no other members. NULL when memory
 * is exhausted.
 */
json_t *shape_schema(const struct shape *shape, bool closed);

/* ---- for shape_read.c, shape_write.c and shape_schema.c ---- */

/* What a number has to be, in words and bounds. */
struct shape_bounds {
    const char *words; /* "a number from 0" */
    double least;      /* -INFINITY: none */
    double most;
    bool above; /* least itself is too small */
};
const struct shape_bounds *shape_bounds_of(enum shape_range range);
bool shape_in_range(enum shape_range range, double value);             /* finite, and within */
bool shape_number_fits(const struct shape_field *field, double value); /* and not above its highest */

/* Whether the value is of the kind that the shape is written as: an object, or a list. */
bool shape_is_form(const struct shape *shape, const json_t *json);

/* What stands for null. */
double shape_of_null(enum shape_null null);

/*
 * Where in the document one is: a member or an entry of what is outside. Each lies on the stack of
 * who reads or writes it, and becomes "hardware.limits_w[3]" only where something is wrong.
 */
struct shape_path {
    const struct shape_path *outer; /* NULL: the whole */
    const char *name;               /* NULL: an entry */
    size_t index;
};

/* What a fault says of a field that was refused with that code. */
void shape_fault_fill(struct shape_fault *fault, const struct shape_path *path,
                      const struct shape_field *field, bool entry, int code, json_t *found);

/* The error `code` with "member 'PATH'" and the rest. */
__attribute__((format(printf, 4, 5))) int shape_complain(const struct shape_path *path, int code,
                                                         struct fly_error *out_error, const char *rest, ...);

/* FLY_EDATA with what the field, or an entry of it, has to be. */
int shape_refuse(const struct shape_path *path, const struct shape_field *field, bool entry,
                 struct fly_error *out_error);
int shape_too_long(const struct shape_path *path, size_t longest, const char *what,
                   struct fly_error *out_error);

/* Whether the text may stand in the field: 0, FLY_EDATA or FLY_ELIMIT. */
int shape_check_text(const struct shape_path *path, const struct shape_field *field, const char *text,
                     size_t length, struct fly_error *out_error);

#endif
