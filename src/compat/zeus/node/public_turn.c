/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that turn knobs: each is a change of a lease that the client never hears of. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "compat/zeus/node/public_private.h"
#include "knob/way/operation.h"

/* What a client is called that does not say "flyball (its program)". */
static const char client[] = "zeusd API", own[] = "flyball";

/* A floor of 0 is none; one that an earlier command has set goes then. */
static int take_clocks(const uint32_t *values, bool memory, struct public_command *command,
                       struct fly_error *out_error)
{
    uint32_t floor_mhz = values[PUBLIC_MIN_CLOCK_MHZ], ceiling_mhz = values[PUBLIC_MAX_CLOCK_MHZ];
    quantity_set floor = QUANTITY_BIT(memory ? QUANTITY_MEMORY_CLOCK_FLOOR : QUANTITY_CLOCK_FLOOR);
    struct lease_wish *wish = &command->request.wish;

    if (ceiling_mhz == 0 || floor_mhz > ceiling_mhz)
        return error_set(out_error, FLY_EUSAGE, "invalid clocks %u to %u MHz: expected a rising range",
                         floor_mhz, ceiling_mhz);
    wish->asked = memory ? LEASE_MEMORY_CLOCK : LEASE_GPU_CLOCK;
    *(memory ? &wish->memory_floor_mhz : &wish->floor_mhz) = floor_mhz;
    *(memory ? &wish->memory_ceiling_mhz : &wish->ceiling_mhz) = ceiling_mhz;
    if (floor_mhz == 0) {
        wish->asked &= ~floor;
        command->dropped = floor;
    }
    return 0;
}

/* Makes the change of one GPU that a request asks for. */
static int make_change(const struct public_exchange *exchange, struct public_command *command,
                       struct fly_error *out_error)
{
    const uint32_t *values = exchange->query.values;
    struct lease_wish *wish = &command->request.wish;

    switch ((enum operation)exchange->route->what) {
    case OPERATION_SET_POWER_LIMIT:
        wish->limit_mw = values[PUBLIC_POWER_LIMIT_MW];
        wish->asked = QUANTITY_BIT(QUANTITY_POWER_LIMIT);
        return 0;
    case OPERATION_SET_PERSISTENCE_MODE:
        wish->persistence = values[PUBLIC_ENABLED];
        wish->asked = QUANTITY_BIT(QUANTITY_PERSISTENCE);
        return 0;
    case OPERATION_SET_GPU_LOCKED_CLOCKS:
    case OPERATION_SET_MEM_LOCKED_CLOCKS:
        return take_clocks(values, exchange->route->what == OPERATION_SET_MEM_LOCKED_CLOCKS, command,
                           out_error);
    case OPERATION_RESET_GPU_LOCKED_CLOCKS:
        command->dropped = LEASE_GPU_CLOCK;
        return 0;
    case OPERATION_RESET_MEM_LOCKED_CLOCKS:
        command->dropped = LEASE_MEMORY_CLOCK;
        return 0;
    default:
        command->dropped = LEASE_GPU_CLOCK | LEASE_MEMORY_CLOCK;
        return 0;
    }
}

/* Finds out for whom the lease is: a process of this machine, or who shows a token. */
static int take_holder(const struct serve_request *request, struct lease_holder *out_holder,
                       struct fly_error *out_error)
{
    const struct serve_peer *peer = &request->peer;

    admit_holder(request, out_holder);
    snprintf(out_holder->program, sizeof out_holder->program, "%s",
             request->agent != NULL && strncmp(request->agent, own, sizeof own - 1) == 0 ? request->agent
                                                                                         : client);
    out_holder->pid = peer->local ? peer->pid : 0;
    if (peer->local && peer->pid == 0 && request->caller_name[0] == '\0')
        return error_set(
            out_error, FLY_EPERM,
            "your process is not visible from here, so that nothing would end its lease; send a token");
    return 0;
}

/* Prepares the change of one GPU; FLY_EPERM if the caller may not. */
static int prepare(const struct public_exchange *exchange, size_t gpu, struct public_command *out_command,
                   struct fly_error *out_error)
{
    const struct node_public_options *options = &exchange->public->options;
    struct public_command command = {.dropped = 0};
    struct rights_decision decision;
    int code;

    if (gpu >= options->leased)
        return error_set(out_error, FLY_EBUSY, "GPU %zu came after the daemon had started; restart it", gpu);
    admit_decide(options->admit, exchange->request, gpu, &decision);
    if (!decision.may_control)
        return error_set(out_error, FLY_EPERM, "%s", decision.why);
    code = take_holder(exchange->request, &command.request.holder, out_error);
    command.request.gpus = UINT64_C(1) << gpu;
    command.request.bounds = decision.bounds;
    if (code == 0)
        code = make_change(exchange, &command, out_error);
    *out_command = command;
    return code;
}

/* Queues the change, or carries it out after those that are queued. */
static int submit(struct node_public *public, size_t gpu, bool block, const struct public_command *command,
                  struct fly_error *out_error)
{
    if (!block)
        return public_later_put(public->later, gpu, command, out_error);
    public_later_wait(public->later, gpu);
    return public_carry_out(public, command, out_error);
}

int public_carry_out(void *self, const struct public_command *command, struct fly_error *out_error)
{
    struct node_public *public = self;
    size_t gpu = 0;
    int code = 0;

    if (command->request.wish.asked != 0 || command->dropped != 0)
        code = leases_turn(public->options.leases, &command->request, command->dropped, out_error);
    while ((command->request.gpus >> gpu & 1) == 0)
        gpu++;
    if (code == 0)
        atomic_store(&public->turned_ns[gpu], mono_now().ns);
    return code;
}

/* Answers a number that is no GPU's, in plain text as that daemon does. */
static void answer_no_gpu(struct serve_answer *answer, uint32_t id)
{
    buffer_clear(&answer->body);
    buffer_printf(&answer->body, "there is no GPU %u", id);
    answer->status = PUBLIC_BAD;
    answer->type = "text/plain; charset=utf-8";
}

void public_turn(struct public_exchange *exchange)
{
    const struct public_query *query = &exchange->query;
    struct node_public *public = exchange->public;
    int places[PUBLIC_IDS_MAX] = {0};

    for (size_t i = 0; i < query->id_count; i++) {
        places[i] = public_find_gpu(public->options.watch, query->ids[i]);
        if (places[i] < 0) {
            answer_no_gpu(exchange->answer, query->ids[i]);
            return;
        }
    }
    for (size_t i = 0; i < query->id_count; i++) {
        struct public_command command = {.dropped = 0};
        struct fly_error error;
        bool block = query->values[PUBLIC_BLOCK] != 0;
        int code = prepare(exchange, (size_t)places[i], &command, &error);

        if (code == 0)
            code = submit(public, (size_t)places[i], block, &command, &error);
        if (code < 0 && !block && code != FLY_EPERM)
            public_tell_failed(public, (size_t)places[i], &error); /* nobody waits for it */
        else if (code < 0)
            public_fail(&exchange->failures, query->ids[i], public_status(code), error.text);
    }
    if (!public_answer_failures(exchange))
        exchange->answer->status = PUBLIC_OK;
}
