/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PORTER_H
#define FLYBALL_HTTP_PORTER_H

#include <flyball/error.h>

#include "http/front.h"

/*
 * The porter: a process that accepts connections of Unix sockets for a server, asks the kernel who
 * connects, and passes each on to a front of that user (front.h). It reads nothing that a client
 * sends. It starts fronts, kills such as hang, and lets a user have only a few of those; that
 * user's connections are closed then. So neither the server nor the porter ever closes, as the
 * last one, a socket in which a client's descriptors may be; what cannot be handed to a front is
 * left to a process that does nothing but end.
 *
 * The porter is a child of the program, from before it had threads, locks and devices, and ends
 * with it.
 *
 *     code = porter_start(listen, count, &porter, out_error);      first, while there is one thread
 *     ... server_open with server_options.porter ...
 *     porter_end(&porter);                          after server_close
 */
struct porter {
    pid_t pid;   /* 0: none */
    int control; /* to the porter and back */
    int intake;  /* from the fronts: struct front_guest */
};

/* No porter. */
#define PORTER_NONE ((struct porter){.control = -1, .intake = -1})

struct porter_rules {
    struct front_rules front;
    unsigned connections, connections_per_user, root_connections; /* as in struct peers_options */
};

/* What the server says to the porter. */
struct porter_order {
    enum { PORTER_RULES, PORTER_LISTEN, PORTER_PROBE, PORTER_STOP } what;
    unsigned door;             /* LISTEN, PROBE: a number below FRONT_DOORS_MAX */
    bool inherited;            /* LISTEN: others may go on listening at the socket, which goes with it */
    struct porter_rules rules; /* RULES */
};

/* What the porter says to the server. */
enum { PORTER_LINE_MAX = 200 };
struct porter_news {
    uint64_t lost_front;        /* its connections are to be ended; 0: none */
    char line[PORTER_LINE_MAX]; /* for the log; "": nothing */
};

/*
 * Starts a porter if one of these addresses (listen_address.h) is a Unix socket; otherwise there is
 * none. FLY_ELIMIT: no process or descriptors are left.
 */
int porter_start(const char *const *listen, size_t count, struct porter *out_porter,
                 struct fly_error *out_error);

/*
 * Has the porter end, and waits until the fronts have delivered what the server has answered, two
 * seconds at most. May be called twice.
 */
void porter_end(struct porter *porter);

/* Returns whether the porter is still there. */
bool porter_lives(struct porter *porter);

#endif
