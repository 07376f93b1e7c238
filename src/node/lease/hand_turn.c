/* SPDX-License-Identifier: Apache-2.0 */
/* A hand's session: opened with the first lease of its GPU, turned as they ask, closed with the last. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "knob/gpu_lock.h"
#include "node/lease/leases_private.h"

/*
 * For how long a holder's changes lean on one look at who else uses the GPU: the look asks the driver, and
 * goes through all processes.
 */
static const double trusted_s = 10;

/* What a session is asked to do; what stays as it is has no value. */
struct step {
    int64_t limit_mw;               /* 0: stays */
    bool turns_clock, turns_memory; /* otherwise they stay */
    struct clock_range clock, memory;
    int64_t level;                        /* KNOB_NO_LEVEL: stays */
    int64_t persistence;                  /* -1: stays */
    const struct workload_set *workloads; /* NULL: stay */
};

int hand_borrow(struct hand *hand, struct fly_error *out_error)
{
    const struct leases_options *options = &hand->leases->options;
    int code;

    if (hand->device != NULL)
        return 0;
    code = options->borrow(options->devices, hand->gpu, &hand->device, out_error);
    if (code < 0) {
        hand->device = NULL;
        return code;
    }
    snprintf(hand->uuid, sizeof hand->uuid, "%s", hand->device->info.uuid);
    return 0;
}

void hand_give_back(struct hand *hand)
{
    const struct leases_options *options = &hand->leases->options;

    if (hand->device == NULL || hand->knob != NULL)
        return;
    hand->device = NULL;
    options->give_back(options->devices, hand->gpu);
}

static bool asks(const struct lease_wish *wish, enum quantity quantity)
{
    return (wish->asked & QUANTITY_BIT(quantity)) != 0;
}

char *leases_value_text(const struct lease_wish *wish, enum quantity quantity, char text[AUDIT_VALUE_MAX])
{
    char list[WORKLOAD_TEXT_MAX];

    text[0] = '\0';
    if (!asks(wish, quantity))
        return text;
    if (quantity == QUANTITY_WORKLOADS)
        snprintf(text, AUDIT_VALUE_MAX, "%.90s", workload_text(&wish->workloads, list));
    else if (quantity == QUANTITY_PERFORMANCE_LEVEL)
        snprintf(text, AUDIT_VALUE_MAX, "%s", device_level_word(wish->level));
    else
        snprintf(text, AUDIT_VALUE_MAX, "%" PRId64, lease_wish_value(wish, quantity));
    return text;
}

/* What stood before the session, as a wish for what the other one asks. */
static struct lease_wish stood_before(const struct hand *hand, quantity_set asked)
{
    const struct knob_report *report = knob_report(hand->knob, 0);

    return (struct lease_wish){.asked = asked,
                               .limit_mw = report->previous_mw,
                               .level = report->level_before,
                               .workloads = report->workloads_before,
                               .persistence = hand->persistence_before};
}

/* Logs what a step changed, one line for each knob. */
static void log_turns(struct hand *hand, const struct lease_wish *from, const struct lease_wish *to, int code,
                      const struct fly_error *error)
{
    struct lease_wish before = stood_before(hand, from->asked | to->asked), after = before;
    char values[2][AUDIT_VALUE_MAX];

    lease_wish_add(&before, from);
    lease_wish_add(&after, to);
    for (int i = 0; i < QUANTITY_NAMED_COUNT; i++) {
        enum quantity quantity = (enum quantity)i;
        const struct audit_event event = {.what = AUDIT_TURN,
                                          .code = code,
                                          .why = code < 0 ? error->text : NULL,
                                          .holder = &hand->newest.ask.holder,
                                          .lease = hand->newest.id,
                                          .gpu = hand->uuid,
                                          .quantity = quantity_facts[i].key,
                                          .from = values[0],
                                          .to = values[1]};

        leases_value_text(&before, quantity, values[0]);
        leases_value_text(&after, quantity, values[1]);
        if (strcmp(values[0], values[1]) == 0)
            continue;
        atomic_fetch_add(&hand->events[code < 0 ? LEASES_TURN_FAILED : LEASES_TURNED], 1);
        (void)audit_write(hand->leases->options.audit, &event, NULL);
    }
}

/* Between which clocks a wish holds one; what it does not ask for is 0, none. */
static struct clock_range range_of(const struct lease_wish *wish, enum quantity floor, enum quantity ceiling)
{
    return (struct clock_range){
        .floor_mhz = asks(wish, floor) ? lease_wish_value(wish, floor) : 0,
        .ceiling_mhz = asks(wish, ceiling) ? lease_wish_value(wish, ceiling) : 0,
    };
}

