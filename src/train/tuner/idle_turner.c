/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/idle_turner.h"

#include <math.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "base/thread/pool.h"
#include "base/wait.h"

/* The usual patience. */
static const double least_s = 30.0, mean_steps = 20.0, pause_times = 2.0, pause_most_s = 600.0;
/* How often the thread looks: so many times while it is patient, at least every few seconds. */
static const double looks = 8.0, look_most_s = 5.0;
/* Settings in W and MHz, and numbers of profiles, that are the same to a driver. */
static const double same = 0.5;

/* ---- how long to wait ---- */

static double patience_s(const struct idle_turner *idle)
{
    double mean_s = idle->steps > 0.0 ? idle->busy_s / idle->steps : 0.0;

    if (idle->options.give_back_s > 0.0)
        return idle->options.give_back_s;
    return fmax(fmax(least_s, mean_steps * mean_s), fmin(pause_times * idle->longest_s, pause_most_s));
}

/* Counts the steps since the last look; a pause that was too long is none of their time. */
static void count(struct idle_turner *idle, uint64_t begun, struct mono_time now)
{
    double gap_s = mono_elapsed_s(idle->since, now), steps = (double)(begun - idle->begun);

    if (idle->seen && begun > idle->begun && gap_s <= patience_s(idle) * steps) {
        idle->busy_s += gap_s;
        idle->steps += steps;
    }
    if (idle->seen && begun > idle->begun && gap_s / steps > look_most_s)
        idle->longest_s = fmax(idle->longest_s, gap_s);
    idle->seen = true;
    idle->begun = begun;
    idle->since = now;
}

/* ---- giving back, and turning again ---- */

static bool is_other(const struct idle_side *side)
{
    double now;

    return side->turned && !side->back && side->turner->standing(side->data, &now, NULL) == 0 &&
           fabs(now - side->stands) > same;
}

/* Puts back what the caller's own turners have set; false when one fails, or nobody knows what stood. */
static bool turn_back(struct idle_turner *idle)
{
    bool all = true;

    for (size_t i = idle->count; i-- > 0;) {
        struct idle_side *side = &idle->sides[i];

        if (!side->turned)
            continue;
        side->back =
            side->back || (!isnan(side->start) && side->turner->set(side->data, side->start, NULL) == 0);
        all &= side->back;
    }
    return all;
}

static void give_back(struct idle_turner *idle)
{
    bool any = idle->options.close != NULL; /* others can have the knobs */

    for (size_t i = 0; i < idle->count; i++) {
        struct idle_side *side = &idle->sides[i];

        idle->foreign |= is_other(side);
        any |= side->turned;
        if (!side->turned && side->turner->standing(side->data, &side->start, NULL) == 0)
            side->wanted = side->stands = side->start;
    }
    if (!any)
        return;
    if (idle->options.close != NULL)
        idle->options.close(idle->options.data);
    else if (!idle->foreign && !turn_back(idle))
        return; /* the next look tries again */
    atomic_fetch_add(&idle->times, 1);
    atomic_store_explicit(&idle->idle, true, memory_order_release);
}

static void look(struct idle_turner *idle)
{
    struct mono_time now = idle->options.clock->now(idle->options.clock->state);
    uint64_t begun = __atomic_load_n(idle->options.steps, __ATOMIC_RELAXED);

    if (!idle->seen || begun != idle->begun)
        count(idle, begun, now);
    else if (!idle_turner_is_idle(idle) && mono_elapsed_s(idle->since, now) > patience_s(idle))
        give_back(idle);
}

static void *run(void *data)
{
    struct idle_turner *idle = data;

    pthread_mutex_lock(&idle->lock);
    while (!idle->ending) {
        look(idle);
        (void)mono_wait(&idle->ends, &idle->lock,
                        mono_after_s(mono_now(), fmin(patience_s(idle) / looks, look_most_s)));
    }
    pthread_mutex_unlock(&idle->lock);
    return NULL;
}

/* Without a thread the caller looks. */
static void begin(struct idle_turner *idle)
{
    if (!idle->threaded && !idle->ending && !idle->options.threadless && idle->options.clock == &clock_real &&
        isfinite(idle->options.give_back_s))
        idle->threaded = pool_add(&idle->pool, 0, run, idle) == 0;
}

static int turn_again(struct idle_turner *idle, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < idle->count && code == 0; i++) {
        struct idle_side *side = &idle->sides[i];

        if (!side->turned)
            continue;
        if (side->turner->standing(side->data, &side->stands, NULL) == 0)
            side->start = side->stands;
        side->back = false;
        code = side->turner->set(side->data, side->wanted, out_error);
        if (code == 0 && side->turner->standing(side->data, &side->stands, NULL) < 0)
            side->stands = side->wanted;
    }
    return code;
}

