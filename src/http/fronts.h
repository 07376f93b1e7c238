/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_FRONTS_H
#define FLYBALL_HTTP_FRONTS_H

#include "http/front.h"

/*
 * The porter's fronts (front.h): one for each user who has connections, started at the first and
 * ended some time after the last. One that hangs is killed, and another follows; a user may have
 * two that hang and cannot be killed, and gets no more until one of them has ended. A connection
 * that no front takes is shut down, and closed by a process that does nothing but end.
 *
 * Only the porter's one thread calls these. None of them waits, but fronts_dismiss.
 */
enum { FRONTS_MAX = 256 /* of all users, hung ones included */, FRONTS_BIN_MAX = 64, FRONTS_LOOK_MS = 250 };

struct front_row {
    pid_t pid;       /* 0: a free row */
    int channel;     /* -1: it gets no more connections, and is to end */
    bool lost;       /* it hung, and was killed */
    uint64_t number; /* of its own, from 1 */
    uid_t uid;
    bool same_namespaces;
    int64_t busy_since_ns; /* at the last look */
    unsigned busy_looks, idle_looks;
};

struct fronts {
    struct front_rules rules; /* of fronts that are started from now on */
    int control, intake;      /* to the server: news of fronts, and their guests (porter.h) */
    /* Closes, in a process that was forked, what else the porter has. */
    void (*close_others)(void *others);
    void *others;

    struct front_row rows[FRONTS_MAX];
    struct front_desk *desks; /* of the rows */
    uint64_t numbers;         /* given so far */
    int bin[FRONTS_BIN_MAX];  /* connections that no front took */
    size_t bin_count;
    unsigned bins; /* processes that end with such connections */
    int arriving;  /* the connection that is being handed on; -1: none */
};

/* The first five members are set. Returns false without memory. */
bool fronts_open(struct fronts *fronts);

/* Gives an accepted socket to a front of its user. Call it only while bin_count < FRONTS_BIN_MAX. */
void fronts_hand_on(struct fronts *fronts, int fd, const struct front_visit *visit);

/* Connections that have not ended: those that came in by an address, and those of a user. */
unsigned fronts_connections(const struct fronts *fronts, unsigned door);
unsigned fronts_connections_of(const struct fronts *fronts, const struct serve_peer *peer);

/* Finds hung and idle fronts. Call it every FRONTS_LOOK_MS while it returns true. */
bool fronts_look(struct fronts *fronts);

/* Has all fronts deliver what the server has answered, and end; waits for them, 1.5 seconds at most. */
void fronts_dismiss(struct fronts *fronts);

#endif
