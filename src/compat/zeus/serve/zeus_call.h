/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_SERVE_ZEUS_CALL_H
#define FLYBALL_COMPAT_ZEUS_SERVE_ZEUS_CALL_H

#include "base/arena.h"
#include "base/error.h"
#include "compat/zeus/serve/zeus_job.h"
#include "serve/route_family.h"

/*
 * A request to the public batch-size server's routes while it is handled: what the routes share.
 * Each route fills the answer once, with one of the functions here.
 */
struct zeus_call {
    const struct jobs *jobs;
    const struct serve_request *request;
    struct serve_answer *answer;
    struct serve_note *note;
    const char *job_id; /* the job that it is about */
    struct arena arena;
    json_t *body; /* an object, or NULL if the route takes none */
    struct zeus_complaints detail;
    struct fly_error error;
};

enum {
    ZEUS_MESSAGE_MAX = 600,  /* bytes */
    ZEUS_BODY_MAX = 1 << 16, /* bytes: a job of JOB_BATCHES_MAX sizes with room to spare; parsed, it may take
                                a hundred times as much */
    ZEUS_RANDOM_TEXT = 17,   /* sixteen digits */
};

/* The statuses used here. */
enum {
    ZEUS_OK = 200,
    ZEUS_CREATED = 201,
    ZEUS_BAD_REQUEST = 400,
    ZEUS_UNAUTHORISED = 401,
    ZEUS_FORBIDDEN = 403,
    ZEUS_NOT_FOUND = 404,
    ZEUS_NOT_ALLOWED = 405,
    ZEUS_CONFLICT = 409,
    ZEUS_TOO_LONG = 413,
    ZEUS_UNPROCESSABLE = 422,
    ZEUS_FAILED = 500,
    ZEUS_UNAVAILABLE = 503,
};

/* Answers {"message": ...}. */
void zeus_say(struct zeus_call *call, int status, const char *message);

/* Answers 422 with the complaints. */
void zeus_complained(struct zeus_call *call);

/*
 * Answers with the error. If something is missing, the status is `if_missing`: on the public
 * server it differs by route.
 */
void zeus_fail(struct zeus_call *call, int code, int if_missing);

/* Takes the job from the query. Returns false if it is missing; then it has answered. */
bool zeus_named_in_query(struct zeus_call *call);

/*
 * Finds the store's name of `call->job_id`, and the job as it was registered. FLY_ENOTFOUND also
 * for a job that was not registered through these routes.
 */
int zeus_find_job(struct zeus_call *call, char name[JOB_NAME_MAX + 1], struct zeus_job *out_job);

/* Draws random digits that nobody can guess. */
int zeus_random_text(char text[ZEUS_RANDOM_TEXT], struct fly_error *out_error);

/* The routes. */
void zeus_register(struct zeus_call *call);
void zeus_delete(struct zeus_call *call);
void zeus_predict(struct zeus_call *call);
void zeus_report(struct zeus_call *call);
void zeus_end(struct zeus_call *call);

#endif
