/* SPDX-License-Identifier: Apache-2.0 */
/* The life of leases: hands begin and end, leases end by what happens to their holders. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "node/lease/leases_private.h"

enum { LEASES_MAXIMUM = 256 };
static const double default_patience_s = 5, linger_s = 1;
static const char daemon_program[] = "flyballd", no_way[] = "";

/* The daemon turns by the driver alone: it would ask itself. */
static struct knob_options session_options(const struct knob_options *given)
{
    struct knob_options options = *given;

    options.program = daemon_program;
    options.kept = false;
    options.allowed = NULL;
    options.allowed_count = 0;
    options.daemon = no_way;
    return options;
}

/* Under the lock. */
static int start_hand(struct leases *leases, size_t gpu, struct fly_error *out_error)
{
    struct hand *hand = &leases->hands[gpu];

    *hand = (struct hand){.leases = leases, .gpu = gpu, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (hand->wake < 0 || !thread_group_start(&leases->group, hand_run, hand))
        return error_set(out_error, FLY_ENOMEM,
                         "the thread for GPU %zu cannot be started; free some memory or descriptors", gpu);
    return 0;
}

/* Makes what the hands share. */
static int prepare(struct leases *leases, const struct leases_options *options, struct fly_error *out_error)
{
    struct lease_table_options table = options->table;

    leases->options = *options;
    leases->knob = session_options(options->knob);
    leases->patience_s = options->patience_s > 0 ? options->patience_s : default_patience_s;
    leases->maximum = table.maximum != 0 ? table.maximum : LEASES_MAXIMUM;
    table.gpu_count = options->gpu_count;
    table.maximum = leases->maximum;
    leases->tended = calloc(leases->maximum, sizeof *leases->tended);
    if (leases->tended == NULL)
        return error_no_memory(out_error);
    return lease_table_new(&table, &leases->table, out_error);
}

int leases_open(const struct leases_options *options, struct leases **out_leases, struct fly_error *out_error)
{
    struct leases *leases;
    int code;

    if (options->gpu_count > LEASE_GPUS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%zu GPUs are more than the %d that can be leased",
                         options->gpu_count, LEASE_GPUS_MAX);
    leases = calloc(1, sizeof *leases);
    if (leases == NULL)
        return error_no_memory(out_error);
    thread_group_init(&leases->group, leases_free, leases);
    code = prepare(leases, options, out_error);
    pthread_mutex_lock(&leases->group.lock);
    if (code < 0) {
        thread_group_leave(&leases->group);
        return code;
    }
    for (size_t i = 0; i < options->gpu_count && code == 0; i++) {
        leases->hand_count++;
        code = start_hand(leases, i, out_error);
    }
    pthread_mutex_unlock(&leases->group.lock);
    if (code < 0)
        leases_close(leases, leases->patience_s);
    else
        *out_leases = leases;
    return code;
}

/* Begins the hand of a GPU that has come. Returns whether it could. */
static bool begin_hand(struct leases *leases, size_t gpu)
{
    struct lease_bounds bounds = {0};
    struct fly_error error = {.code = 0};
    bool was_short;

    leases->options.bounds(leases->options.rules, gpu, &bounds);
    pthread_mutex_lock(&leases->group.lock);
    was_short = leases->is_short;
    /* Another caller may have been faster. */
    if (leases->hand_count == gpu && !leases->stopping) {
        lease_table_bound(leases->table, gpu, &bounds);
        if (start_hand(leases, gpu, &error) == 0) {
            lease_table_extend(leases->table, gpu + 1);
            leases->hand_count++;
        } else if (leases->hands[gpu].wake >= 0) {
            close(leases->hands[gpu].wake);
        }
    }
    leases->is_short = error.code < 0;
    pthread_mutex_unlock(&leases->group.lock);
    if (error.code < 0 && !was_short)
        leases_tell(leases, "%s", error.text);
    return error.code == 0;
}

void leases_grow(struct leases *leases)
{
    size_t count, hands;

    if (leases->options.count == NULL)
        return;
    count = leases->options.count(leases->options.devices);
    pthread_mutex_lock(&leases->group.lock);
    hands = leases->stopping ? count : leases->hand_count;
    pthread_mutex_unlock(&leases->group.lock);
    while (hands < count && hands < LEASE_GPUS_MAX && begin_hand(leases, hands))
        hands++;
}

static bool always(const struct lease *lease, const void *state)
{
    (void)lease;
    (void)state;
    return true;
}

int leases_close(struct leases *leases, double most_s)
{
    bool all;

    if (leases == NULL)
        return 0;
    pthread_mutex_lock(&leases->group.lock);
    leases->stopping = true;
    pthread_mutex_unlock(&leases->group.lock);
    leases_end_if(leases, always, NULL, LEASE_END_CLOSED, NULL);
    pthread_mutex_lock(&leases->group.lock);
    leases_bump(leases, UINT64_MAX, false);
    pthread_mutex_unlock(&leases->group.lock);
    all = thread_group_end(&leases->group, most_s);
    thread_group_leave(&leases->group);
    return all ? 0 : FLY_EUNSURE;
}

static bool has_connection(const struct lease *lease, const void *connection)
{
    return lease->ask.holder.connection == *(const uint64_t *)connection;
}

void leases_connection_closed(struct leases *leases, uint64_t connection)
{
    if (connection != 0)
        leases_end_if(leases, has_connection, &connection, LEASE_END_CONNECTION, NULL);
}

static bool is_late(const struct lease *lease, const void *now)
{
    return lease->ask.expiry.ns != 0 && lease->ask.expiry.ns <= ((const struct boot_time *)now)->ns;
}

static bool is_dead(const struct lease *lease, const void *state)
{
    const struct leases *leases = state;

    for (size_t i = 0; i < leases->maximum; i++) {
        if (strcmp(leases->tended[i].id, lease->id) == 0)
            return !holder_lives(&leases->tended[i].holder);
    }
    return false;
}

void leases_tick(struct leases *leases)
{
    struct boot_time now = boot_now();

    leases_grow(leases);
    leases_end_if(leases, is_dead, leases, LEASE_END_PROCESS, NULL);
    leases_end_if(leases, is_late, &now, LEASE_END_LATE, NULL);
    leases_end_back(leases, UINT64_MAX, NULL, linger_s);
}

size_t leases_list(struct leases *leases, struct lease *out_leases, size_t maximum)
{
    size_t count;

    pthread_mutex_lock(&leases->group.lock);
    count = lease_table_list(leases->table, out_leases, maximum);
    pthread_mutex_unlock(&leases->group.lock);
    return count;
}

int leases_find(struct leases *leases, const char *id, struct lease *out_lease, struct fly_error *out_error)
{
    int code;

    pthread_mutex_lock(&leases->group.lock);
    code = lease_table_find(leases->table, id, out_lease, out_error);
    pthread_mutex_unlock(&leases->group.lock);
    return code;
}

void leases_look(struct leases *leases, size_t gpu, struct leases_gpu *out_gpu)
{
    struct hand *hand = &leases->hands[gpu];
    struct lease_effect effect;

    *out_gpu = (struct leases_gpu){.leases = 0};
    if (gpu >= LEASE_GPUS_MAX)
        return;
    pthread_mutex_lock(&leases->group.lock);
    *out_gpu = hand->seen;
    lease_table_effect(leases->table, gpu, &effect);
    out_gpu->leases = effect.leases;
    out_gpu->wish = effect.wish;
    out_gpu->busy_s = hand->busy ? mono_elapsed_s(hand->busy_since, mono_now()) : 0;
    for (size_t i = 0; i < LEASES_EVENT_COUNT; i++)
        out_gpu->events[i] = atomic_load(&hand->events[i]);
    pthread_mutex_unlock(&leases->group.lock);
}

void leases_bound(struct leases *leases, size_t gpu, const struct lease_bounds *bounds)
{
    pthread_mutex_lock(&leases->group.lock);
    if (gpu < leases->hand_count) {
        lease_table_bound(leases->table, gpu, bounds);
        leases_bump(leases, (uint64_t)1 << gpu, false);
    }
    pthread_mutex_unlock(&leases->group.lock);
}

void leases_rule(struct leases *leases, enum lease_rule rule)
{
    pthread_mutex_lock(&leases->group.lock);
    lease_table_rule(leases->table, rule);
    pthread_mutex_unlock(&leases->group.lock);
}

/* Waits until each hand is done; returns whether all are. Under the lock. */
static bool wait_for_hands(struct leases *leases, struct mono_time until)
{
    for (size_t i = 0; i < leases->hand_count; i++) {
        const struct hand *hand = &leases->hands[i];

        while (hand->done != hand->wanted || hand->busy) {
            if (!thread_group_wait(&leases->group, until))
                return false;
        }
    }
    return true;
}

int leases_release(struct leases *leases, double most_s, struct fly_error *out_error)
{
    bool all;

    pthread_mutex_lock(&leases->group.lock);
    leases->released = true;
    pthread_mutex_unlock(&leases->group.lock);
    leases_end_if(leases, always, NULL, LEASE_END_RELEASED, NULL);
    pthread_mutex_lock(&leases->group.lock);
    all = wait_for_hands(leases, mono_after_s(mono_now(), most_s));
    pthread_mutex_unlock(&leases->group.lock);
    if (all)
        return 0;
    return error_set(
        out_error, FLY_EUNSURE,
        "a driver has not answered within %g s, so not all GPUs are put back; look at the log, and "
        "try again",
        most_s);
}

void leases_resume(struct leases *leases)
{
    pthread_mutex_lock(&leases->group.lock);
    leases->released = false;
    pthread_mutex_unlock(&leases->group.lock);
}
