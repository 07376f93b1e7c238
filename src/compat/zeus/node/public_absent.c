/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the room in a build without it. */
#include "compat/zeus/node/node_public.h"

int node_public_open(const struct node_public_options *options, struct node_public **out_public,
                     struct fly_error *out_error)
{
    (void)options;
    (void)out_error;
    *out_public = NULL;
    return 0;
}

void node_public_close(struct node_public *public)
{
    (void)public;
}

bool node_public_is_below(const char *path)
{
    (void)path;
    return false;
}

bool node_public_waits(const struct serve_request *request)
{
    (void)request;
    return false;
}

void node_public_answer(struct node_public *public, const struct serve_request *request,
                        struct serve_answer *out_answer)
{
    (void)public;
    (void)request;
    (void)out_answer;
}
