/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread and its owner share a state with a count of users: the last one to leave frees it, so the owner
 * need not wait for a thread that is held up.
 */
#include "train/carbon/carbon_feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "base/thread/quiet_thread.h"
#include "base/thread/thread_group.h"
#include "base/wait.h"
#include "grid/forecast.h"
#include "grid/providers.h"

enum {
    NS_PER_S = 1000000000,
    BORDER_S = 300,
    DAY_S = 86400,
    AHEAD_S = 31 * DAY_S,
    /*
     * After a border, when the figures of a new period are out; machines and processes should not ask all at
     * once.
     */
    LATE_S = 15,
    SPREAD_S = 30,
    AGAIN_S = 120,
};
static const double goodbye_s = 1.0;
/* How long opening waits for the disk with the cache. */
static const double first_most_s = 2.0;

struct feed_state {
    struct carbon_feed_options options; /* constant once the feed is open */
    atomic_bool abandon;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* signals the end, and that the thread has ended */
    int holders;
    bool ended;
    struct grid_answer fresh[CARBON_SIGNALS];
    bool is_fresh[CARBON_SIGNALS];
    char texts[CARBON_SIGNALS][FLY_ERROR_TEXT_MAX];
};

struct carbon_feed {
    struct feed_state *state;
    uint64_t forks;
    pthread_t thread;
    bool threaded;
    int64_t due_s; /* without a thread */
    /* What the owner looks at. */
    struct grid_answer held[CARBON_SIGNALS];
    bool is_held[CARBON_SIGNALS];
};

static int64_t date_s(const struct feed_state *state)
{
    return state->options.clock->date(state->options.clock->state).ns / NS_PER_S;
}

/* Turns a reading's remark or error into a text for the reader. */
static void note(const char *source, bool network_is_next, int code, const char *text,
                 char out[FLY_ERROR_TEXT_MAX])
{
    /* It is no news that the cache alone does not suffice, before the network was asked. */
    if (network_is_next && text[0] != '\0' && (code == 0 || code == FLY_EUNREACHABLE))
        snprintf(out, FLY_ERROR_TEXT_MAX, "'%.200s' has not answered yet", source);
    else
        snprintf(out, FLY_ERROR_TEXT_MAX, "%s", text);
}

/* Reads one figure's source; forgets a fault of an earlier reading. */
static int read_one(struct feed_state *state, int signal, bool cached_only, struct fly_error *out_error)
{
    int64_t now_s = date_s(state);
    struct grid_request request = {.quantity = signal == CARBON_PRICE ? GRID_PRICE : GRID_CARBON,
                                   .from_s = now_s - GRID_FORECAST_DAYS * (int64_t)DAY_S,
                                   .to_s = now_s + AHEAD_S,
                                   .now_s = now_s,
                                   .cached_only = cached_only,
                                   .abandon = &state->abandon};
    struct grid_answer answer, old = {.remark = ""};
    char text[FLY_ERROR_TEXT_MAX] = "";
    int code = grid_read(state->options.sources[signal], &request, &answer, out_error);

    if (code == 0 && answer.actual.kind.quantity != request.quantity) {
        grid_answer_deinit(&answer);
        code = error_set(out_error, FLY_EUSAGE, "'%.200s' has no %s; name another source",
                         state->options.sources[signal],
                         signal == CARBON_PRICE ? "prices" : "carbon intensities");
    }
    note(state->options.sources[signal], cached_only && !state->options.cached_only, code,
         code == 0 ? answer.remark : out_error->text, text);
    pthread_mutex_lock(&state->lock);
    if (code == 0) {
        old = state->fresh[signal];
        state->fresh[signal] = answer;
        state->is_fresh[signal] = true;
    }
    /* What was given up because nobody waits any more is no fault either. */
    if (!atomic_load(&state->abandon))
        memcpy(state->texts[signal], text, sizeof text);
    pthread_mutex_unlock(&state->lock);
    grid_answer_deinit(&old);
    return code;
}

/* Reads all sources; returns whether all is well. */
static bool read_all(struct feed_state *state, bool cached_only)
{
    bool well = true;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        struct fly_error error = {.code = 0};

        if (state->options.sources[i][0] == '\0' || atomic_load(&state->abandon))
            continue;
        (void)read_one(state, i, cached_only, &error);
        pthread_mutex_lock(&state->lock);
        well &= state->texts[i][0] == '\0';
        pthread_mutex_unlock(&state->lock);
    }
    return well;
}

