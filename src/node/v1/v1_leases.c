/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of leases: who asks is found from the peer and the token, never from the body. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "node/lease/holder.h"
#include "node/v1/v1_private.h"

enum { LISTED_MAX = 4096 };

/* What a lease's texts and lists lie in. */
struct told {
    uint32_t gpus[LEASE_GPUS_MAX];
    struct v1_set set[LEASE_GPUS_MAX];
    char profiles[WORKLOAD_TEXT_MAX];
    char holder[LEASE_HOLDER_TEXT_MAX];
};

/* Returns whether the caller may change a lease. */
static bool is_own(const struct serve_request *request, const struct lease *lease)
{
    struct lease_holder by;

    admit_holder(request, &by);
    return lease_holder_may(&lease->ask.holder, &by);
}

static double known(int64_t value, double factor)
{
    return value > 0 ? (double)value * factor : NAN;
}

/* A driver may round a limit, another lease may ask for less, and the board may enforce less still. */
static struct v1_set set_of(struct leases *leases, size_t gpu, uint32_t index)
{
    struct leases_gpu now;

    leases_look(leases, gpu, &now);
    return (struct v1_set){
        .gpu = index,
        .power_limit_w = known(now.report.set_mw != 0 ? now.report.set_mw : now.report.previous_mw, 1e-3),
        .power_limit_enforced_w = known(now.report.enforced_mw, 1e-3),
        .clock_ceiling_mhz = known(now.report.ceiling_mhz, 1),
        .memory_clock_ceiling_mhz = known(now.report.memory_ceiling_mhz, 1),
    };
}

static void tell_of(struct v1_exchange *exchange, const struct lease *lease, struct told *in,
                    struct v1_lease *out_lease)
{
    struct watch *watch = exchange->v1->options.watch;
    size_t count = 0;

    for (size_t gpu = 0; gpu < LEASE_GPUS_MAX; gpu++) {
        struct device_info info;

        if ((lease->ask.gpus >> gpu & 1) == 0)
            continue;
        watch_gpu_info(watch, gpu, &info);
        in->set[count] = set_of(exchange->v1->options.leases, gpu, info.index);
        in->gpus[count++] = info.index;
    }
    *out_lease = (struct v1_lease){
        .id = lease->id,
        .gpu_count = count,
        .gpus = in->gpus,
        .set_count = count,
        .set = in->set,
        .pid = (uint64_t)lease->ask.holder.pid,
        .holder = lease_holder_text(&lease->ask.holder, in->holder),
        .own = is_own(exchange->request, lease),
        .connection = lease->ask.holder.connection != 0,
        .expires_s =
            lease->ask.expiry.ns != 0 ? fmax(0, (double)(lease->ask.expiry.ns - boot_now().ns) * 1e-9) : NAN,
    };
    v1_wish_of(&lease->ask.wish, in->profiles, &out_lease->wish);
}

static int tell_lease(struct v1_exchange *exchange, const struct lease *lease)
{
    struct v1_lease shown;
    struct told told;

    tell_of(exchange, lease, &told, &shown);
    return v1_tell(exchange, &shape_v1_lease, &shown);
}

/* Returns whether the caller may read one of the lease's GPUs. An id lets nobody in, but says who has what.
 */
static bool may_read(struct v1_exchange *exchange, uint64_t gpus)
{
    size_t count = watch_gpu_count(exchange->v1->options.watch);
    struct rights_decision decision;

    for (size_t gpu = 0; gpu < count && gpu < LEASE_GPUS_MAX; gpu++) {
        if ((gpus >> gpu & 1) == 0)
            continue;
        admit_decide(exchange->v1->options.admit, exchange->request, gpu, &decision);
        if (decision.may_read)
            return true;
    }
    return false;
}

static int tell_leases(struct v1_exchange *exchange, const struct lease *leases, size_t count)
{
    struct told *told = calloc(count + 1, sizeof *told);
    struct v1_lease *shown = calloc(count + 1, sizeof *shown);
    struct v1_leases list = {.leases = shown};

    if (told == NULL || shown == NULL) {
        free(told);
        free(shown);
        return error_no_memory(&exchange->error);
    }
    for (size_t i = 0; i < count; i++)
        if (may_read(exchange, leases[i].ask.gpus)) {
            tell_of(exchange, &leases[i], &told[list.count], &shown[list.count]);
            list.count++;
        }
    v1_tell(exchange, &shape_v1_leases, &list);
    free(told);
    free(shown);
    return 0;
}

int v1_list_leases(struct v1_exchange *exchange)
{
    struct lease *leases = calloc(LISTED_MAX, sizeof *leases);
    size_t count;
    int code;

    if (leases == NULL)
        return error_no_memory(&exchange->error);
    count = leases_list(exchange->v1->options.leases, leases, LISTED_MAX);
    code = tell_leases(exchange, leases, count < LISTED_MAX ? count : LISTED_MAX);
    free(leases);
    return code;
}

/* Narrows the bounds of a lease by those of one of its GPUs. */
static void narrow(struct lease_bounds *bounds, const struct lease_bounds *by)
{
    if (by->floor_mw > bounds->floor_mw)
        bounds->floor_mw = by->floor_mw;
    if (by->ceiling_mw > 0 && (bounds->ceiling_mw == 0 || by->ceiling_mw < bounds->ceiling_mw))
        bounds->ceiling_mw = by->ceiling_mw;
}

/* Finds the GPUs of a request, all of which the caller must be allowed to control. */
static int take_gpus(struct v1_exchange *exchange, const struct v1_lease_request *asked,
                     struct lease_request *request)
{
    bool overrules = asked->overrules;

