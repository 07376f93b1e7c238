/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a GPU: waits for work, does it, and looks after what it has turned. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"

#include "node/lease/leases_private.h"

enum { LOOK_MS = 500, SWEEP_MS = 2000 };
/* How often it is tried to put back what is left: first, and then ever more rarely. */
static const double repair_again_s = 1, repair_last_s = 60, repair_longer = 1.5;
/* After how many looks, two seconds apart, a lock that somebody holds keeps nothing from being put back. */
static const unsigned patient_looks = 5;

/* Tells others that the hand is at a call that may hang; returns false if it is to make none now. */
static bool begin_call(struct hand *hand)
{
    struct leases *leases = hand->leases;
    bool may;

    pthread_mutex_lock(&leases->group.lock);
    may = !leases->released && !leases->stopping;
    hand->busy = may;
    hand->busy_since = mono_now();
    pthread_mutex_unlock(&leases->group.lock);
    return may;
}

static void see(struct hand *hand)
{
    struct leases_gpu *seen = &hand->seen;

    memset(&seen->report, 0, sizeof seen->report);
    if (hand->knob != NULL)
        seen->report = *knob_report(hand->knob, 0);
    seen->for_process = hand->for_process;
    seen->ready = hand->repaired;
    seen->stuck = hand->stuck;
    seen->turned = hand->knob != NULL && (seen->report.state == KNOB_TURNED ||
                                          ((hand->made.asked & QUANTITY_BIT(QUANTITY_PERSISTENCE)) != 0 &&
                                           hand->made.persistence != hand->persistence_before));
}

/* Under the lock. */
static void end_call_locked(struct hand *hand)
{
    hand->busy = false;
    see(hand);
    atomic_fetch_add(&hand->leases->changes, 1);
    thread_group_wake(&hand->leases->group);
}

static void end_call(struct hand *hand)
{
    pthread_mutex_lock(&hand->leases->group.lock);
    end_call_locked(hand);
    pthread_mutex_unlock(&hand->leases->group.lock);
}

/* Until when there is nothing to do unless somebody wakes the hand. */
static struct mono_time idle_until(const struct hand *hand)
{
    if (hand->knob == NULL && !hand->repaired)
        return hand->repair_after;
    return mono_after_s(mono_now(), 1e-3 * (hand->knob != NULL ? LOOK_MS : SWEEP_MS));
}

/*
 * Waits for a new version, for the end of the guard, or until it is time to look after the session. Returns
 * whether it is.
 */
static bool wait_for_work(struct hand *hand)
{
    struct pollfd wanted[] = {{.fd = hand->wake, .events = POLLIN},
                              {.fd = hand->knob != NULL ? knob_watch_fd(hand->knob) : -1, .events = POLLIN}};
    uint64_t count;
    int ready = mono_poll(wanted, 2, idle_until(hand));

    if (ready > 0 && wanted[0].revents != 0)
        (void)!read(hand->wake, &count, sizeof count);
    return hand->knob != NULL && (ready <= 0 || wanted[1].revents != 0);
}

/* Takes the newest version, if it is not carried out yet. */
static bool take_job(struct hand *hand, struct hand_job *out_job)
{
    struct leases *leases = hand->leases;
    bool is_new;

    pthread_mutex_lock(&leases->group.lock);
    is_new = hand->wanted != hand->done;
    leases_job(leases, hand, out_job);
    if (is_new) {
        hand->busy = true;
        hand->busy_since = mono_now();
    }
    pthread_mutex_unlock(&leases->group.lock);
    hand->newest = out_job->newest;
    return is_new;
}

static void report(struct hand *hand, const struct hand_job *job, int code, const struct fly_error *error)
{
    struct leases *leases = hand->leases;

    pthread_mutex_lock(&leases->group.lock);
    hand->done = job->version;
    hand->done_at = mono_now();
    hand->code = code;
    hand->error = *error;
    end_call_locked(hand); /* whoever waits sees the GPU as it is now */
    pthread_mutex_unlock(&leases->group.lock);
}

static bool is_foreign(const struct hand *hand)
{
    return hand->knob != NULL && knob_report(hand->knob, 0)->state == KNOB_FOREIGN;
}

static void do_job(struct hand *hand, const struct hand_job *job)
{
    struct fly_error error = {.code = 0};
    int code = hand_carry_out(hand, job, &error);

    if (is_foreign(hand))
        leases_fail_gpu(hand->leases, hand->gpu, LEASE_END_FOREIGN, error.text);
    else if (code < 0 && !job->awaited)
        leases_fail_gpu(hand->leases, hand->gpu, LEASE_END_FAILED, error.text);
    report(hand, job, code, &error);
}

/* Ends the leases of a GPU that another program turned, and has a dead guard replaced. */
static void look_after(struct hand *hand)
{
    struct fly_error error;

    if (hand->knob == NULL || knob_check(hand->knob, &error) == 0)
        return;
    if (is_foreign(hand)) {
        leases_fail_gpu(hand->leases, hand->gpu, LEASE_END_FOREIGN, error.text);
        return;
    }
    /* Its guard was killed, and the session has put everything back: another one turns again. */
    leases_tell(hand->leases, "GPU %zu: %s", hand->gpu, error.text);
    hand_let_go(hand);
    pthread_mutex_lock(&hand->leases->group.lock);
    leases_bump(hand->leases, (uint64_t)1 << hand->gpu, false);
    pthread_mutex_unlock(&hand->leases->group.lock);
}