int idle_turner_wake(struct idle_turner *idle, double *out_gap_s, struct fly_error *out_error)
{
    const struct idle_options *options = &idle->options;
    struct mono_time now = options->clock->now(options->clock->state);
    int code = 0;

    pthread_mutex_lock(&idle->lock);
    *out_gap_s = mono_elapsed_s(idle->since, now);
    if (idle->foreign)
        code = error_set(out_error, FLY_ESTATE,
                         "another program changed the setting of a GPU before it was put back while no step "
                         "came; its value stands");
    if (code == 0 && options->open != NULL)
        code = options->open(options->data, out_error);
    if (code == 0) {
        code = turn_again(idle, out_error);
        if (code < 0 && options->close == NULL)
            (void)turn_back(idle);
    }
    if (code < 0 && options->close != NULL)
        options->close(options->data);
    if (code == 0) {
        count(idle, __atomic_load_n(options->steps, __ATOMIC_RELAXED) + 1, now);
        atomic_store_explicit(&idle->idle, false, memory_order_release);
    }
    pthread_mutex_unlock(&idle->lock);
    return code;
}

/* ---- the turner ---- */

static int range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct idle_side *side = data;

    return side->turner->range(side->data, out_range, out_error);
}

static int set(void *data, double setting, struct fly_error *out_error)
{
    struct idle_side *side = data;
    struct idle_turner *idle = side->idle;
    double before;
    int code = 0;

    pthread_mutex_lock(&idle->lock);
    before = side->stands;
    if (!idle_turner_is_idle(idle)) {
        if (!side->turned)
            (void)side->turner->standing(side->data, &before, NULL);
        code = side->turner->set(side->data, setting, out_error);
    }
    if (code == 0) {
        if (!side->turned)
            side->start = before;
        side->back = false;
        side->wanted = side->stands = setting;
        side->turned = true;
        begin(idle);
    }
    pthread_mutex_unlock(&idle->lock);
    return code;
}

static int standing(void *data, double *out_setting, struct fly_error *out_error)
{
    struct idle_side *side = data;
    int code = 0;

    pthread_mutex_lock(&side->idle->lock);
    if (!idle_turner_is_idle(side->idle))
        code = side->turner->standing(side->data, &side->stands, out_error);
    if (code == 0)
        *out_setting = side->stands;
    pthread_mutex_unlock(&side->idle->lock);
    return code;
}

static const struct fly_turner idle_sides = {.range = range, .set = set, .standing = standing};

/* ---- its life ---- */

void idle_turner_init(struct idle_turner *idle, const struct idle_options *options)
{
    *idle = (struct idle_turner){.options = *options, .forks = fork_generation()};
    pthread_mutex_init(&idle->lock, NULL);
    mono_cond_init(&idle->ends);
}

void idle_turner_add(struct idle_turner *idle, const struct fly_turner **turner, void **data)
{
    struct idle_side *side;

    pthread_mutex_lock(&idle->lock);
    side = &idle->sides[idle->count++];
    *side = (struct idle_side){
        .idle = idle, .turner = *turner, .data = *data, .start = NAN, .wanted = NAN, .stands = NAN};
    *turner = &idle_sides;
    *data = side;
    if (idle->options.close != NULL)
        begin(idle);
    pthread_mutex_unlock(&idle->lock);
}

struct idle_turner *idle_turner_of(const struct fly_turner *turner, void *data)
{
    return turner == &idle_sides ? ((struct idle_side *)data)->idle : NULL;
}

void idle_turner_look(struct idle_turner *idle)
{
    if (idle->threaded || idle->count == 0)
        return;
    pthread_mutex_lock(&idle->lock);
    look(idle);
    pthread_mutex_unlock(&idle->lock);
}

void idle_turner_give_back(struct idle_turner *idle)
{
    if (idle->count == 0)
        return;
    pthread_mutex_lock(&idle->lock);
    if (!idle_turner_is_idle(idle))
        give_back(idle);
    pthread_mutex_unlock(&idle->lock);
}

void idle_turner_hold(struct idle_turner *idle)
{
    pthread_mutex_lock(&idle->lock);
}

void idle_turner_let_go(struct idle_turner *idle)
{
    pthread_mutex_unlock(&idle->lock);
}

void idle_turner_forget(struct idle_turner *idle)
{
    for (size_t i = 0; i < idle->count; i++)
        idle->sides[i].turned = false;
}

double idle_turner_start(const void *data)
{
    return ((const struct idle_side *)data)->start;
}

void idle_turner_end(struct idle_turner *idle)
{
    if (idle->count == 0 || idle->forks != fork_generation())
        return;
    pthread_mutex_lock(&idle->lock);
    idle->ending = true;
    pthread_cond_broadcast(&idle->ends);
    pthread_mutex_unlock(&idle->lock);
    pool_join(&idle->pool);
    idle->threaded = false;
    pthread_cond_destroy(&idle->ends);
    pthread_mutex_destroy(&idle->lock);
    idle->count = 0;
}
