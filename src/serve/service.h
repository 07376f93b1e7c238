/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_SERVICE_H
#define FLYBALL_SERVE_SERVICE_H

#include "http/server.h"
#include "serve/route_family.h"
#include "serve/workers.h"

/*
 * The service for a store of jobs: a server (server.h) whose back has worker threads, which
 * answer by families of routes. docs/howto/service.md is the manual for users.
 *
 *     code = service_open(&options, &server, out_error);
 *     ... server_tick(server), server_quiesce(server) ...
 *     server_close(server);
 */
struct service_options {
    struct server_options server;               /* `back` is not used: the service is the back */
    const char *store;                          /* jobs_open; or NULL */
    const struct clock *clock;                  /* dates events; NULL: the store's own; borrowed */
    const struct serve_routes *const *families; /* asked in this order, ended by NULL */
    unsigned workers;                           /* 1 .. WORKERS_MAX */
    const char *operators;                      /* caller.h, of jobs; or NULL */
};

/*
 * Opens the service as server_open does; texts of `options` are borrowed until the server is
 * closed. A store that cannot be reached now is reported as a trouble and is no error.
 */
int service_open(const struct service_options *options, struct server **out_server,
                 struct fly_error *out_error);

#endif