static int64_t next_s(const struct feed_state *state, bool well)
{
    int64_t now_s = date_s(state), border_s = (now_s / BORDER_S + 1) * BORDER_S;
    int64_t after_s = border_s + LATE_S + (int64_t)((uint64_t)getpid() * 2654435761U % SPREAD_S);

    return !well && after_s > now_s + AGAIN_S ? now_s + AGAIN_S : after_s;
}

static void let_go(struct feed_state *state)
{
    int left;

    pthread_mutex_lock(&state->lock);
    left = --state->holders;
    pthread_mutex_unlock(&state->lock);
    if (left > 0)
        return;
    for (int i = 0; i < CARBON_SIGNALS; i++)
        grid_answer_deinit(&state->fresh[i]);
    pthread_cond_destroy(&state->wake);
    pthread_mutex_destroy(&state->lock);
    free(state);
}

/*
 * Waits; false when it is time to end. Uses the monotonic clock: a jump of the date delays by a period at
 * most.
 */
static bool wait_for(struct feed_state *state, double wait_s)
{
    struct mono_time until = mono_after_s(mono_now(), wait_s);

    pthread_mutex_lock(&state->lock);
    while (!atomic_load(&state->abandon) && mono_wait(&state->wake, &state->lock, until))
        ;
    pthread_mutex_unlock(&state->lock);
    return !atomic_load(&state->abandon);
}

static void *run(void *data)
{
    struct feed_state *state = data;
    bool well;

    do
        well = read_all(state, state->options.cached_only);
    while (wait_for(state, (double)(next_s(state, well) - date_s(state))));
    pthread_mutex_lock(&state->lock);
    state->ended = true;
    pthread_cond_broadcast(&state->wake);
    pthread_mutex_unlock(&state->lock);
    let_go(state);
    return NULL;
}

/* Whether the source is no service: then it answers at once, and always the same. */
static bool is_local(const char *source)
{
    size_t length = strcspn(source, ":");

    for (size_t i = 0; grid_providers[i] != NULL; i++) {
        const char *name = grid_providers[i]->name;

        if (source[length] == ':' && strlen(name) == length && strncmp(source, name, length) == 0)
            return grid_providers[i] == &grid_provider_csv || grid_providers[i] == &grid_provider_constant;
    }
    return true;
}

/* The first reading, which shows whether the sources are possible. */
static int read_first(struct feed_state *state, struct fly_error *out_error)
{
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const char *source = state->options.sources[i];
        struct fly_error error = {.code = 0};
        int code = source[0] != '\0' ? read_one(state, i, true, &error) : 0;

        if (code == FLY_ENOMEM)
            return error_no_memory(out_error);
        if (code == FLY_EUSAGE || code == FLY_EUNSUPPORTED || (code < 0 && is_local(source)))
            return error_set(out_error, FLY_EUSAGE, "the grid's figures: %.440s", error.text);
    }
    return 0;
}

struct first {
    struct feed_state *state; /* holds it */
    struct fly_error error;
    int code;
};

static void read_first_now(void *of)
{
    struct first *first = of;

    first->code = read_first(first->state, &first->error);
}

static void drop_first(void *of)
{
    struct first *first = of;

    let_go(first->state);
    free(first);
}

/* Makes the first reading, if the disk lets it. */
static int read_first_apart(struct feed_state *state, struct fly_error *out_error)
{
    struct first *first = calloc(1, sizeof *first);
    int code;

    if (first == NULL)
        return error_no_memory(out_error);
    first->state = state;
    state->holders++;
    if (!apart_run(read_first_now, drop_first, first, first_most_s))
        return 0;
    code = first->code;
    if (code < 0)
        error_set(out_error, code, "%s", first->error.text);
    drop_first(first);
    return code;
}

static void hold(struct feed_state *state, int more)
{
    pthread_mutex_lock(&state->lock);
    state->holders += more;
    pthread_mutex_unlock(&state->lock);
}

static bool start(struct carbon_feed *feed)
{
    hold(feed->state, 1);
    feed->threaded = quiet_thread_start(&feed->thread, run, feed->state);
    if (!feed->threaded)
        hold(feed->state, -1);
    return feed->threaded;
}

