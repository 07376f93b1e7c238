/* SPDX-License-Identifier: Apache-2.0 */
/* Leases as callers see them: asked for, waited for, and ended. */
#include "node/lease/leases.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/wait.h"
#include "node/lease/leases_private.h"

enum { ID_BYTES = 16 };

static void make_id(char id[LEASE_ID_MAX])
{
    unsigned char bytes[ID_BYTES];

    while (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, LEASE_ID_MAX - 2 * i, "%02x", bytes[i]);
}

/* Looks whether the hands of these GPUs take work. Under the lock. */
static int check_hands(const struct leases *leases, uint64_t gpus, struct fly_error *out_error)
{
    if (leases->stopping || leases->released)
        return error_set(out_error, FLY_EBUSY, "no knob is leased now: %s; try again later",
                         leases->stopping ? "the daemon ends" : "the operator has released the GPUs");
    for (size_t i = 0; i < leases->hand_count; i++) {
        const struct hand *hand = &leases->hands[i];
        double busy_s = hand->busy ? mono_elapsed_s(hand->busy_since, mono_now()) : 0;

        if ((gpus >> i & 1) != 0 && busy_s > leases->patience_s)
            return error_set(
                out_error, FLY_EBUSY,
                "the driver of GPU %zu has not answered for %.0f s, so nothing is turned there; see "
                "'flyball doctor'",
                i, busy_s);
    }
    return 0;
}

/* Looks how far a hand is: 1: not yet there. */
static int look_at(const struct hand *hand, uint64_t version, struct fly_error *out_error)
{
    if (hand->done < version)
        return 1;
    return hand->code < 0 ? error_set(out_error, hand->code, "%s", hand->error.text) : 0;
}

/*
 * Waits until these GPUs are as the version says. Returns 0, the error of the first that failed, or
 * FLY_EUNSURE. Under the lock.
 */
static int wait_for(struct leases *leases, uint64_t gpus, uint64_t version, double patience_s,
                    struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), patience_s);
    int code = 0;

    for (size_t i = 0; i < leases->hand_count; i++) {
        int one = (gpus >> i & 1) != 0 ? look_at(&leases->hands[i], version, NULL) : 0;

        while (one > 0 && thread_group_wait(&leases->group, until))
            one = look_at(&leases->hands[i], version, NULL);
        one = (gpus >> i & 1) != 0 ? look_at(&leases->hands[i], version, code == 0 ? out_error : NULL) : 0;
        if (one > 0 && code != FLY_EUNSURE)
            code =
                error_set(out_error, FLY_EUNSURE,
                          "the driver of GPU %zu has not answered within %g s; the GPU is put back when it "
                          "does",
                          i, patience_s);
        else if (one < 0 && code == 0)
            code = one;
    }
    return code;
}

/* Watches the holder's process for as long as the lease lasts; takes the holder. Under the lock. */
static void tend(struct leases *leases, const char *id, struct holder *holder)
{
    for (size_t i = 0; i < leases->maximum; i++) {
        if (leases->tended[i].id[0] != '\0')
            continue;
        snprintf(leases->tended[i].id, LEASE_ID_MAX, "%s", id);
        leases->tended[i].holder = *holder;
        return;
    }
    holder_close(holder);
}

/*
 * Takes back a lease whose wish could not be carried out, and waits until that is undone. Gives it in
 * `out_gone`, whose id stays as it is if somebody else has ended it. Under the lock.
 */
static void take_back(struct leases *leases, const struct lease *lease, int code, struct lease *out_gone)
{
    uint64_t version;

    if (lease_table_end(leases->table, lease->id, out_gone, NULL) < 0)
        return;
    leases_forget(leases, out_gone, 1);
    version = leases->version;
    if (code != FLY_EUNSURE)
        wait_for(leases, lease->ask.gpus, version, leases->patience_s, NULL);
}

