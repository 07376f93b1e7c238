/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SERVER_BACK_H
#define FLYBALL_HTTP_SERVER_BACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

    /* Paths that begin with one of these, and /metrics, accept tokens only in the header. Ended by NULL. */
    const char *const *header_only;
};

/*
 * The back of a server: it answers the requests that the server accepts, and keeps figures about
 * them. Each function gets the `back_self` of the server's options. Unless said otherwise, the
 * thread that opens, ticks and closes the server calls them.
 */
struct server_back {
    struct server_token_words tokens;

    size_t note_bytes; /* size of a task's note, which is all 0 at first */

    /*
     * Called once, before the first request: adds the back's parts to the readiness and prepares to
     * answer. Both arguments live until `end`.
     */
    int (*start)(void *self, struct readiness *readiness, struct troubles *troubles,
                 struct fly_error *out_error);

    /*
     * Returns what the caller of a request may do, by its peer and its bearer. The request has no body
     * yet, and the scope of its token, if the file of tokens has it; otherwise SERVE_NOBODY. A caller
     * who may do nothing gets its answer from `put` all the same, but may send no body. Web pages are
     * refused unless their token is in the file, or they may do more with their bearer than without, for
     * which this is called again. Not called for /healthz and /readyz, for which nothing is needed;
     * /metrics takes SERVE_READ, and `shows_figures`. Must not block. Any thread. NULL: the file of tokens
     * decides, and without one every caller of this machine may do everything.
     */
    enum serve_scope (*admit)(void *self, const struct serve_request *request);

    /*
     * Answers the task if that can be done without waiting, and returns whether it did; it is not
     * finished then, but sent. Otherwise `put` gets it. It spares a request the way to another thread and
     * back. Any thread. NULL: every task is put.
     */
    bool (*answer_now)(void *self, struct task *task);

    /* Answers the task by its deadline, and finishes it; refuses it after `stop`. Any thread. */
    void (*put)(void *self, struct task *task);

    /* Counts a task whose answer is sent now. Its note is all 0 if `put` did not get the task. Any thread. */
    void (*count)(void *self, const struct task *task);

    /* Returns whether a caller who may read gets the figures. Must not block. Any thread. NULL: yes. */
    bool (*shows_figures)(void *self, const struct serve_request *request);

    /* Appends figures in Prometheus' text format. Any thread. */
    void (*write_figures)(void *self, struct buffer *text);

    /*
     * The connection with this number (serve_peer.connection) has ended, after all of its requests.
     * Called once for each connection, also for one that asked for nothing, and also after `stop`, but
     * never after `end`. Must not block. Any thread. NULL: not wanted.
     */
    void (*closed)(void *self, uint64_t connection);

    /* Does periodic work; called a few times a second. */
    void (*tick)(void *self, struct mono_time now);

    /* Finishes all tasks that were put, and ends the back's threads. Called only after a successful start. */
    void (*stop)(void *self);

    /* Frees everything. Called last, also if `start` failed or was never called. */
    void (*end)(void *self);
};

#endif
