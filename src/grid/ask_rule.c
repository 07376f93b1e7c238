/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/ask_rule.h"

static const int64_t first_wait_s = 30, open_wait_s = 900, longest_wait_s = 3600;

static int64_t period_of(int64_t time_s, int64_t step_s)
{
    int64_t period = time_s / step_s;

    return time_s % step_s < 0 ? period - 1 : period;
}

/*
 * Returns the last period that was asked about. Who asked up to the moment of asking has all that
 * there was of the period of that moment, also where it had begun in that very second.
 */
static int64_t last_asked(const struct ask_query *query, int64_t step_s)
{
    return period_of(query->to_s >= query->asked_s ? query->to_s : query->to_s - 1, step_s);
}

bool ask_is_due(const struct ask_query *query, int64_t from_s, int64_t to_s, int64_t step_s, int64_t now_s)
{
    if (query->from_s >= query->to_s || from_s < query->from_s)
        return true;
    if (to_s > query->to_s && period_of(to_s - 1, step_s) > last_asked(query, step_s))
        return true;
    if (to_s <= query->asked_s - ASK_REVISED_S)
        return false;
    /* Any period other than that of the last request counts, also after a clock was turned back. */
    return period_of(now_s, step_s) != period_of(query->asked_s, step_s);
}

void ask_note_answer(struct ask_query *query, int64_t from_s, int64_t to_s, int64_t now_s)
{
    bool touches = query->from_s < query->to_s && from_s <= query->to_s && to_s >= query->from_s;
    /*
     * If a part was asked for earlier and may have been revised since, the record must not cover the
     * whole.
     */
    bool old = query->asked_s < now_s && query->to_s > query->asked_s - ASK_REVISED_S && to_s < query->to_s;

    if (!touches || old) {
        query->from_s = from_s;
        query->to_s = to_s;
    } else {
        query->from_s = from_s < query->from_s ? from_s : query->from_s;
        query->to_s = to_s > query->to_s ? to_s : query->to_s;
    }
    query->asked_s = now_s;
    query->refused_until_s = 0;
}

void ask_note_refusal(struct ask_query *query, int64_t now_s)
{
    query->refused_until_s = now_s + ASK_REFUSED_S;
}

bool ask_is_refused(const struct ask_query *query, int64_t now_s)
{
    return query->refused_until_s > now_s && query->refused_until_s - now_s <= ASK_REFUSED_S;
}

int64_t ask_wait_s(const struct ask_service *service, int64_t now_s)
{
    int64_t wait_s = service->blocked_until_s - now_s;

    return wait_s > 0 && wait_s <= ASK_RETRY_AFTER_MOST_S ? wait_s : 0;
}

void ask_set_out(struct ask_service *service, int64_t now_s)
{
    if (service->failures > 0)
        service->blocked_until_s = now_s + ASK_TRY_S;
}

void ask_went_well(struct ask_service *service)
{
    *service = (struct ask_service){0};
}

void ask_failed(struct ask_service *service, double retry_after_s, uint64_t luck, int64_t now_s)
{
    uint32_t beyond, failures = service->failures < UINT32_MAX ? ++service->failures : service->failures;
    int64_t wait_s = failures < ASK_BREAK_AT ? first_wait_s : open_wait_s;

    for (beyond = failures < ASK_BREAK_AT ? failures - 1 : failures - ASK_BREAK_AT; beyond > 0; beyond--) {
        if (wait_s >= longest_wait_s)
            break;
        wait_s *= 2;
    }
    /* So that the machines of a site do not come back all at the same time. */
    wait_s -= (int64_t)(luck % (uint64_t)(wait_s / 2 + 1));
    if (retry_after_s > (double)wait_s)
        wait_s = retry_after_s < (double)ASK_RETRY_AFTER_MOST_S ? (int64_t)retry_after_s + 1
                                                                : ASK_RETRY_AFTER_MOST_S;
    service->blocked_until_s = now_s + wait_s;
}