/* Tells of a lease that a call ended which failed; with no lock held. */
static void tell_gone(struct leases *leases, const struct lease *gone, const struct fly_error *error)
{
    if (gone->id[0] != '\0')
        leases_announce(leases, gone, 1, LEASE_END_FAILED, error->text);
}

/* Grants, and waits until it is carried out; `out_gone` as in take_back. Under the lock. */
static int grant(struct leases *leases, const struct lease_ask *ask, struct holder *holder,
                 struct lease *lease, struct lease *out_gone, struct fly_error *out_error)
{
    char id[LEASE_ID_MAX];
    struct lease granted = {.id = ""};
    int code = check_hands(leases, ask->gpus, out_error);

    make_id(id);
    if (code == 0)
        code = lease_table_grant(leases->table, ask, boot_now(), id, &granted, out_error);
    if (code != 0) {
        holder_close(holder);
        return code;
    }
    if (ask->holder.pid != 0)
        tend(leases, id, holder);
    code = wait_for(leases, ask->gpus, leases_bump(leases, ask->gpus, true), leases->patience_s, out_error);
    if (code == 0) {
        atomic_fetch_add(&leases->granted, 1);
        code = lease_table_find(leases->table, id, lease, out_error);
    } else {
        take_back(leases, &granted, code, out_gone);
    }
    return code;
}

static void log_asked(struct leases *leases, enum audit_what what, const struct lease_holder *holder,
                      const char *id, int code, const struct fly_error *error)
{
    const struct audit_event event = {
        .what = what, .code = code, .why = code < 0 ? error->text : NULL, .holder = holder, .lease = id};

    if (code < 0)
        leases_refuse(leases, code);
    (void)audit_write(leases->options.audit, &event, NULL);
}

static void list_gpus(uint64_t gpus, char text[AUDIT_VALUE_MAX])
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t gpu = 0; gpu < LEASE_GPUS_MAX && length < AUDIT_VALUE_MAX; gpu++)
        if ((gpus >> gpu & 1) != 0)
            length += (size_t)snprintf(text + length, AUDIT_VALUE_MAX - length, "%s%zu",
                                       length > 0 ? "," : "", gpu);
}

/*
 * Where the audit is required, writes what is asked for before anything is done: a line for each knob, or one
 * without. FLY_EBUSY if that is not on record now.
 */
static int log_ahead(struct leases *leases, enum audit_what what, const struct lease_holder *holder,
                     const char *id, uint64_t gpus, const struct lease_wish *wish,
                     struct fly_error *out_error)
{
    static const struct lease_wish no_wish = {.asked = 0};
    char value[AUDIT_VALUE_MAX], places[AUDIT_VALUE_MAX];
    struct audit_event event = {
        .what = what, .asked = true, .holder = holder, .lease = id, .gpu = places, .to = value};
    struct fly_error why;
    int code = 0;

    if (!audit_is_required(leases->options.audit))
        return 0;
    list_gpus(gpus, places);
    wish = wish != NULL ? wish : &no_wish;
    value[0] = '\0';
    if (wish->asked == 0)
        code = audit_write(leases->options.audit, &event, &why);
    for (int i = 0; i < QUANTITY_NAMED_COUNT && code == 0; i++) {
        if (leases_value_text(wish, (enum quantity)i, value)[0] == '\0')
            continue;
        event.quantity = quantity_facts[i].key;
        code = audit_write(leases->options.audit, &event, &why);
    }
    return code == 0
               ? 0
               : error_set(
                     out_error, FLY_EBUSY,
                     "nothing is leased while it cannot be audited, as the operator wants it: the audit "
                     "log cannot be written now; ask again later");
}

/* Makes the ask of a request, and opens the holder's process unless its start time is known. */
static int prepare(const struct lease_request *request, uint64_t known_ticks, struct lease_ask *out_ask,
                   struct holder *out_holder, struct fly_error *out_error)
{
    struct lease_ask ask = {.holder = request->holder,
                            .gpus = request->gpus,
                            .wish = request->wish,
                            .bounds = request->bounds,
                            .overrules = request->overrules};
    int code = 0;

