/* SPDX-License-Identifier: Apache-2.0 */
/* The owner waits a moment for a thread that is held up, and then leaves the feed to it. */
#include "train/carbon/carbon_feed.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/thread_group.h"
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

struct carbon_feed {
    struct carbon_feed_options options; /* constant once the feed is open */
    atomic_bool abandon;
    struct thread_group group; /* its lock guards what follows, up to `texts` */
    bool first_read;           /* and what came of it: */
    int first_code;
    struct fly_error first_error;
    struct grid_answer fresh[CARBON_SIGNALS];
    bool is_fresh[CARBON_SIGNALS];
    char texts[CARBON_SIGNALS][FLY_ERROR_TEXT_MAX];
    /* The owner's. */
    bool threaded;
    int64_t due_s; /* without a thread */
    struct grid_answer held[CARBON_SIGNALS];
    bool is_held[CARBON_SIGNALS];
};

static int64_t date_s(const struct carbon_feed *feed)
{
    return feed->options.clock->date(feed->options.clock->state).ns / NS_PER_S;
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
static int read_one(struct carbon_feed *feed, int signal, bool cached_only, struct fly_error *out_error)
{
    int64_t now_s = date_s(feed);
    struct grid_request request = {.from_s = now_s - GRID_FORECAST_DAYS * (int64_t)DAY_S,
                                   .to_s = now_s + AHEAD_S,
                                   .now_s = now_s,
                                   .cached_only = cached_only,
                                   .abandon = &feed->abandon};
    struct grid_answer answer, old = {.remark = ""};
    char text[FLY_ERROR_TEXT_MAX] = "";
    int code = grid_read_signal(feed->options.sources[signal], signal, &request, &answer,
                                "; name another source", out_error);

    note(feed->options.sources[signal], cached_only && !feed->options.cached_only, code,
         code == 0 ? answer.remark : out_error->text, text);
    pthread_mutex_lock(&feed->group.lock);
    if (code == 0) {
        old = feed->fresh[signal];
        feed->fresh[signal] = answer;
        feed->is_fresh[signal] = true;
    }
    /* What was given up because nobody waits any more is no fault either. */
    if (!atomic_load(&feed->abandon))
        memcpy(feed->texts[signal], text, sizeof text);
    pthread_mutex_unlock(&feed->group.lock);
    grid_answer_deinit(&old);
    return code;
}

/* Reads all sources; returns whether all is well. */
static bool read_all(struct carbon_feed *feed, bool cached_only)
{
    bool well = true;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        struct fly_error error = {.code = 0};

        if (feed->options.sources[i][0] == '\0' || atomic_load(&feed->abandon))
            continue;
        (void)read_one(feed, i, cached_only, &error);
        pthread_mutex_lock(&feed->group.lock);
        well &= feed->texts[i][0] == '\0';
        pthread_mutex_unlock(&feed->group.lock);
    }
    return well;
}

static int64_t next_s(const struct carbon_feed *feed, bool well)
{
    int64_t now_s = date_s(feed), border_s = (now_s / BORDER_S + 1) * BORDER_S;
    int64_t after_s = border_s + LATE_S + (int64_t)((uint64_t)getpid() * 2654435761U % SPREAD_S);

    return !well && after_s > now_s + AGAIN_S ? now_s + AGAIN_S : after_s;
}

static void free_feed(void *of)
{
    struct carbon_feed *feed = of;

    for (int i = 0; i < CARBON_SIGNALS; i++)
        grid_answer_deinit(&feed->fresh[i]);
    free(feed);
}

/*
 * Waits; false when it is time to end. Uses the monotonic clock: a jump of the date delays by a period at
 * most.
 */
static bool wait_for(struct carbon_feed *feed, double wait_s)
{
    struct mono_time until = mono_after_s(mono_now(), wait_s);

    pthread_mutex_lock(&feed->group.lock);
    while (!atomic_load(&feed->abandon) && thread_group_wait(&feed->group, until))
        ;
    pthread_mutex_unlock(&feed->group.lock);
    return !atomic_load(&feed->abandon);
}

static void run(void *of)
{
    struct carbon_feed *feed = of;
    bool well;

    do
        well = read_all(feed, feed->options.cached_only);
    while (wait_for(feed, (double)(next_s(feed, well) - date_s(feed))));
}

