/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_SERVICE_H
#define FLYBALL_SERVE_SERVICE_H

#include "http/server.h"
#include "serve/routes.h"
#include "serve/workers.h"

/*
 * The service over a store of jobs: a server (server.h) behind which workers answer by families of routes.
 * docs/service.md is the manual for users.
 *
 *     code = service_open(&options, &server, out_error);
 *     ... server_tick(server), server_quiesce(server) ...
 *     server_close(server);
 */
struct service_options {
    struct server_options server;               /* without `back`, which the service is */
    const char *store;                          /* jobs_open; or NULL */
    const struct clock *clock;                  /* dates events; NULL: the store's own; borrowed */
    const struct serve_routes *const *families; /* asked in this order, ended by NULL */
    unsigned workers;                           /* 1 .. WORKERS_MAX */
};

/*
 * As server_open, with the texts of `options` borrowed until the server is closed. A store that cannot be
 * reached now is a trouble, and no error.
 */
int service_open(const struct service_options *options, struct server **out_server,
                 struct fly_error *out_error);

#endif
