/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_SERVE_ZEUS_BODY_H
#define FLYBALL_COMPAT_ZEUS_SERVE_ZEUS_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "model/job_spec.h"

/*
 * Reads the bodies of requests to the public batch-size server: a table of fields is read into a
 * struct, and every wrong field is reported at once, in the form that server's framework uses:
 *
 *     {"detail": [{"loc": ["body", "max_epochs"], "msg": "expected ...",
 *                  "type": "value_error.number.not_gt"}]}
 *
 * `loc` and `type` use that framework's words; `msg` is for people. Members that no field names
 * are ignored, as that server does. Types are strict: the framework would accept "16" or true as
 * a whole number, and here they are refused.
 */

enum zeus_kind {
    ZEUS_TEXT,   /* const char *, borrowed from the object; `least` to `most` bytes; null: NULL */
    ZEUS_WHOLE,  /* int64_t; null: ZEUS_NULL */
    ZEUS_WHOLES, /* struct zeus_wholes; the range holds for each */
    ZEUS_NUMBER, /* double; null: INFINITY */
    ZEUS_METRIC, /* double; NaN or infinite: NAN, which a diverged training reports */
    ZEUS_FLAG,   /* bool */
};

enum { ZEUS_NULL = -1 };

struct zeus_wholes {
    uint32_t values[JOB_BATCHES_MAX];
    size_t count;
};

enum { ZEUS_COMPLAINTS_MAX = 32, ZEUS_COMPLAINT_MAX = 160 /* bytes */ };

/* What is wrong with a request. A complaint must not be moved, since it points into itself. */
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
    bool needed;   /* if not, a missing field leaves the struct's value as it is */
    bool nullable; /* null is accepted */
    bool above;    /* the value must be above `least` */
    double least, most;
    size_t offset;
};

/*
 * Returns the body's JSON object, which the caller releases, or NULL with the complaint in
 * `detail`. Accepts NaN, Infinity and -Infinity as numbers, since the clients' language writes
 * them.
 */
json_t *zeus_parse(const char *body, size_t length, struct zeus_complaints *detail);

/* Fills `out` by the table. A wrong field leaves its value alone and adds a complaint. */
void zeus_read(const json_t *object, const struct zeus_field *fields, size_t count, void *out,
               struct zeus_complaints *detail);

/* Adds a complaint about `name` (NULL: the whole) in "body" or "query". */
void zeus_complain(struct zeus_complaints *detail, const char *place, const char *name, const char *type,
                   const char *message);

#endif