/* The step from one wish to another: what the second does not ask for goes back. */
static struct step step_between(const struct lease_wish *from, const struct lease_wish *to,
                                const struct lease_wish *before)
{
    struct lease_wish goal = *before;
    struct step step = {.level = KNOB_NO_LEVEL, .persistence = -1};
    quantity_set both = from->asked & to->asked, either = from->asked | to->asked;

    lease_wish_add(&goal, to);
    for (int i = 0; i < QUANTITY_NAMED_COUNT; i++) {
        quantity_set bit = QUANTITY_BIT(i);

        if ((both & bit) != 0 && lease_wish_agrees(from, to, bit))
            either &= ~bit;
    }
    if ((either & QUANTITY_BIT(QUANTITY_POWER_LIMIT)) != 0)
        step.limit_mw = goal.limit_mw;
    step.turns_clock = (either & LEASE_GPU_CLOCK) != 0;
    step.clock = range_of(to, QUANTITY_CLOCK_FLOOR, QUANTITY_CLOCK_CEILING);
    step.turns_memory = (either & LEASE_MEMORY_CLOCK) != 0;
    step.memory = range_of(to, QUANTITY_MEMORY_CLOCK_FLOOR, QUANTITY_MEMORY_CLOCK_CEILING);
    if ((either & QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL)) != 0)
        step.level = goal.level;
    if ((either & QUANTITY_BIT(QUANTITY_PERSISTENCE)) != 0)
        step.persistence = goal.persistence;
    if ((either & QUANTITY_BIT(QUANTITY_WORKLOADS)) != 0)
        step.workloads = asks(to, QUANTITY_WORKLOADS) ? &to->workloads : &before->workloads;
    return step;
}

static int make_step(struct knob *knob, const struct step *step, struct fly_error *out_error)
{
    const struct clock_range *clock = &step->clock, *memory = &step->memory;
    int code = 0;

    if (step->limit_mw != 0 || step->workloads != NULL || step->level != KNOB_NO_LEVEL)
        code = knob_set_several(knob, &step->limit_mw, &step->workloads, &step->level, out_error);
    if (code == 0 && step->turns_clock)
        code = knob_set_clocks(knob, QUANTITY_CLOCK_CEILING, &clock, out_error);
    if (code == 0 && step->turns_memory)
        code = knob_set_clocks(knob, QUANTITY_MEMORY_CLOCK_CEILING, &memory, out_error);
    if (code == 0 && step->persistence >= 0)
        code = knob_set_persistence(knob, &step->persistence, out_error);
    return code;
}

/* Brings the knobs to a wish: all of them, or as they were. */
static int turn(struct hand *hand, const struct lease_wish *wish, struct fly_error *out_error)
{
    const struct lease_wish before = stood_before(hand, LEASE_QUANTITIES), made = hand->made;
    struct step step = step_between(&made, wish, &before);
    int code;

    if (lease_wish_equals(&made, wish))
        return 0;
    code = make_step(hand->knob, &step, out_error);
    log_turns(hand, &made, wish, code, out_error);
    if (code == 0) {
        hand->made = *wish;
        return 0;
    }
    step = step_between(wish, &made, &before);
    make_step(hand->knob, &step, NULL);
    return code;
}

/* Whether one of the leases' processes holds the lock of the GPU itself. */
static bool holder_has_lock(const struct hand *hand, const struct hand_job *job)
{
    for (size_t i = 0; i < job->pid_count; i++) {
        if (gpu_lock_is_held_by(hand->directory, hand->uuid, job->pids[i]))
            return true;
    }
    return false;
}

/* The session's options; with the hand's own directory if it acts for a process. */
static int session_options(struct hand *hand, const struct hand_job *job, struct knob_options *out_options,
                           struct fly_error *out_error)
{
    struct knob_options options = hand->leases->knob;
    int code = runtime_directory_find(options.runtime_directory, hand->directory, out_error);

    if (code < 0)
        return code;
    hand->for_process = holder_has_lock(hand, job);
    if (hand->for_process)
        code = runtime_directory_of_daemon(hand->directory, hand->own_directory, out_error);
    options.runtime_directory = hand->for_process ? hand->own_directory : hand->directory;
    options.allowed = hand->pids;
    options.allowed_count = job->pid_count;
    options.overrules = job->overrules;
    options.trusted_s = trusted_s;
    options.contained = true; /* rights.contained has decided that */
    *out_options = options;
    return code;
}