/* What counts of a repair; LEASES_EVENT_COUNT: nothing. */
static const enum leases_event repair_events[REPAIR_END_COUNT] = {
    [REPAIR_RESTORED] = LEASES_RESTORED,       [REPAIR_UNNEEDED] = LEASES_EVENT_COUNT,
    [REPAIR_OWED] = LEASES_RESTORE_FAILED,     [REPAIR_FOREIGN] = LEASES_FOREIGN,
    [REPAIR_IN_USE] = LEASES_EVENT_COUNT,      [REPAIR_ABSENT] = LEASES_EVENT_COUNT,
    [REPAIR_FAILED] = LEASES_RESTORE_FAILED,   [REPAIR_CORRUPT] = LEASES_EVENT_COUNT,
    [REPAIR_DISBELIEVED] = LEASES_EVENT_COUNT,
};

static bool is_left(const struct repair *repair)
{
    return repair->end == REPAIR_FAILED || repair->end == REPAIR_OWED;
}

/* What is left is told once, however often it is tried. */
static void tell_repair(struct hand *hand, const struct repair *repair)
{
    const struct audit_event event = {.what = AUDIT_REPAIR,
                                      .code = is_left(repair) ? FLY_EREAD : 0,
                                      .why = repair->text,
                                      .gpu = repair->uuid};

    if (is_left(repair) && strcmp(hand->left_text, repair->text) == 0)
        return;
    snprintf(hand->left_text, sizeof hand->left_text, "%s", is_left(repair) ? repair->text : "");
    if (repair_events[repair->end] != LEASES_EVENT_COUNT)
        atomic_fetch_add(&hand->events[repair_events[repair->end]], 1);
    leases_tell(hand->leases, "%s", repair->text);
    (void)audit_write(hand->leases->options.audit, &event, NULL);
}

/* Returns whether it need not be tried again. */
static bool repair_now(struct hand *hand)
{
    struct repair repairs[JOURNAL_KIND_COUNT * 2];
    struct fly_error error;
    bool is_done = true, left = false;
    int count;

    if (hand_borrow(hand, &error) < 0)
        return false;
    count = knob_repair_device(&hand->leases->knob, hand->device, repairs, JOURNAL_KIND_COUNT * 2, &error);
    if (count < 0)
        leases_tell(hand->leases, "%s", error.text);
    for (int i = 0; i < count && i < JOURNAL_KIND_COUNT * 2; i++) {
        left = left || is_left(&repairs[i]);
        is_done = is_done && !is_left(&repairs[i]) && repairs[i].end != REPAIR_IN_USE;
        if (repairs[i].end != REPAIR_IN_USE)
            tell_repair(hand, &repairs[i]);
    }
    is_done = is_done && count >= 0;
    hand->stuck = left || (hand->stuck && !is_done);
    hand->repair_wait_s = left
                              ? fmin(fmax(hand->repair_wait_s * repair_longer, repair_again_s), repair_last_s)
                              : repair_again_s;
    return is_done;
}

/* Finds what a session left that was killed together with its guard meanwhile. */
static bool is_any_left(struct hand *hand)
{
    enum repair_due due = knob_repair_due_for(&hand->leases->knob, hand->uuid);

    hand->later_looks = due == REPAIR_DUE_LATER ? hand->later_looks + 1 : 0;
    return due == REPAIR_DUE_NOW || hand->later_looks > patient_looks;
}

/* Puts back what earlier sessions left, if that is due. */
static void repair(struct hand *hand)
{
    if (hand->knob != NULL || mono_elapsed_s(hand->repair_after, mono_now()) < 0)
        return;
    hand->repair_wait_s = fmax(hand->repair_wait_s, repair_again_s);
    if (hand->repaired && !is_any_left(hand)) {
        hand->repair_after = mono_after_s(mono_now(), repair_again_s);
        return;
    }
    if (begin_call(hand)) {
        hand->repaired = repair_now(hand);
        hand_give_back(hand);
        end_call(hand);
    }
    hand->repair_after = mono_after_s(mono_now(), hand->repair_wait_s);
}

/* Returns whether the hand ends, since the daemon does and all is back. */
static bool is_over(struct hand *hand)
{
    struct leases *leases = hand->leases;
    bool over;

    pthread_mutex_lock(&leases->group.lock);
    over = leases->stopping && hand->wanted == hand->done && hand->knob == NULL;
    pthread_mutex_unlock(&leases->group.lock);
    return over;
}

void hand_run(void *state)
{
    struct hand *hand = state;
    struct hand_job job;
    bool is_time = false;

    do {
        repair(hand);
        while (take_job(hand, &job))
            do_job(hand, &job);
        if (is_time && begin_call(hand)) {
            look_after(hand);
            end_call(hand);
        }
        if (is_over(hand))
            return;
        is_time = wait_for_work(hand);
    } while (true);
}
