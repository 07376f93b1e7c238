/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_HTTP_TALK_H
#define FLYBALL_TESTS_HTTP_TALK_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/server.h"

/*
 * A server whose back answers every request with what it knows about it, and clients that send
 * bytes as they are. "/keep" and "/limit" set what becomes of the connection, and "/stream" is
 * answered by the stream that the test has put into `stream`. A thread ticks the server.
 */
enum { TALK_CLOSED_MAX = 64, TALK_BYTES = 1 << 18 };

/* What options name as their porter: it is started with the server. */
extern struct porter talk_porter;

struct talk {
    struct server *server;
    struct server_back back;
    struct serve_stream *stream;      /* NULL: "/stream" is answered like all others */
    _Atomic(enum serve_scope) admits; /* what `admit` returns, if the options take it in */
    char directory[64], path[96], address[128];
    char url[128]; /* where it listens */

    pthread_mutex_t lock;
    uint64_t closed[TALK_CLOSED_MAX]; /* numbers of connections that have ended */
    size_t closed_count;

    pthread_t ticker;
    atomic_bool stops;
};

/*
 * Fills in what the options leave out and opens the server. It listens at unix:PATH unless the
 * options say otherwise. Fails the test on errors. `admits`: the back has an `admit`.
 */
void talk_open(struct talk *talk, struct server_options options, bool admits);

/* Quiesces the server, waits until it is idle, and closes it. */
void talk_close(struct talk *talk);

/* Quiesces alone; talk_close follows. */
void talk_quiesce(struct talk *talk);

/* Connects to the socket, or to the port of a server that listens at 127.0.0.1. */
int talk_connect(const struct talk *talk);

/* Sends text, with descriptors at its first byte. Returns 0, or the error's number. */
int talk_send(int fd, const char *text, const int *sent, size_t sent_count);

/* Sends GET for a path, on a connection that stays open. */
void talk_get(int fd, const char *path);

/* Reads until `part` has come, and fails the test if the connection ends before. Text is static. */
const char *talk_read(int fd, const char *part);

/* Waits until the other side has closed; skips what it sent before. Returns how many bytes. */
size_t talk_end(int fd);

/* Asks on a new connection and returns what comes up to `part`. */
const char *talk_ask(const struct talk *talk, const char *path, const char *part);

/* Asks on new connections until one is let in; fails the test after a long time. */
void talk_wait_for_room(const struct talk *talk);

/* Returns the number behind "name": in an answer, and fails the test without it. */
long talk_number(const char *answer, const char *name);

/* Waits until the back has heard that the connection ended, and fails the test after a long time. */
void talk_wait_closed(struct talk *talk, uint64_t connection);
bool talk_has_closed(struct talk *talk, uint64_t connection);

#endif