static int open_session(struct hand *hand, const struct hand_job *job, struct fly_error *out_error)
{
    struct knob_options options;
    struct setting persistence;
    int code = hand_borrow(hand, out_error);

    if (code == 0)
        code = session_options(hand, job, &options, out_error);
    if (code == 0)
        code = knob_open(&options, &hand->device, 1, &hand->knob, out_error);
    if (code < 0)
        return code;
    hand->made = (struct lease_wish){.asked = 0};
    hand->persistence_before = setting_read(hand->device, QUANTITY_PERSISTENCE, &persistence) == READING_OK
                                   ? persistence.number
                                   : -1;
    if (knob_report(hand->knob, 0)->repaired[0] != '\0')
        leases_tell(hand->leases, "%s", knob_report(hand->knob, 0)->repaired);
    return knob_may_turn(hand->knob, 0, out_error);
}

/* Begins the session, or another one if this one's guard has ended or the lock has another holder. */
static int have_session(struct hand *hand, const struct hand_job *job, struct fly_error *out_error)
{
    struct fly_error error;

    bool others = hand->overrules != job->overrules || memcmp(hand->pids, job->pids, sizeof hand->pids) != 0;

    memcpy(hand->pids, job->pids, sizeof hand->pids);
    hand->overrules = job->overrules;
    if (hand->knob != NULL && hand->for_process && !holder_has_lock(hand, job))
        hand_let_go(hand);
    if (hand->knob != NULL) {
        if (others)
            knob_allow(hand->knob, hand->pids, job->pid_count, job->overrules);
        if (knob_check(hand->knob, &error) < 0 && knob_report(hand->knob, 0)->state != KNOB_FOREIGN)
            hand_let_go(hand);
    }
    return hand->knob != NULL ? 0 : open_session(hand, job, out_error);
}

/*
 * Whether all leases have ended since the job was taken: opening a session and looking who else uses the GPU
 * take their time, and what nobody wants any more is not turned even for a moment.
 */
static bool is_moot(const struct hand *hand)
{
    struct leases *leases = hand->leases;
    struct lease_effect effect;

    pthread_mutex_lock(&leases->group.lock);
    lease_table_effect(leases->table, hand->gpu, &effect);
    pthread_mutex_unlock(&leases->group.lock);
    return effect.leases == 0;
}

int hand_carry_out(struct hand *hand, const struct hand_job *job, struct fly_error *out_error)
{
    int code;

    if (job->effect.leases == 0) {
        hand_let_go(hand);
        return 0;
    }
    code = have_session(hand, job, out_error);
    if (code == 0 && !is_moot(hand))
        code = turn(hand, &job->effect.wish, out_error);
    /* Nothing is turned: others may have the GPU. */
    if (code < 0 && hand->made.asked == 0 &&
        (hand->knob == NULL || knob_report(hand->knob, 0)->state != KNOB_FOREIGN))
        hand_let_go(hand);
    return code;
}

/* Logs how a session ended, if it had turned something. */
static void log_back(struct hand *hand, const struct knob_report *report)
{
    bool stuck = report->state == KNOB_STUCK || report->state == KNOB_OWED,
         foreign = report->state == KNOB_FOREIGN;
    const struct audit_event event = {.what = foreign ? AUDIT_FOREIGN : AUDIT_BACK,
                                      .code = stuck ? FLY_EREAD : 0,
                                      .why = stuck || foreign ? report->error.text : NULL,
                                      .lease = hand->newest.id,
                                      .gpu = hand->uuid};

    if (hand->made.asked == 0 && !stuck && !foreign)
        return;
    atomic_fetch_add(&hand->events[stuck     ? LEASES_RESTORE_FAILED
                                   : foreign ? LEASES_FOREIGN
                                             : LEASES_RESTORED],
                     1);
    hand->stuck = hand->stuck || stuck;
    if (stuck || foreign)
        leases_tell(hand->leases, "%s", report->error.text);
    (void)audit_write(hand->leases->options.audit, &event, NULL);
}

void hand_let_go(struct hand *hand)
{
    struct knob *knob = hand->knob;
    struct knob_report report;

    if (knob != NULL) {
        knob_close(knob, &report);
        hand->knob = NULL;
        log_back(hand, &report);
        /* What could not be put back is in the journal: try again from there. */
        if (report.state == KNOB_STUCK || report.state == KNOB_OWED)
            hand->repaired = false;
        /* What the process itself wrote down has nobody who removes it if its guard has died too. */
        if (hand->for_process)
            hand->repaired = false;
    }
    hand->made = (struct lease_wish){.asked = 0};
    hand->for_process = false;
    hand_give_back(hand);
}
