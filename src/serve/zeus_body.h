/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_ZEUS_BODY_H
#define FLYBALL_SERVE_ZEUS_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "model/job_spec.h"

/*
 * The bodies of the public batch-size server's requests: a table of fields read into a
 * struct, with every field that is wrong named at once, in the shape that server's
 * framework gives it:
 *
 *     {"detail": [{"loc": ["body", "max_epochs"], "msg": "expected ...",
 *                  "type": "value_error.number.not_gt"}]}
 *
 * The words of `loc` and `type` are that framework's; `msg` is for people. Members that
 * no field asks for are ignored, as there. A number is a number and a text a text: what
 * the framework would make of "16" or true for a whole number is refused.
 */

enum zeus_kind {
    ZEUS_TEXT,   /* const char *, borrowed from the object; `least` to `most` bytes; null: NULL */
    ZEUS_WHOLE,  /* int64_t; null: ZEUS_NULL */
    ZEUS_WHOLES, /* struct zeus_wholes; the range holds for each */
    ZEUS_NUMBER, /* double; null: INFINITY */
    ZEUS_METRIC, /* double; NaN or infinite: NAN, a training that has diverged says so */
    ZEUS_FLAG,   /* bool */
};

enum { ZEUS_NULL = -1 };

struct zeus_wholes {
    uint32_t values[JOB_BATCHES_MAX];
    size_t count;
};

enum { ZEUS_COMPLAINTS_MAX = 32, ZEUS_COMPLAINT_MAX = 160 /* bytes */ };

/* What is wrong with a request. Each stays where it is, since it points into itself. */
struct zeus_complaint {
    const char *const *loc; /* "body" or "query", and the field's name */
    size_t depth;
    char msg[ZEUS_COMPLAINT_MAX];
    const char *type;
    const char *place[2];
};

struct zeus_complaints {
    struct zeus_complaint list[ZEUS_COMPLAINTS_MAX];
    size_t count;
};

extern const struct shape shape_zeus_complaints; /* {"detail": [...]} */

struct zeus_field {
    const char *name;
    enum zeus_kind kind;
    bool needed;   /* else what the struct holds already stays */
    bool nullable; /* null is fine */
    bool above;    /* `least` itself is too little */
    double least, most;
    size_t offset;
};

/*
 * The body's JSON object, to be released by the caller, or NULL with the complaint in `detail`. Takes NaN,
 * Infinity and -Infinity for numbers, which the clients' language writes.
 */
json_t *zeus_parse(const char *body, size_t length, struct zeus_complaints *detail);

/* Fills `out` by the table; what is wrong is left alone and complained of. */
void zeus_read(const json_t *object, const struct zeus_field *fields, size_t count, void *out,
               struct zeus_complaints *detail);

/* Adds a complaint about `name` (NULL: the whole) in "body" or "query". */
void zeus_complain(struct zeus_complaints *detail, const char *place, const char *name, const char *type,
                   const char *message);

#endif
