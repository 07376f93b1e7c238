/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/program/program_accounts.h"

#include "emulator/identity.h"

/* Seconds since the machine was made. */
static double age_s(const struct emulator_state *state, int64_t at_ns)
{
    return (double)(at_ns - state->created_ns) / 1e9;
}

static json_t *work_of(const struct emulator_state *state, const struct emulator_account *account)
{
    int instance = account->role.instance;

    return json_pack("{s:i, s:s, s:o, s:f, s:o, s:f, s:f}", "pid", (int)account->owner.pid, "kind",
                     emulator_work_words[account->role.kind], "instance",
                     instance >= 0 ? json_integer(identity_instance_id((unsigned)instance)) : json_null(),
                     "began_age_s", age_s(state, account->began_ns), "ended_age_s",
                     account->ended_ns > 0 ? json_real(age_s(state, account->ended_ns)) : json_null(),
                     "true_dynamic_j", account->dynamic_j, "true_idle_j", account->idle_j);
}

void program_put_accounts(json_t *gpu, const struct emulator_state *state, double idle_w,
                          const struct emulator_accounts *accounts)
{
    json_t *works = json_array();

    for (int i = 0; i < EMULATOR_ACCOUNTS; i++) {
        if (accounts->accounts[i].owner.pid != 0)
            json_array_append_new(works, work_of(state, &accounts->accounts[i]));
    }
    json_object_set_new(gpu, "true_idle_w", json_real(idle_w));
    json_object_set_new(gpu, "true_vacant_j", json_real(accounts->vacant_j));
    json_object_set_new(gpu, "true_other_j",
                        json_real(accounts->scripted_j + accounts->forgotten_j + accounts->forgotten_idle_j));
    json_object_set_new(gpu, "works", works);
}