static struct feed_state *new_state(const struct carbon_feed_options *options)
{
    struct feed_state *state = calloc(1, sizeof *state);

    if (state == NULL)
        return NULL;
    state->options = *options;
    state->holders = 1;
    pthread_mutex_init(&state->lock, NULL);
    mono_cond_init(&state->wake);
    return state;
}

static bool has_source(const struct carbon_feed_options *options)
{
    bool any = false;

    for (int i = 0; i < CARBON_SIGNALS; i++)
        any |= options->sources[i][0] != '\0';
    return any;
}

int carbon_feed_open(const struct carbon_feed_options *options, struct carbon_feed **out_feed,
                     struct fly_error *out_error)
{
    struct carbon_feed *feed = calloc(1, sizeof *feed);
    int code;

    if (feed == NULL)
        return error_no_memory(out_error);
    feed->forks = fork_generation();
    feed->state = new_state(options);
    if (feed->state == NULL)
        code = error_no_memory(out_error);
    else
        code = options->threadless ? read_first(feed->state, out_error)
                                   : read_first_apart(feed->state, out_error);
    if (code == 0 && !options->threadless && has_source(options) && !start(feed))
        code = error_set(out_error, FLY_ENOMEM,
                         "no thread can be started to read the grid's figures; raise the limit of processes "
                         "(ulimit -u)");
    if (code < 0)
        carbon_feed_close(feed);
    else
        *out_feed = feed;
    return code;
}

bool carbon_feed_take(struct carbon_feed *feed, const struct grid_answer *out_answers[CARBON_SIGNALS])
{
    struct feed_state *state = feed->state;
    struct grid_answer old[CARBON_SIGNALS] = {0};
    bool any = false;

    pthread_mutex_lock(&state->lock);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (!state->is_fresh[i])
            continue;
        old[i] = feed->held[i];
        feed->held[i] = state->fresh[i];
        feed->is_held[i] = any = true;
        state->fresh[i] = (struct grid_answer){.remark = ""};
        state->is_fresh[i] = false;
    }
    pthread_mutex_unlock(&state->lock);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        grid_answer_deinit(&old[i]);
        out_answers[i] = feed->is_held[i] ? &feed->held[i] : NULL;
    }
    return any;
}

void carbon_feed_text(struct carbon_feed *feed, char text[FLY_ERROR_TEXT_MAX])
{
    text[0] = '\0';
    pthread_mutex_lock(&feed->state->lock);
    for (int i = 0; i < CARBON_SIGNALS && text[0] == '\0'; i++)
        snprintf(text, FLY_ERROR_TEXT_MAX, "%s", feed->state->texts[i]);
    pthread_mutex_unlock(&feed->state->lock);
}

void carbon_feed_turn(struct carbon_feed *feed)
{
    if (feed->threaded || date_s(feed->state) < feed->due_s)
        return;
    feed->due_s = next_s(feed->state, read_all(feed->state, feed->state->options.cached_only));
}

void carbon_feed_abandon(struct carbon_feed *feed)
{
    atomic_store(&feed->state->abandon, true);
    pthread_mutex_lock(&feed->state->lock);
    pthread_cond_broadcast(&feed->state->wake);
    pthread_mutex_unlock(&feed->state->lock);
}

/* Joins the thread, or leaves it running when it is held up. */
static void end_thread(struct carbon_feed *feed)
{
    struct feed_state *state = feed->state;
    struct mono_time until = mono_after_s(mono_now(), goodbye_s);
    bool ended;

    carbon_feed_abandon(feed);
    pthread_mutex_lock(&state->lock);
    while (!state->ended && mono_wait(&state->wake, &state->lock, until))
        ;
    ended = state->ended;
    pthread_mutex_unlock(&state->lock);
    if (ended)
        pthread_join(feed->thread, NULL);
    else
        pthread_detach(feed->thread);
}

void carbon_feed_close(struct carbon_feed *feed)
{
    if (feed == NULL)
        return;
    /* A child's copy of the shared state may be in the middle of a change that nobody completes. */
    if (feed->forks == fork_generation()) {
        if (feed->threaded)
            end_thread(feed);
        if (feed->state != NULL)
            let_go(feed->state);
    }
    for (int i = 0; i < CARBON_SIGNALS; i++)
        grid_answer_deinit(&feed->held[i]);
    free(feed);
}
