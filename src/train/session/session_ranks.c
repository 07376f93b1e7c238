/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the ranks of a data-parallel training. When that fails, each rank goes on by itself. */
#include <string.h>

#include "train/session/session_private.h"

enum { SHARED_MAX = 32 };

uint32_t session_ranks(const struct fly_session *session)
{
    return session->options.world_size;
}

uint32_t session_replicas(const struct fly_session *session)
{
    return session->options.replicas > 0 ? session->options.replicas : session_ranks(session);
}

void session_join(struct fly_session *session, double *sums, size_t sum_count, double *maxima,
                  size_t max_count)
{
    if (session_ranks(session) == 1 || session->apart)
        return;
    session->apart =
        session->options.all_reduce(session->options.all_reduce_data, sums, sum_count, maxima, max_count) < 0;
}

void session_share(struct fly_session *session, double *values, size_t count)
{
    double shared[SHARED_MAX] = {0.0}, nothing[1] = {0.0};

    if (session->options.rank == 0)
        memcpy(shared, values, count * sizeof shared[0]);
    session_join(session, shared, count, nothing, 1);
    /* When values could not be shared, each rank keeps its own. */
    if (session_ranks(session) > 1 && !session->apart)
        memcpy(values, shared, count * sizeof shared[0]);
}
