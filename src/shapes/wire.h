/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_WIRE_H
#define FLYBALL_SHAPES_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Plain structs as JSON objects. A shape is the table of a struct's members; from it
 * the struct is written, read with every error named, and described by a JSON Schema,
 * so that the three cannot differ. shapes.h has those of job.h.
 *
 *     code = wire_parse(body, length, &json, out_error);
 *     code = wire_read(&shape_epoch, json, WIRE_STRICT, &arena, &epoch, out_error);
 *     ... "member 'hardware.gpu_count': expected a whole number from 1 to 4294967295" ...
 *     code = wire_write(&shape_answered, &answered, &json, out_error);
 *
 * Numbers that JSON has no words for are null, where a member says so: unknown ones
 * (NAN) or those without an end (INFINITY). Texts are UTF-8 without control characters.
 */
enum wire_kind {
    WIRE_U32,
    WIRE_U64, /* at most INT64_MAX */
    WIRE_I64,
    WIRE_NUMBER, /* a double */
    WIRE_BOOL,
    WIRE_WORD,    /* an enum by its word */
    WIRE_TEXT,    /* const char *; NULL is written as "", or as null with WIRE_OR_NULL */
    WIRE_CHARS,   /* char[longest + 1] */
    WIRE_OBJECT,  /* const char *, the text of any JSON object */
    WIRE_STRUCT,  /* one within the struct */
    WIRE_U32S,    /* lists: a pointer, and a size_t beside it */
    WIRE_NUMBERS, /* of doubles */
    WIRE_STRUCTS,
    WIRE_STRUCTS_HERE, /* an array of `longest` within the struct */
};

enum wire_need {
    WIRE_NEEDED,
    WIRE_OPTIONAL, /* else it has the shape's default */
    WIRE_FLAGGED,  /* a bool beside it says whether it is there */
    WIRE_SPARING,  /* optional, and a text, number or bool that says nothing ("", NAN, false) is not written,
                      so  that a service of before the member takes it */
};

enum wire_null {
    WIRE_NOT_NULL,
    WIRE_UNKNOWN, /* NAN */
    WIRE_ENDLESS, /* INFINITY */
    WIRE_OR_NULL, /* a text */
};

enum wire_range { WIRE_ANY, WIRE_FROM_0, WIRE_ABOVE_0, WIRE_FROM_0_TO_1, WIRE_FROM_1 };

struct wire_shape;

struct wire_field {
    const char *name;
    const char *about; /* one line */
    enum wire_kind kind;
    enum wire_need need;
    enum wire_null null;
    enum wire_range range; /* of a number, or of a list's */
    size_t at;             /* its offset */
    size_t beside;         /* offset of a list's size_t, or of the bool of WIRE_FLAGGED */
    uint64_t least, most;  /* of whole numbers, or of a list's */
    size_t longest;        /* bytes of a text without its end, entries of a list */
    bool free_text;        /* control characters are fine */
    const char *const *words;
    size_t word_count;
    const struct wire_shape *shape; /* of those inside */
};

struct wire_shape {
    const char *name; /* "Epoch": of its schema */
    const char *about;
    size_t size; /* bytes of the struct */
    const struct wire_field *fields;
    size_t count;
    const void *defaults; /* a struct with what optional members have; NULL: 0, "", or what null stands for */
};

/*
 * A JSON object or another value from its text; a new reference. FLY_EUSAGE with the
 * line and column for what is no JSON, or names a member twice.
 */
int wire_parse(const char *text, size_t length, json_t **out_json, struct fly_error *out_error);

enum wire_manners {
    WIRE_STRICT,  /* refuses unknown members, as a service does */
    WIRE_LENIENT, /* passes over them, as a client of a newer service does, and who reads a log */
};

/*
 * FLY_EDATA for a member that is missing, unknown, of another kind or out of its range,
 * FLY_ELIMIT for a text or list that is too long; the text names the member by its path.
 * Texts and lists go into the arena. `out_struct` is written to only in success; what no
 * member is for is zero in it.
 */
int wire_read(const struct wire_shape *shape, json_t *json, enum wire_manners manners, struct arena *arena,
              void *out_struct, struct fly_error *out_error);

/* A new reference. FLY_EDATA and FLY_ELIMIT as above, for what could not be read again. */
int wire_write(const struct wire_shape *shape, const void *from, json_t **out_json,
               struct fly_error *out_error);

/* The same as text, without blanks; the caller frees it. */
int wire_write_text(const struct wire_shape *shape, const void *from, char **out_text,
                    struct fly_error *out_error);

/*
 * The JSON Schema (2020-12) of the shape; those inside are referred to as
 * "#/components/schemas/NAME". `closed` shapes have no other members. NULL when memory
 * is exhausted.
 */
json_t *wire_schema(const struct wire_shape *shape, bool closed);

/* ---- for wire_read.c, wire_write.c and wire_schema.c ---- */

/* What a number has to be, in words and bounds. */
struct wire_bounds {
    const char *words; /* "a number from 0" */
    double least;      /* -INFINITY: none */
    double most;
    bool above; /* least itself is too small */
};
const struct wire_bounds *wire_bounds_of(enum wire_range range);
bool wire_in_range(enum wire_range range, double value); /* finite, and within */

/* What stands for null. */
double wire_of_null(enum wire_null null);

/* Where in the document something is wrong: "hardware.limits_w[3]". */
struct wire_path {
    char text[256];
    size_t length;
};

/* Adds a member or an entry; the length before, for wire_path_leave. */
size_t wire_path_enter(struct wire_path *path, const char *name);
size_t wire_path_enter_entry(struct wire_path *path, size_t index);
void wire_path_leave(struct wire_path *path, size_t length);

/* FLY_EDATA with what the field, or an entry of it, has to be. */
int wire_refuse(const struct wire_path *path, const struct wire_field *field, bool entry,
                struct fly_error *out_error);
int wire_too_long(const struct wire_path *path, size_t longest, const char *what,
                  struct fly_error *out_error);

/* Whether the text may stand in the field: 0, FLY_EDATA or FLY_ELIMIT. */
int wire_check_text(const struct wire_path *path, const struct wire_field *field, const char *text,
                    size_t length, struct fly_error *out_error);

#endif
