/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_V1_V1_PRIVATE_H
#define FLYBALL_NODE_V1_V1_PRIVATE_H

#include "base/arena.h"
#include "node/v1/node_v1.h"
#include "node/v1/v1_shapes.h"

enum { V1_ARENA_MAX = 4 << 20, V1_ID_MAX = 128 };

struct node_v1 {
    struct node_v1_options options;
    struct v1_cache *cache;   /* owned */
    struct v1_events *events; /* owned */
};

/* One request between finding its route and writing its answer. */
struct v1_exchange {
    struct node_v1 *v1;
    const struct serve_request *request;
    struct serve_answer *answer;
    char id[V1_ID_MAX]; /* what stands in the path for {id}; "" without one */
    struct arena arena; /* of what was asked */
    struct fly_error error;
};

/* What a route does: it writes the answer and returns 0, or returns a code with its error. */
typedef int v1_route_fn(struct v1_exchange *exchange);

v1_route_fn v1_list_gpus, v1_show_gpu;
v1_route_fn v1_list_leases, v1_grant_lease, v1_change_lease, v1_end_lease, v1_renew_lease;
v1_route_fn v1_open_stream, v1_show_usage;
v1_route_fn v1_release, v1_resume;

/* Reads the body by a shape into `out_struct`. */
int v1_read_body(struct v1_exchange *exchange, const struct shape *shape, void *out_struct);

/* Finds the GPU of a text among those that the caller may read. FLY_ENOTFOUND. */
int v1_find_gpu(struct v1_exchange *exchange, const char *text, size_t *out_gpu);

/* Answers with a struct. */
int v1_tell(struct v1_exchange *exchange, const struct shape *shape, const void *from);

#endif
