/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/account.h"

#include <math.h>
#include <string.h>

const char *const emulator_work_words[EMULATOR_WORK_KINDS + 1] = {
    [EMULATOR_WORK_COMPUTE] = "compute",
    [EMULATOR_WORK_GRAPHICS] = "graphics",
    [EMULATOR_WORK_MPS] = "mps",
    [EMULATOR_WORK_MPS_SERVER] = "mps-server",
};

enum { PERCENT = 100 };

void accounts_init(struct emulator_accounts *accounts, int64_t now_ns)
{
    *accounts = (struct emulator_accounts){.used_up_to_ns = now_ns};
}

/* A free place, or that of the account that ended first; what that drew is remembered in one sum. */
static int place_for(struct emulator_accounts *accounts)
{
    int oldest = -1;

    for (int i = 0; i < EMULATOR_ACCOUNTS; i++) {
        const struct emulator_account *account = &accounts->accounts[i];

        if (account->owner.pid == 0)
            return i;
        if (account->ended_ns > 0 && (oldest < 0 || account->ended_ns < accounts->accounts[oldest].ended_ns))
            oldest = i;
    }
    /* Each that lives has a slot, of which there are fewer; unless a process died while it opened one. */
    if (oldest < 0)
        oldest = 0;
    accounts->forgotten_j += accounts->accounts[oldest].dynamic_j;
    accounts->forgotten_idle_j += accounts->accounts[oldest].idle_j;
    return oldest;
}

int accounts_open(struct emulator_accounts *accounts, const struct emulator_owner *owner,
                  const struct emulator_role *role, int64_t now_ns)
{
    int place = place_for(accounts);

    accounts->accounts[place] = (struct emulator_account){.owner = *owner, .role = *role, .began_ns = now_ns};
    return place;
}

void accounts_close(struct emulator_accounts *accounts, int account, int64_t now_ns)
{
    accounts->accounts[account].ended_ns = now_ns;
}

static double sum_above_w(const struct emulator_part *parts, uint32_t count)
{
    double sum_w = 0.0;

    for (uint32_t i = 0; i < count; i++)
        sum_w += parts[i].above_w;
    return sum_w;
}

static void charge_dynamic(struct emulator_accounts *accounts, double dynamic_j)
{
    bool works = sum_above_w(accounts->parts, accounts->part_count) > 0.0;
    const struct emulator_part *parts = works ? accounts->parts : accounts->last;
    uint32_t count = works ? accounts->part_count : accounts->last_count;
    double sum_w = sum_above_w(parts, count);

    /* Nothing ever worked: there is nothing but rounding. */
    if (sum_w <= 0.0)
        accounts->vacant_j += dynamic_j;
    for (uint32_t i = 0; i < count && sum_w > 0.0; i++) {
        double *to_j =
            parts[i].account < 0 ? &accounts->scripted_j : &accounts->accounts[parts[i].account].dynamic_j;

        *to_j += dynamic_j * parts[i].above_w / sum_w;
    }
}

static void charge_idle(struct emulator_accounts *accounts, double idle_j)
{
    uint32_t present = 0;

    for (uint32_t i = 0; i < accounts->part_count; i++)
        present += accounts->parts[i].is_present;
    if (present == 0)
        accounts->vacant_j += idle_j;
    for (uint32_t i = 0; i < accounts->part_count; i++) {
        if (accounts->parts[i].is_present)
            accounts->accounts[accounts->parts[i].account].idle_j += idle_j / present;
    }
}

void accounts_charge(struct emulator_accounts *accounts, double energy_j, double idle_w, double time_s)
{
    if (time_s <= 0.0)
        return;
    charge_dynamic(accounts, energy_j - idle_w * time_s);
    charge_idle(accounts, idle_w * time_s);
}