    if (asked->gpu_count == 0)
        return error_set(&exchange->error, FLY_EUSAGE, "member 'gpus': name one GPU or more");
    for (size_t i = 0; i < asked->gpu_count; i++) {
        struct rights_decision decision;
        size_t gpu;
        int code = v1_find_gpu(exchange, asked->gpus[i], &gpu);

        if (code < 0)
            return code;
        admit_decide(exchange->v1->options.admit, exchange->request, gpu, &decision);
        if (!decision.may_control)
            return error_set(&exchange->error, FLY_EPERM, "%s", decision.why);
        if (overrules && !decision.may_overrule)
            return error_set(&exchange->error, FLY_EPERM,
                             "you may not turn GPU %zu while others compute on it; a rule with 'overrule' "
                             "lets you",
                             gpu);
        request->gpus |= UINT64_C(1) << gpu;
        narrow(&request->bounds, &decision.bounds);
    }
    request->overrules = overrules;
    return 0;
}

/* Decides with what the lease ends. Over TCP only time or a call ends it. */
static int take_end(struct v1_exchange *exchange, const struct v1_lease_request *asked,
                    struct lease_request *request)
{
    const struct serve_peer *peer = &exchange->request->peer;
    const char *bind = asked->bind != NULL             ? asked->bind
                       : peer->local && peer->pid != 0 ? "process"
                                                       : "connection";

    if (strcmp(bind, "process") != 0 && strcmp(bind, "connection") != 0)
        return error_set(&exchange->error, FLY_EUSAGE, "member 'bind': expected process or connection");
    request->expires_s = isnan(asked->expires_s) ? 0 : asked->expires_s;
    if (!peer->local && request->expires_s == 0)
        return error_set(
            &exchange->error, FLY_EUSAGE,
            "member 'expires_s': over TCP a lease must say after how many seconds it ends unless "
            "it is renewed");
    if (!peer->local && asked->bind == NULL)
        return 0;
    if (strcmp(bind, "process") == 0 && (!peer->local || peer->pid == 0))
        return error_set(&exchange->error, FLY_EUSAGE,
                         "member 'bind': your process is not visible from here; use connection");
    if (strcmp(bind, "connection") == 0)
        request->holder.connection = peer->connection;
    /* A connection that forked workers still have must not keep the lease of a process that has ended. */
    request->holder.pid = peer->local ? peer->pid : 0;
    return 0;
}

int v1_grant_lease(struct v1_exchange *exchange)
{
    struct v1_lease_request asked;
    struct lease_request request = {.gpus = 0};
    struct lease lease = {.id = ""};
    int code = v1_read_body(exchange, &shape_v1_lease_request, &asked);

    if (code == 0)
        code = v1_wish_take(&asked.wish, &request.wish, &exchange->error);
    admit_holder(exchange->request, &request.holder);
    if (code == 0)
        code = take_gpus(exchange, &asked, &request);
    if (code == 0)
        code = take_end(exchange, &asked, &request);
    if (code < 0) {
        leases_refuse(exchange->v1->options.leases, code);
        return code;
    }
    if (asked.program != NULL)
        snprintf(request.holder.program, sizeof request.holder.program, "%s", asked.program);
    code = leases_grant(exchange->v1->options.leases, &request, &lease, &exchange->error);
    if (code < 0)
        return code;
    if (request.holder.connection != 0)
        exchange->answer->keeping = SERVE_KEEP_OPEN;
    return tell_lease(exchange, &lease);
}

/* Returns 0 if the caller may still control all GPUs of the lease. */
static int may_control(struct v1_exchange *exchange)
{
    struct rights_decision decision;
    struct lease lease = {.id = ""};
    int code = leases_find(exchange->v1->options.leases, exchange->id, &lease, &exchange->error);

    for (size_t gpu = 0; gpu < LEASE_GPUS_MAX && code == 0; gpu++) {
        if ((lease.ask.gpus >> gpu & 1) == 0)
            continue;
        admit_decide(exchange->v1->options.admit, exchange->request, gpu, &decision);
        if (!decision.may_control)
            code = error_set(&exchange->error, FLY_EPERM, "%s", decision.why);
    }
    return code;
}

int v1_change_lease(struct v1_exchange *exchange)
{
    struct v1_lease_request asked;
    struct lease_holder by;
    struct lease_wish wish;
    struct lease lease = {.id = ""};
    int code = v1_read_body(exchange, &shape_v1_change, &asked);

    if (code == 0)
        code = v1_wish_take(&asked.wish, &wish, &exchange->error);
    if (code == 0)
        code = may_control(exchange);
    if (code < 0) {
        leases_refuse(exchange->v1->options.leases, code);
        return code;
    }
    admit_holder(exchange->request, &by);
    if (code == 0)
        code =
            leases_change(exchange->v1->options.leases, exchange->id, &by, &wish, &lease, &exchange->error);
    return code < 0 ? code : tell_lease(exchange, &lease);
}

int v1_renew_lease(struct v1_exchange *exchange)
{
    struct v1_renewal asked;
    struct lease_holder by;
    struct lease lease = {.id = ""};
    int code = v1_read_body(exchange, &shape_v1_renewal, &asked);

    if (code == 0)
        code = may_control(exchange);
    admit_holder(exchange->request, &by);
    if (code == 0)
        code = leases_renew(exchange->v1->options.leases, exchange->id, &by, asked.expires_s, &lease,
                            &exchange->error);
    return code < 0 ? code : tell_lease(exchange, &lease);
}

int v1_end_lease(struct v1_exchange *exchange)
{
    struct lease_holder by;
    int code;

    admit_holder(exchange->request, &by);
    code = leases_end(exchange->v1->options.leases, exchange->id, &by, &exchange->error);
    return code < 0 ? code : v1_tell(exchange, &shape_v1_done, &(struct v1_done){true});
}