    *out_holder = (struct holder){.pid = request->holder.pid, .start_ticks = known_ticks, .fd = -1};
    if (request->expires_s > 0)
        ask.expiry = boot_after_s(boot_now(), request->expires_s);
    if (ask.holder.pid != 0 && known_ticks == 0)
        code = holder_open(ask.holder.pid, ask.holder.uid, request->born_before_ticks, out_holder, out_error);
    if (code == 0 && ask.holder.start_ticks != 0 && ask.holder.start_ticks != out_holder->start_ticks) {
        holder_close(out_holder);
        code =
            error_set(out_error, FLY_ENOTFOUND, "the process %lld has ended; ask again from one that lives",
                      (long long)ask.holder.pid);
    }
    if (code == 0)
        ask.holder.start_ticks = out_holder->start_ticks;
    *out_ask = ask;
    return code;
}

int leases_grant(struct leases *leases, const struct lease_request *request, struct lease *out_lease,
                 struct fly_error *out_error)
{
    struct fly_error local = {.code = 0};
    struct fly_error *error = out_error != NULL ? out_error : &local;
    struct lease_ask ask;
    struct holder holder;
    struct lease lease = {.id = ""}, gone = {.id = ""};
    int code;

    leases_tick(leases);
    leases_end_back(leases, request->gpus, NULL, 0);
    code = prepare(request, 0, &ask, &holder, error);
    if (code == 0) {
        code = log_ahead(leases, AUDIT_GRANT, &ask.holder, NULL, ask.gpus, &ask.wish, error);
        if (code < 0)
            holder_close(&holder);
    }
    if (code == 0) {
        pthread_mutex_lock(&leases->group.lock);
        code = grant(leases, &ask, &holder, &lease, &gone, error);
        pthread_mutex_unlock(&leases->group.lock);
    }
    log_asked(leases, AUDIT_GRANT, &ask.holder, code == 0 ? lease.id : gone.id, code, error);
    tell_gone(leases, &gone, error);
    if (code == 0)
        *out_lease = lease;
    return code;
}

/* Whether a lease is this caller's. NULL is the operator. */
static bool is_of(const struct lease *lease, const struct lease_holder *by)
{
    return by == NULL || lease_holder_may(&lease->ask.holder, by);
}

static int find_own(const struct leases *leases, const char *id, const struct lease_holder *by,
                    struct lease *out_lease, struct fly_error *out_error)
{
    int code = lease_table_find(leases->table, id, out_lease, out_error);

    if (code == 0 && !is_of(out_lease, by))
        code = error_set(out_error, FLY_ENOTFOUND, "there is no lease '%.40s' of yours", id);
    return code;
}

/* Changes the wish, and waits; after a failure it is as before, or gone. Under the lock. */
static int change(struct leases *leases, const struct lease *before, const struct lease_wish *wish,
                  struct lease *out_lease, struct lease *out_gone, struct fly_error *out_error)
{
    uint64_t gpus = before->ask.gpus;
    struct lease lease;
    int code = check_hands(leases, gpus, out_error);

    if (code == 0)
        code = lease_table_change(leases->table, before->id, wish, boot_now(), &lease, out_error);
    if (code < 0)
        return code;
    code = wait_for(leases, gpus, leases_bump(leases, gpus, true), leases->patience_s, out_error);
    if (code == 0)
        return lease_table_find(leases->table, before->id, out_lease, out_error);
    if (code == FLY_EUNSURE ||
        lease_table_change(leases->table, before->id, &before->ask.wish, boot_now(), &lease, NULL) < 0)
        take_back(leases, before, code, out_gone);
    else
        wait_for(leases, gpus, leases_bump(leases, gpus, false), leases->patience_s, NULL);
    return code;
}