static void add_sample(struct emulator_accounts *accounts, int64_t at_ns, const struct emulator_owner *owner,
                       double share)
{
    uint32_t percent = (uint32_t)(fmin(share, 1.0) * PERCENT + 0.5);

    if (percent == 0 || owner->pid == 0)
        return;
    accounts->samples[accounts->sample_count % EMULATOR_USE_SAMPLES] =
        (struct emulator_use_sample){.at_ns = at_ns, .owner = *owner, .percent = percent};
    accounts->sample_count++;
}

/* Ends a period: writes down who kept what busy in it. */
static void end_period(struct emulator_accounts *accounts, int64_t at_ns, enum emulator_mps_samples clients)
{
    double period_s = (double)USE_PERIOD_NS / 1e9, clients_s = 0.0;
    struct emulator_owner server = {.pid = 0};

    /* Places are taken in order, and stay taken. */
    for (int i = 0; i < EMULATOR_ACCOUNTS && accounts->accounts[i].owner.pid != 0; i++) {
        struct emulator_account *account = &accounts->accounts[i];

        if (account->role.kind == EMULATOR_WORK_MPS_SERVER && account->owner.pid != 0 &&
            account->ended_ns == 0)
            server = account->owner;
        if (account->role.kind == EMULATOR_WORK_MPS && clients != EMULATOR_MPS_CLIENTS)
            clients_s += account->busy_s;
        else
            add_sample(accounts, at_ns, &account->owner, account->busy_s / period_s);
        account->busy_s = 0.0;
    }
    if (clients == EMULATOR_MPS_SERVER)
        add_sample(accounts, at_ns, &server, clients_s / period_s);
}

void accounts_use_up_to(struct emulator_accounts *accounts, int64_t now_ns, enum emulator_mps_samples clients)
{
    /* Older periods would leave the ring, or nobody asked for so long that they do not matter. */
    int64_t oldest_ns = now_ns - now_ns % USE_PERIOD_NS - EMULATOR_USE_SAMPLES * USE_PERIOD_NS;

    if (accounts->used_up_to_ns < oldest_ns) {
        end_period(accounts, oldest_ns, clients);
        accounts->used_up_to_ns = oldest_ns;
    }
    while (accounts->used_up_to_ns < now_ns) {
        int64_t end_ns = accounts->used_up_to_ns - accounts->used_up_to_ns % USE_PERIOD_NS + USE_PERIOD_NS;
        int64_t to_ns = end_ns < now_ns ? end_ns : now_ns;

        for (uint32_t i = 0; i < accounts->part_count; i++) {
            const struct emulator_part *part = &accounts->parts[i];

            if (part->account >= 0)
                accounts->accounts[part->account].busy_s +=
                    part->share * (double)(to_ns - accounts->used_up_to_ns) / 1e9;
        }
        accounts->used_up_to_ns = to_ns;
        if (to_ns == end_ns)
            end_period(accounts, end_ns, clients);
    }
}

static bool is_client(const struct emulator_accounts *accounts, const struct emulator_part *part)
{
    return part->account >= 0 && accounts->accounts[part->account].role.kind == EMULATOR_WORK_MPS;
}

/* Works take turns, and all clients of MPS together have one. */
static void take_turns(struct emulator_accounts *accounts)
{
    double alone = 0.0, clients = 0.0, all;

    for (uint32_t i = 0; i < accounts->part_count; i++) {
        const struct emulator_part *part = &accounts->parts[i];

        *(is_client(accounts, part) ? &clients : &alone) += part->share;
    }
    all = alone + fmin(clients, 1.0);
    for (uint32_t i = 0; i < accounts->part_count && all > 1.0; i++)
        accounts->parts[i].share /= all;
}

void accounts_set_parts(struct emulator_accounts *accounts, const struct emulator_part *parts, uint32_t count)
{
    accounts->part_count = 0;
    memcpy(accounts->parts, parts, count * sizeof *parts);
    accounts->part_count = count;
    take_turns(accounts);
    if (sum_above_w(parts, count) > 0.0) {
        memcpy(accounts->last, parts, count * sizeof *parts);
        accounts->last_count = count;
    }
}
