/* SPDX-License-Identifier: Apache-2.0 */
/* What callers and hands share: versions of what is to be done, and leases that end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/lease/leases_private.h"

enum { LINE_MAX_BYTES = 640 };

static const char *const end_texts[] = {
#define LEASE_END_TEXT(name, word, text) text,
    LEASE_END_MAP(LEASE_END_TEXT)
#undef LEASE_END_TEXT
};
_Static_assert(sizeof end_texts / sizeof end_texts[0] == LEASE_END_COUNT, "each end has a text");

const char *lease_end_text(enum lease_end end)
{
    return end_texts[end];
}

void leases_tell(const struct leases *leases, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;

    if (leases->options.listener.tell == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    leases->options.listener.tell(leases->options.listener.state, line);
}

uint64_t leases_bump(struct leases *leases, uint64_t gpus, bool awaited)
{
    static const uint64_t one = 1;
    uint64_t version = ++leases->version;

    atomic_fetch_add(&leases->changes, 1);
    for (size_t i = 0; i < leases->hand_count; i++) {
        struct hand *hand = &leases->hands[i];

        if ((gpus >> i & 1) == 0)
            continue;
        hand->wanted = version;
        if (awaited)
            hand->awaited = version;
        (void)!write(hand->wake, &one, sizeof one);
    }
    return version;
}

static void add_to_job(void *state, const struct lease *lease)
{
    struct hand_job *job = state;

    job->newest = *lease;
    job->overrules |= lease->ask.overrules;
    if (lease->ask.holder.pid != 0 && job->pid_count < HAND_PIDS_MAX)
        job->pids[job->pid_count++] = lease->ask.holder.pid;
}

void leases_job(struct leases *leases, struct hand *hand, struct hand_job *out_job)
{
    struct lease newest = hand->newest;

    *out_job = (struct hand_job){
        .version = hand->wanted, .awaited = hand->awaited == hand->wanted, .newest = newest};
    lease_table_effect(leases->table, hand->gpu, &out_job->effect);
    lease_table_visit(leases->table, hand->gpu, add_to_job, out_job);
    hand->seen.leases = out_job->effect.leases;
    hand->seen.wish = out_job->effect.wish;
}

void leases_forget(struct leases *leases, const struct lease *ended, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < leases->maximum; at++) {
            struct tended *tended = &leases->tended[at];

            if (tended->id[0] == '\0' || strcmp(tended->id, ended[i].id) != 0)
                continue;
            holder_close(&tended->holder);
            tended->id[0] = '\0';
        }
        leases_bump(leases, ended[i].ask.gpus, false);
    }
}

void leases_announce(struct leases *leases, const struct lease *ended, size_t count, enum lease_end end,
                     const char *why)
{
    const struct leases_listener *listener = &leases->options.listener;
    const char *text = why != NULL ? why : lease_end_text(end);

    for (size_t i = 0; i < count; i++) {
        const struct audit_event event = {
            .what = AUDIT_END, .why = text, .holder = &ended[i].ask.holder, .lease = ended[i].id};

        atomic_fetch_add(&leases->lease_ends[end], 1);
        (void)audit_write(leases->options.audit, &event, NULL);
        if (listener->ended != NULL)
            listener->ended(listener->state, &ended[i], end, text);
    }
}

void leases_end_if(struct leases *leases, bool (*is_over)(const struct lease *, const void *state),
                   const void *state, enum lease_end end, const char *why)
{
    struct lease ended[LEASES_AT_ONCE];
    size_t count;

    do {
        pthread_mutex_lock(&leases->group.lock);
        count = lease_table_end_if(leases->table, is_over, state, ended, LEASES_AT_ONCE);
        leases_forget(leases, ended, count);
        pthread_mutex_unlock(&leases->group.lock);
        leases_announce(leases, ended, count, end, why);
    } while (count == LEASES_AT_ONCE);
}

void leases_free(void *of)
{
    struct leases *leases = of;

    for (size_t i = 0; i < leases->hand_count; i++) {
        if (leases->hands[i].wake >= 0)
            close(leases->hands[i].wake);
    }
    for (size_t i = 0; leases->tended != NULL && i < leases->maximum; i++) {
        if (leases->tended[i].id[0] != '\0')
            holder_close(&leases->tended[i].holder);
    }
    free(leases->tended);
    lease_table_free(leases->table);
    free(leases);
}

struct back_search {
    const struct leases *leases;
    uint64_t gpus;
    const struct lease_holder *spared;
    double linger_s;
};

static bool is_back(const struct lease *lease, const void *state)
{
    const struct back_search *search = state;

    if (!lease->ask.plain || (lease->ask.gpus & search->gpus) == 0 ||
        (search->spared != NULL && lease_holder_is(&lease->ask.holder, search->spared)))
        return false;
    for (size_t i = 0; i < search->leases->hand_count; i++) {
        const struct hand *hand = &search->leases->hands[i];

        if ((lease->ask.gpus >> i & 1) != 0 && (hand->done != hand->wanted || hand->seen.turned ||
                                                mono_elapsed_s(hand->done_at, mono_now()) < search->linger_s))
            return false;
    }
    return true;
}

void leases_end_back(struct leases *leases, uint64_t gpus, const struct lease_holder *spared, double linger_s)
{
    const struct back_search search = {leases, gpus, spared, linger_s};

    leases_end_if(leases, is_back, &search, LEASE_END_GIVEN_BACK, NULL);
}

static bool is_on_gpu(const struct lease *lease, const void *gpu)
{
    return (lease->ask.gpus >> *(const size_t *)gpu & 1) != 0;
}

void leases_fail_gpu(struct leases *leases, size_t gpu, enum lease_end end, const char *why)
{
    leases_tell(leases, "the leases of GPU %zu end: %s", gpu, why);
    leases_end_if(leases, is_on_gpu, &gpu, end, why);
}
