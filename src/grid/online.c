/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all services share: an answer comes from the cache if that suffices; else the service is
 * asked, and the answer kept.
 */
#include "grid/online.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "grid/grid_cache.h"

enum { DAY_S = 86400, NS_PER_S = 1000000000 };

/* The state of one read. */
struct reading {
    const struct grid_provider *provider;
    const struct grid_request *request;
    struct grid_kind kind;
    int64_t from_s, to_s, now_s;
    struct online_account account;
    bool unlocked; /* the account's key was searched for */
    struct grid_cache cache;
    struct cache_content content;
    struct fly_error trouble; /* the first error; code 0: there was none */
};

/* Sets signal and scope; an error if the request wants those that the service does not have. */
static int choose(const struct grid_provider *provider, const struct grid_request *request,
                  struct grid_kind *kind, struct fly_error *out_error)
{
    const char *who = provider->title;

    if (request->quantity != GRID_CARBON)
        return error_set(out_error, FLY_EUNSUPPORTED, "%s has no prices; take them from a file", who);
    kind->signal = request->signal != GRID_SIGNAL_UNKNOWN ? request->signal : provider->usual_signal;
    kind->scope = request->scope != GRID_SCOPE_UNKNOWN ? request->scope : provider->usual_scope;
    if (provider->signal != GRID_SIGNAL_UNKNOWN)
        kind->signal = provider->signal;
    if (provider->scope != GRID_SCOPE_UNKNOWN)
        kind->scope = provider->scope;
    if (request->signal != GRID_SIGNAL_UNKNOWN && request->signal != kind->signal)
        return error_set(out_error, FLY_EUNSUPPORTED, "%s has no %s intensities, only %s ones", who,
                         grid_signal_name(request->signal), grid_signal_name(kind->signal));
    if (request->scope != GRID_SCOPE_UNKNOWN && request->scope != kind->scope)
        return error_set(out_error, FLY_EUNSUPPORTED, "%s has no %s intensities, only %s ones", who,
                         grid_scope_name(request->scope), grid_scope_name(kind->scope));
    return 0;
}

int online_kind(const struct grid_provider *provider, const struct grid_request *request,
                struct grid_kind *out_kind, struct fly_error *out_error)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    struct grid_kind kind = {.quantity = GRID_CARBON};
    size_t length = strlen(request->place);
    int code;

    if (length == 0 || length >= sizeof kind.zone || strspn(request->place, letters) != length)
        return error_set(out_error, FLY_EUSAGE,
                         "'%s:%.60s' is no place; expected 1 to %zu letters, digits, '-', '_' or '.'",
                         provider->name, request->place, sizeof kind.zone - 1);
    code = choose(provider, request, &kind, out_error);
    if (code < 0)
        return code;
    snprintf(kind.provider, sizeof kind.provider, "%s", provider->name);
    snprintf(kind.zone, sizeof kind.zone, "%s", request->place);
    *out_kind = kind;
    return 0;
}

/* Keeps the first error, since the others follow from it. */
static int remember(struct reading *reading, const struct fly_error *error)
{
    if (reading->trouble.code == 0)
        reading->trouble = *error;
    return error->code;
}

static int64_t step_of(const struct reading *reading, enum online_query query)
{
    const struct grid_answer *answer = &reading->content.answer;
    int64_t step_s = grid_series_step(query == ONLINE_FORECAST ? &answer->published : &answer->actual);

    return step_s > 0 ? step_s : reading->provider->step_s;
}

/* What ended long before it was asked for is not revised any more. */
static int64_t start_of(const struct ask_query *query, int64_t from_s)
{
    int64_t final_s =
        query->asked_s - ASK_REVISED_S < query->to_s ? query->asked_s - ASK_REVISED_S : query->to_s;

    return query->from_s < query->to_s && from_s >= query->from_s && final_s > from_s ? final_s : from_s;
}

static uint64_t luck(void)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits)
        bits = (uint64_t)mono_now().ns * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)getpid();
    return bits;
}

/* Returns whether the service may be asked now; after a failure of it, claims the try. */
static int set_out(struct reading *reading, struct fly_error *out_error)
{
    struct ask_service service;
    int64_t wait_s;
    int lock, code = grid_cache_take_service(&reading->cache, &service, &lock, out_error);

    if (code < 0)
        return code;
    wait_s = ask_wait_s(&service, reading->now_s);
    if (wait_s > 0) {
        close(lock);
        return error_set(out_error, FLY_EUNREACHABLE,
                         "it failed %u times in a row and is left alone for another %lld s",
                         (unsigned)service.failures, (long long)wait_s);
    }
    if (service.failures == 0) {
        close(lock);
        return 0;
    }
    ask_set_out(&service, reading->now_s);
    return grid_cache_give_service(&reading->cache, &service, lock, out_error);
}