int leases_change(struct leases *leases, const char *id, const struct lease_holder *by,
                  const struct lease_wish *wish, struct lease *out_lease, struct fly_error *out_error)
{
    struct fly_error local = {.code = 0};
    struct fly_error *error = out_error != NULL ? out_error : &local;
    struct lease before, gone = {.id = ""};
    int code = log_ahead(leases, AUDIT_CHANGE, by, id, 0, wish, error);

    pthread_mutex_lock(&leases->group.lock);
    if (code == 0)
        code = find_own(leases, id, by, &before, error);
    if (code == 0)
        code = change(leases, &before, wish, out_lease, &gone, error);
    pthread_mutex_unlock(&leases->group.lock);
    log_asked(leases, AUDIT_CHANGE, by, id, code, error);
    tell_gone(leases, &gone, error);
    return code;
}

int leases_renew(struct leases *leases, const char *id, const struct lease_holder *by, double expires_s,
                 struct lease *out_lease, struct fly_error *out_error)
{
    struct boot_time now = boot_now(), expiry = {0};
    struct fly_error local = {.code = 0};
    struct fly_error *error = out_error != NULL ? out_error : &local;
    struct lease lease;
    int code = log_ahead(leases, AUDIT_RENEW, by, id, 0, NULL, error);

    if (expires_s > 0)
        expiry = boot_after_s(now, expires_s);
    pthread_mutex_lock(&leases->group.lock);
    if (code == 0)
        code = find_own(leases, id, by, &lease, error);
    if (code == 0)
        code = lease_table_renew(leases->table, id, expiry, now, out_lease, error);
    pthread_mutex_unlock(&leases->group.lock);
    log_asked(leases, AUDIT_RENEW, by, id, code, error);
    return code;
}

int leases_end(struct leases *leases, const char *id, const struct lease_holder *by,
               struct fly_error *out_error)
{
    struct lease lease;
    int code;

    pthread_mutex_lock(&leases->group.lock);
    code = find_own(leases, id, by, &lease, out_error);
    if (code == 0)
        code = lease_table_end(leases->table, id, &lease, out_error);
    if (code < 0) {
        pthread_mutex_unlock(&leases->group.lock);
        return code;
    }
    leases_forget(leases, &lease, 1);
    code = wait_for(leases, lease.ask.gpus, leases->version, leases->patience_s, out_error);
    pthread_mutex_unlock(&leases->group.lock);
    leases_announce(leases, &lease, 1, LEASE_END_GIVEN_BACK, NULL);
    return code == FLY_EUNSURE ? code : 0;
}

/* ---- for clients that know no leases ---- */

struct plain_search {
    const struct lease_holder *holder;
    struct lease own;     /* of this client */
    struct lease another; /* of another process of the same user */
};

static void search(void *state, const struct lease *lease)
{
    struct plain_search *found = state;
    const struct lease_holder *holder = &lease->ask.holder;

    if (lease->ask.plain && lease_holder_is(holder, found->holder))
        found->own = *lease;
    else if (holder->uid != LEASE_NOBODY && lease_holder_may(holder, found->holder))
        found->another = *lease;
}

/* Whether all that is asked for stands because of that lease. */
static bool stands_already(const struct lease *lease, const struct lease_wish *wish)
{
    return lease->id[0] != '\0' && (wish->asked & ~lease->ask.wish.asked) == 0 &&
           lease_wish_agrees(&lease->ask.wish, wish, LEASE_QUANTITIES);
}

/* Changes the client's lease on one GPU. Under the lock. */
static int turn_own(struct leases *leases, const struct lease *own, const struct lease_wish *added,
                    quantity_set dropped, struct lease *out_gone, struct fly_error *out_error)
{
    struct lease_wish wish = own->ask.wish;
    struct lease lease;

    wish.asked &= ~dropped;
    lease_wish_add(&wish, added);
    if (wish.asked != 0)
        return change(leases, own, &wish, &lease, out_gone, out_error);
    if (lease_table_end(leases->table, own->id, out_gone, NULL) < 0)
        return 0;
    leases_forget(leases, out_gone, 1);
    return wait_for(leases, own->ask.gpus, leases->version, leases->patience_s, out_error);
}

