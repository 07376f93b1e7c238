/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SERVER_BACK_H
#define FLYBALL_HTTP_SERVER_BACK_H

#include <stddef.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "http/readiness.h"
#include "http/task.h"

/*
 * How the callers of one program get tokens and send them: what the server says to a caller that it
 * refuses. Texts are static.
 */
struct server_token_words {
    const char *command; /* makes tokens: "flyball token" */

    /* For clients that can send a token only in the path (SERVE_TOKEN_PATH): */
    const char *path_clients; /* who they are: "clients of some server"; NULL: this program has none */
    const char *path_setting; /* their setting that holds the server's address: "server_url" */
    const char *path_option;  /* the program's option that lets them in: "--some-clients" */

    /* Paths that begin with one of these, and /metrics, take tokens in the header alone. Ended by NULL. */
    const char *const *header_only;
};

/*
 * What stands behind a server: who answers the requests that it lets in, and keeps figures of what they
 * were about. Each function gets the `back_self` of the server's options. Unless said otherwise they are
 * called by the thread that opens, ticks and closes the server.
 */
struct server_back {
    struct server_token_words tokens;

    size_t note_bytes; /* of a task's note, all of it 0 at first */

    /*
     * Once, before the first request: adds its parts to the readiness and gets ready to answer. Both are
     * there until `end`.
     */
    int (*start)(void *self, struct readiness *readiness, struct troubles *troubles,
                 struct fly_error *out_error);

    /* Has the task answered by its deadline, and finishes it; after `stop` refuses it. Any thread. */
    void (*put)(void *self, struct task *task);

    /* The task's answer goes out now; its note is all 0 where `put` did not get it. Any thread. */
    void (*count)(void *self, const struct task *task);

    /* Appends figures in Prometheus' text format. Any thread. */
    void (*write_figures)(void *self, struct buffer *text);

    /* A few times a second. */
    void (*tick)(void *self, struct mono_time now);

    /* After a start that went well: finishes what was put, and ends its threads. */
    void (*stop)(void *self);

    /* The last of all; also where `start` failed or was never called. */
    void (*end)(void *self);
};

#endif