/*
 * Records how it went, for all other processes; if that cannot be written, the answer is used all
 * the same.
 */
static void come_back(struct reading *reading, enum ask_outcome outcome, double retry_after_s)
{
    struct ask_service service;
    int lock;

    if (outcome == ASK_UNABLE || grid_cache_take_service(&reading->cache, &service, &lock, NULL) < 0)
        return;
    if (outcome == ASK_FAILED)
        ask_failed(&service, retry_after_s, luck(), reading->now_s);
    else if (service.failures > 0)
        ask_went_well(&service);
    else {
        close(lock);
        return;
    }
    (void)grid_cache_give_service(&reading->cache, &service, lock, NULL);
}

/* Makes one request and adds its answer to what is there. Returns 1 if the answer is empty. */
static int ask_part(struct reading *reading, const struct online_question *question,
                    enum ask_outcome *out_outcome, struct fly_error *out_error)
{
    double retry_after_s = 0.0;
    struct grid_answer answer;
    int code = set_out(reading, out_error);

    *out_outcome = ASK_UNABLE;
    if (code < 0)
        return code;
    *out_outcome = online_ask(reading->provider, &reading->account, question, &reading->kind, &answer,
                              &retry_after_s, out_error);
    come_back(reading, *out_outcome, retry_after_s);
    if (*out_outcome != ASK_ANSWERED)
        return out_error->code;
    code = answer.actual.count + answer.published.count == 0;
    if (code == 0)
        code = cache_content_add(&reading->content, &answer, out_error);
    grid_answer_deinit(&answer);
    return code;
}

static void note_refusal(struct reading *reading, enum online_query query, const struct fly_error *why)
{
    ask_note_refusal(&reading->content.queries[query], reading->now_s);
    snprintf(reading->content.reasons[query], CACHE_REASON_MAX, "%.*s", CACHE_REASON_MAX - 1, why->text);
}

/* Asks for all that is due, in as many requests as the service needs, and records that. */
static int ask_all(struct reading *reading, enum online_query query, int64_t from_s, int64_t to_s,
                   struct fly_error *out_error)
{
    struct ask_query *record = &reading->content.queries[query];
    struct online_question question = {.query = query,
                                       .place = reading->request->place,
                                       .signal = reading->kind.signal,
                                       .scope = reading->kind.scope,
                                       .now_s = reading->now_s};
    int64_t longest_s = query == ONLINE_RANGE ? reading->provider->longest_s : to_s - from_s;
    int64_t start_s = query == ONLINE_RANGE ? start_of(record, from_s) : from_s, done_s = start_s;
    enum ask_outcome outcome = ASK_UNABLE;
    bool any = false;
    int code = 0;

    while (code >= 0 && done_s < to_s) {
        question.from_s = done_s;
        question.to_s = to_s - done_s > longest_s ? done_s + longest_s : to_s;
        code = ask_part(reading, &question, &outcome, out_error);
        any |= code == 0;
        done_s = code >= 0 ? question.to_s : done_s;
    }
    if (any)
        ask_note_answer(record, start_s, done_s, reading->now_s);
    else if (code > 0)
        outcome = ASK_REFUSED;
    if (code > 0)
        code = any ? 0 : error_set(out_error, FLY_ENOTFOUND, "it has no data of this time");
    if (outcome == ASK_REFUSED)
        note_refusal(reading, query, out_error);
    if (any || outcome == ASK_REFUSED) {
        struct fly_error error;
        int saved = grid_cache_save(&reading->cache, &reading->content, &error);

        if (saved < 0 && code == 0)
            code = error_set(out_error, saved, "%s", error.text);
    }
    return code;
}

static int check_refusal(const struct reading *reading, enum online_query query, struct fly_error *out_error)
{
    if (!ask_is_refused(&reading->content.queries[query], reading->now_s))
        return 0;
    return error_set(out_error, FLY_ENOTFOUND, "%s; it is asked again at most every %d min",
                     reading->content.reasons[query], ASK_REFUSED_S / 60);
}

static bool is_due(const struct reading *reading, enum online_query query, int64_t from_s, int64_t to_s)
{
    return ask_is_due(&reading->content.queries[query], from_s, to_s, step_of(reading, query),
                      reading->now_s);
}

/* Holds the source's lock, so that of many processes one asks and the others find its answer. */
static int refresh_locked(struct reading *reading, enum online_query query, int64_t from_s, int64_t to_s,
                          struct fly_error *out_error)
{
    struct cache_content before = reading->content;
    int code;