/*
 * Returns the start time of a process that holds a lease and lives, 0 for another: as long as its pidfd says
 * so, no other has its number, and nothing need be looked up in /proc.
 */
static uint64_t known_start_ticks(struct leases *leases, pid_t pid)
{
    uint64_t start_ticks = 0;

    pthread_mutex_lock(&leases->group.lock);
    for (size_t i = 0; pid != 0 && i < leases->maximum && start_ticks == 0; i++) {
        const struct tended *tended = &leases->tended[i];

        if (tended->id[0] != '\0' && tended->holder.pid == pid && tended->holder.fd >= 0 &&
            holder_lives(&tended->holder))
            start_ticks = tended->holder.start_ticks;
    }
    pthread_mutex_unlock(&leases->group.lock);
    return start_ticks;
}

/* Turns one GPU; takes the holder. `out_lease` has the lease that it is about. Under the lock. */
static int turn_gpu(struct leases *leases, size_t gpu, const struct lease_ask *ask, quantity_set dropped,
                    struct holder *holder, struct lease *out_lease, struct lease *out_gone,
                    enum audit_what *out_what, struct fly_error *out_error)
{
    struct plain_search found = {.holder = &ask->holder};
    int code = 0;

    lease_table_visit(leases->table, gpu, search, &found);
    if (found.own.id[0] == '\0' && ask->wish.asked != 0 && !stands_already(&found.another, &ask->wish)) {
        struct lease_ask one = *ask;

        one.gpus = (uint64_t)1 << gpu;
        one.plain = true;
        if (ask->holder.pid != 0 && holder->fd < 0)
            code = holder_open(ask->holder.pid, ask->holder.uid, 0, holder, out_error);
        if (code == 0)
            code = grant(leases, &one, holder, out_lease, out_gone, out_error);
        *out_what = AUDIT_GRANT;
    } else {
        holder_close(holder);
        *out_lease = found.own.id[0] != '\0' ? found.own : found.another;
        *out_what = AUDIT_CHANGE;
        if (found.own.id[0] != '\0')
            code = turn_own(leases, &found.own, &ask->wish, dropped, out_gone, out_error);
    }
    return code;
}

int leases_turn(struct leases *leases, const struct lease_request *request, quantity_set dropped,
                struct fly_error *out_error)
{
    struct fly_error local = {.code = 0};
    struct fly_error *error = out_error != NULL ? out_error : &local;
    int code = 0;

    leases_tick(leases);
    for (size_t gpu = 0; gpu < LEASE_GPUS_MAX && code == 0; gpu++) {
        enum audit_what what = AUDIT_CHANGE;
        struct lease lease = {.id = ""}, gone = {.id = ""};
        struct lease_ask ask;
        struct holder holder;

        if ((request->gpus >> gpu & 1) == 0)
            continue;
        code = prepare(request, known_start_ticks(leases, request->holder.pid), &ask, &holder, error);
        if (code < 0) {
            log_asked(leases, AUDIT_CHANGE, &request->holder, NULL, code, error);
            continue;
        }
        ask.holder.connection = 0;
        code = log_ahead(leases, AUDIT_CHANGE, &ask.holder, NULL, (uint64_t)1 << gpu, &ask.wish, error);
        if (code < 0) {
            holder_close(&holder);
            log_asked(leases, AUDIT_CHANGE, &request->holder, NULL, code, error);
            continue;
        }
        leases_end_back(leases, (uint64_t)1 << gpu, &ask.holder, 0);
        pthread_mutex_lock(&leases->group.lock);
        code = turn_gpu(leases, gpu, &ask, dropped, &holder, &lease, &gone, &what, error);
        pthread_mutex_unlock(&leases->group.lock);
        log_asked(leases, what, &request->holder, gone.id[0] != '\0' ? gone.id : lease.id, code, error);
        if (gone.id[0] != '\0' && code == 0)
            leases_announce(leases, &gone, 1, LEASE_END_GIVEN_BACK, NULL);
        else
            tell_gone(leases, &gone, error);
    }
    return code;
}