/* The first reading, which shows whether the sources are possible. */
static int read_first(struct carbon_feed *feed, struct fly_error *out_error)
{
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const char *source = feed->options.sources[i];
        struct fly_error error = {.code = 0};
        int code = source[0] != '\0' ? read_one(feed, i, true, &error) : 0;

        if (code == FLY_ENOMEM)
            return error_no_memory(out_error);
        if (code == FLY_EUSAGE || code == FLY_EUNSUPPORTED || (code < 0 && grid_is_local(source)))
            return error_set(out_error, FLY_EUSAGE, "the grid's figures: %.440s", error.text);
    }
    return 0;
}

static void read_first_now(void *of)
{
    struct carbon_feed *feed = of;
    struct fly_error error = {.code = 0};
    int code = read_first(feed, &error);

    pthread_mutex_lock(&feed->group.lock);
    feed->first_error = error;
    feed->first_code = code;
    feed->first_read = true;
    thread_group_wake(&feed->group);
    pthread_mutex_unlock(&feed->group.lock);
}

/* Makes the first reading, if the disk lets it. */
static int read_first_apart(struct carbon_feed *feed, struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), first_most_s);
    bool started;
    int code;

    pthread_mutex_lock(&feed->group.lock);
    started = thread_group_start(&feed->group, read_first_now, feed);
    while (started && !feed->first_read && thread_group_wait(&feed->group, until))
        ;
    code = feed->first_code;
    if (code < 0)
        error_set(out_error, code, "%s", feed->first_error.text);
    pthread_mutex_unlock(&feed->group.lock);
    return started ? code : read_first(feed, out_error);
}

static bool start(struct carbon_feed *feed)
{
    pthread_mutex_lock(&feed->group.lock);
    feed->threaded = thread_group_start(&feed->group, run, feed);
    pthread_mutex_unlock(&feed->group.lock);
    return feed->threaded;
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
    feed->options = *options;
    thread_group_init(&feed->group, free_feed, feed);
    code = options->threadless ? read_first(feed, out_error) : read_first_apart(feed, out_error);
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
    struct grid_answer old[CARBON_SIGNALS] = {0};
    bool any = false;

    pthread_mutex_lock(&feed->group.lock);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (!feed->is_fresh[i])
            continue;
        old[i] = feed->held[i];
        feed->held[i] = feed->fresh[i];
        feed->is_held[i] = any = true;
        feed->fresh[i] = (struct grid_answer){.remark = ""};
        feed->is_fresh[i] = false;
    }
    pthread_mutex_unlock(&feed->group.lock);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        grid_answer_deinit(&old[i]);
        out_answers[i] = feed->is_held[i] ? &feed->held[i] : NULL;
    }
    return any;
}

void carbon_feed_text(struct carbon_feed *feed, char text[FLY_ERROR_TEXT_MAX])
{
    text[0] = '\0';
    pthread_mutex_lock(&feed->group.lock);
    for (int i = 0; i < CARBON_SIGNALS && text[0] == '\0'; i++)
        snprintf(text, FLY_ERROR_TEXT_MAX, "%s", feed->texts[i]);
    pthread_mutex_unlock(&feed->group.lock);
}

void carbon_feed_turn(struct carbon_feed *feed)
{
    if (feed->threaded || date_s(feed) < feed->due_s)
        return;
    feed->due_s = next_s(feed, read_all(feed, feed->options.cached_only));
}

void carbon_feed_abandon(struct carbon_feed *feed)
{
    atomic_store(&feed->abandon, true);
    pthread_mutex_lock(&feed->group.lock);
    thread_group_wake(&feed->group);
    pthread_mutex_unlock(&feed->group.lock);
}

void carbon_feed_close(struct carbon_feed *feed)
{
    if (feed == NULL)
        return;
    for (int i = 0; i < CARBON_SIGNALS; i++)
        grid_answer_deinit(&feed->held[i]);
    /* A child's copy of what the thread makes may be in the middle of a change that nobody completes. */
    if (thread_group_is_copy(&feed->group)) {
        free(feed);
        return;
    }
    atomic_store(&feed->abandon, true);
    (void)thread_group_end(&feed->group, goodbye_s);
    thread_group_leave(&feed->group);
}