    grid_cache_load(&reading->cache, &reading->kind, &reading->content);
    cache_content_deinit(&before);
    if (!is_due(reading, query, from_s, to_s))
        return 0;
    code = check_refusal(reading, query, out_error);
    if (code == 0 && !reading->unlocked) {
        code = online_account_unlock(reading->provider, &reading->account, out_error);
        reading->unlocked = code == 0;
    }
    return code == 0 ? ask_all(reading, query, from_s, to_s, out_error) : code;
}

static int refresh(struct reading *reading, enum online_query query, int64_t from_s, int64_t to_s)
{
    /* The lock's holder waits for two or three answers at most. */
    double wait_s = 4.0 * reading->account.timeout_s;
    struct fly_error error = {.code = 0};
    int lock, code;

    if (from_s >= to_s || !is_due(reading, query, from_s, to_s))
        return 0;
    if (reading->request->cached_only) {
        error_set(&error, FLY_EUNREACHABLE, "what is in the cache does not reach; it was not to be asked");
        return remember(reading, &error);
    }
    code = grid_cache_lock(&reading->cache, wait_s, &lock, &error);
    if (code == 0) {
        code = refresh_locked(reading, query, from_s, to_s, &error);
        close(lock);
    }
    return code < 0 ? remember(reading, &error) : 0;
}

static void refresh_all(struct reading *reading)
{
    const struct grid_provider *provider = reading->provider;
    int64_t recent_s = reading->now_s - provider->recent_s;
    int64_t actual_to_s = reading->to_s < reading->now_s ? reading->to_s : reading->now_s;
    int code = 0;

    if (provider->recent_s == 0 || reading->from_s < recent_s)
        code = refresh(reading, ONLINE_RANGE, reading->from_s, actual_to_s);
    /* A key that gives no history may still give the last day. */
    if (provider->recent_s > 0 && actual_to_s > recent_s && (code < 0 || reading->from_s >= recent_s))
        (void)refresh(reading, ONLINE_RECENT, recent_s, reading->now_s);
    if (provider->forecast_s > 0 && reading->to_s > reading->now_s)
        (void)refresh(reading, ONLINE_FORECAST, reading->now_s, reading->now_s + provider->forecast_s);
}

/* Keeps the periods that touch the wanted time. */
static void cut(struct grid_series *series, int64_t from_s, int64_t to_s)
{
    size_t first = grid_series_find(series, from_s), count = 0;

    while (first + count < series->count && series->periods[first + count].start_s < to_s)
        count++;
    if (count > 0)
        memmove(series->periods, series->periods + first, count * sizeof series->periods[0]);
    series->count = count;
}

static int give(struct reading *reading, struct grid_answer *out_answer, struct fly_error *out_error)
{
    struct grid_answer *answer = &reading->content.answer;
    const char *name = reading->kind.provider, *zone = reading->kind.zone;

    cut(&answer->actual, reading->from_s, reading->to_s);
    cut(&answer->published, reading->from_s, reading->to_s);
    if (answer->actual.count == 0 && answer->published.count == 0) {
        cache_content_deinit(&reading->content);
        if (reading->trouble.code < 0)
            return error_set(out_error, reading->trouble.code, "'%s:%s' gives nothing: %s", name, zone,
                             reading->trouble.text);
        return error_set(out_error, FLY_ENOTFOUND,
                         "'%s:%s' has no data for this time; see whether the place exists", name, zone);
    }
    if (reading->trouble.code < 0)
        snprintf(answer->remark, sizeof answer->remark, "'%s:%s' gives a part: %.400s", name, zone,
                 reading->trouble.text);
    *out_answer = *answer;
    return 0;
}

int online_read(const struct grid_provider *provider, const struct grid_request *request,
                struct grid_answer *out_answer, struct fly_error *out_error)
{
    struct reading reading = {.provider = provider, .request = request};
    int code = online_kind(provider, request, &reading.kind, out_error);

    reading.now_s = request->now_s != 0 ? request->now_s : clock_real.date(clock_real.state).ns / NS_PER_S;
    reading.from_s = request->from_s == request->to_s ? reading.now_s - DAY_S : request->from_s;
    reading.to_s = request->from_s == request->to_s ? reading.now_s + DAY_S : request->to_s;
    if (code == 0)
        code = online_account_find(provider, &reading.account, out_error);
    if (code == 0)
        code = grid_cache_open(&reading.cache, provider->name, reading.account.base, request->place,
                               &reading.kind, out_error);
    if (code < 0)
        return code;
    reading.account.abandon = reading.cache.abandon = request->abandon;
    grid_cache_load(&reading.cache, &reading.kind, &reading.content);
    refresh_all(&reading); /* errors are in `trouble` */
    return give(&reading, out_answer, out_error);
}
