/* SPDX-License-Identifier: Apache-2.0 */
/* Right in everything but the fault that meson.build asks for. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <flyball/plugin.h>

enum fault {
    NO_FAULT,
    WRONG_BATCH,
    NO_ANSWER,
    WRONG_LIMIT,
    NAN_LIMIT,
    WRONG_RULE,
    WRONG_EPOCHS,
    NO_STATE,
    FAIL_LATE,
    NOTHING_LEFT,
    TWO_ANSWERS,
    WRONG_POINT,
    NO_POINT,
    CRASH_SEGV,
    CRASH_BUS,
    CRASH_FPE,
    CRASH_ILL,
    CRASH_ABORT,
    CALL_EXIT,
    CRASH_STACK,
    CRASH_OBSERVE,
    CRASH_DESTROY,
    CRASH_LOADING,
    CRASH_CHOOSE,
    CALL_BARE_EXIT,
    CALL_PLAIN_EXIT,
    CALL_QUICK_EXIT,
    WILD_REASON,
};

#ifndef FAULT
#define FAULT NO_FAULT
#endif
#ifndef ABI
#define ABI FLY_PLUGIN_ABI
#endif
#ifndef NAME
#define NAME "bad"
#endif
#ifndef CREATE
#define CREATE create
#endif
#ifndef PROPOSE
#define PROPOSE propose
#endif
#ifndef CHOOSE
#define CHOOSE choose
#endif
#ifdef SIZE
#define BATCH_SIZE SIZE
#define POWER_SIZE SIZE
#else
#define BATCH_SIZE sizeof(struct fly_batch_policy)
#define POWER_SIZE sizeof(struct fly_power_policy)
#endif

static const enum fault fault = FAULT;

/* A store that no machine allows, and that no sanitizer sees before the machine does. */
static void store_nowhere(void)
{
    /* cppcheck-suppress invalidFunctionArg; no file */
    volatile int *nowhere = mmap(NULL, sizeof *nowhere, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *nowhere = 1;
}

static int use_up_stack(int depth)
{
    volatile char frame[4096];

    frame[depth % 4096] = (char)depth;
    return depth < 0 ? frame[0] : use_up_stack(depth + 1) + frame[depth % 4096];
}

__attribute__((constructor)) static void load(void)
{
    if (fault == CRASH_LOADING)
        store_nowhere();
}

__attribute__((unused)) static int create(const struct fly_batch_job *job, void **out_state,
                                          const char **out_reason)
{
    if (fault == WILD_REASON) {
        static const uintptr_t nowhere = 16;

        memcpy(out_reason, &nowhere, sizeof nowhere);
        return 7;
    }
    if (fault == NO_STATE) {
        *out_reason = "it is too late";
        return 7;
    }
    memcpy(out_state, &job, sizeof job); /* it never writes to it */
    return 0;
}

static void destroy(void *state)
{
    (void)state;
    if (fault == CRASH_DESTROY)
        store_nowhere();
}

static void observe(void *state, const struct fly_trial *trial)
{
    (void)state;
    (void)trial;
    if (fault == CRASH_OBSERVE)
        store_nowhere();
}

static void do_crash(void)
{
    if (fault == CRASH_SEGV)
        store_nowhere();
    else if (fault == CRASH_BUS)
        raise(SIGBUS);
    else if (fault == CRASH_FPE)
        raise(SIGFPE);
    else if (fault == CRASH_ILL)
        raise(SIGILL);
    else if (fault == CRASH_ABORT)
        abort();
    else if (fault == CALL_EXIT)
        exit(0);
    else if (fault == CALL_BARE_EXIT)
        _exit(0);
    else if (fault == CALL_PLAIN_EXIT)
        _Exit(0);
    else if (fault == CALL_QUICK_EXIT)
        quick_exit(0);
    else if (fault == CRASH_STACK)
        use_up_stack(0);
}

#ifdef THREAD
static void *run(void *nothing)
{
    do_crash();
    return nothing;
}

/* The call has returned by then, or not: whose thread it is does not follow from that. */
static void crash(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, NULL) == 0)
        pthread_join(thread, NULL);
}
#else
static void crash(void)
{
    do_crash();
}
#endif

__attribute__((unused)) static int propose(const void *state, const struct fly_batch_question *question,
                                           struct fly_batch_decision *out_decision)
{
    static _Thread_local unsigned asked;
    const struct fly_batch_job *job = state;

    asked++;
    if (question->recurrence < 3) { /* all is well at first */
        out_decision->batch = job->default_batch;
        return 0;
    }
    crash();
    if (fault == FAIL_LATE)
        return -5;
    if (fault == NOTHING_LEFT)
        return FLY_NOTHING_LEFT;
    if (fault != NO_ANSWER)
        out_decision->batch = fault == WRONG_BATCH   ? job->batch_count
                              : fault == TWO_ANSWERS ? asked % job->batch_count
                                                     : job->default_batch;
    if (fault == WRONG_LIMIT || fault == NAN_LIMIT) {
        out_decision->limit_rule = FLY_LIMIT_FIXED;
        out_decision->limit_w = fault == NAN_LIMIT ? NAN : 123.25;
    }
    if (fault == WRONG_RULE)
        out_decision->limit_rule = (enum fly_limit_rule)9;
    return 0;
}

static uint32_t epoch_cap(const void *state, size_t batch, double epoch_energy_j, double epoch_time_s)
{
    const struct fly_batch_job *job = state;

    (void)batch;
    (void)epoch_energy_j;
    (void)epoch_time_s;
    return fault == WRONG_EPOCHS ? job->max_epochs + 1 : job->max_epochs;
}

__attribute__((unused)) static int choose(const struct fly_power_point *points, size_t count, double eta,
                                          double max_power_w, size_t *out_index)
{
    (void)points;
    (void)eta;
    (void)max_power_w;
    if (fault == CRASH_CHOOSE)
        store_nowhere();
    if (fault == NO_POINT)
        return -1;
    *out_index = fault == WRONG_POINT ? count : 0;
    return 0;
}

const struct fly_batch_policy fly_batch_policy_plugin = {
    .abi = ABI,
    .size = BATCH_SIZE,
    .name = NAME,
    .version = 1,
    .create = CREATE,
    .destroy = destroy,
    .observe = observe,
    .propose = PROPOSE,
    .epoch_cap = epoch_cap,
};

const struct fly_power_policy fly_power_policy_plugin = {
    .abi = ABI,
    .size = POWER_SIZE,
    .name = NAME,
    .version = 1,
    .choose = CHOOSE,
};
