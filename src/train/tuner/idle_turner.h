/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_IDLE_TURNER_H
#define FLYBALL_TRAIN_TUNER_IDLE_TURNER_H

#include <pthread.h>
#include <stdatomic.h>

#include <flyball/tuner.h>

#include "base/clock.h"
#include "base/thread/pool.h"

/*
 * Stands between a tuner or a session and its turners, and gives back what they set while the training makes
 * no steps: an exception ended it in a notebook that lives on, or it is over and nothing was closed.
 *
 *     idle_turner_init(&idle, &options);
 *     idle_turner_add(&idle, &turner, &data);          turn through these two from now on
 *     at each step's begin:
 *         if (idle_turner_is_idle(&idle))
 *             code = idle_turner_wake(&idle, &gap_s, &error);
 *     idle_turner_end(&idle);                          puts nothing back
 *
 * **When.** After `give_back_s` without a step. The usual: 30 s, but at least 20 mean steps, and twice the
 * longest pause that steps followed, up to 10 minutes: an evaluation that outlasts the 30 s interrupts tuning
 * once, and not at every epoch.
 *
 * **What.** Each setting goes back to what stood when it was turned first, unless another program has changed
 * it since; `close` lets go of the knobs, so that others can turn them. Until the next step, what is set is
 * only noted. `wake` opens the knobs and sets what stood, or what was noted. Where that fails (the knobs are
 * somebody else's by now, another program has set a limit) all stays as it is.
 *
 * With clock_real, a thread looks, from the first setting on, or where there is `close`, from the begin; it
 * calls turners and `close`, never while another call is in a turner. With another clock, or where no thread
 * can be started, idle_turner_look is to be called before and after a step begins. One thread calls all other
 * functions. In a child after fork nothing is given back.
 */
enum { IDLE_SIDES = 2 };

struct idle_options {
    const uint64_t *steps; /* begun so far, written by step_count_step; other threads read it */
    const struct clock *clock;
    double give_back_s; /* 0: the usual; INFINITY: never */
    bool threadless;    /* idle_turner_look is called by hand */
    /* Opens the knobs behind the turners again, and closes them; NULL: the turners put back by themselves. */
    int (*open)(void *data, struct fly_error *out_error);
    void (*close)(void *data);
    void *data;
};

struct idle_turner;

struct idle_side {
    struct idle_turner *idle;
    const struct fly_turner *turner; /* NULL: there is no such side */
    void *data;
    double start;      /* stood before it was turned; NAN: not known */
    double wanted;     /* was set last */
    double stands;     /* was read back, or was set */
    bool turned, back; /* `back`: what stood before was set again */
};

struct idle_turner {
    struct idle_options options;
    uint64_t forks;
    struct idle_side sides[IDLE_SIDES];
    size_t count;
    bool threaded, ending;
    struct pool pool; /* of its thread */
    pthread_mutex_t lock;
    pthread_cond_t ends;
    atomic_bool idle;
    atomic_uint times; /* that something was given back */
    bool foreign;      /* another program had changed a setting by then */
    /* Of the steps, as seen so far. */
    bool seen;
    uint64_t begun;
    struct mono_time since; /* when `begun` was new */
    double busy_s, steps;   /* without the pauses that were too long */
    double longest_s;       /* of those pauses */
};

void idle_turner_init(struct idle_turner *idle, const struct idle_options *options);

/* Puts itself in front of a turner. The data stays valid until the end; at most IDLE_SIDES. */
void idle_turner_add(struct idle_turner *idle, const struct fly_turner **turner, void **data);

/* Returns the idle turner that this turner belongs to; NULL: it is another turner. */
struct idle_turner *idle_turner_of(const struct fly_turner *turner, void *data);

/* Gives back if it is time to. Does nothing where a thread looks. */
void idle_turner_look(struct idle_turner *idle);

/* Gives back now. */
void idle_turner_give_back(struct idle_turner *idle);

/* Whether all is given back. For any thread. */
static inline bool idle_turner_is_idle(const struct idle_turner *idle)
{
    return atomic_load_explicit(&idle->idle, memory_order_acquire);
}

/*
 * Sets again what was given back. FLY_ESTATE if another program had changed it, and errors of `open` and of
 * the turners: then it stays given back. Stores for how long no step had come.
 */
int idle_turner_wake(struct idle_turner *idle, double *out_gap_s, struct fly_error *out_error);

/* All was put back by other means: there is nothing to turn again. Between hold and let_go. */
void idle_turner_forget(struct idle_turner *idle);

/* For those who use the knobs behind the turners: keeps `close` away in between. */
void idle_turner_hold(struct idle_turner *idle);
void idle_turner_let_go(struct idle_turner *idle);

/* What stands while all is given back, and stood before the first turn since; NAN: not known. */
double idle_turner_start(const void *data);

/* Ends the thread. */
void idle_turner_end(struct idle_turner *idle);

#endif
