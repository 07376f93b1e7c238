/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that have rows, and what several of them have in common. */
#include <string.h>

#include "node/share/share_private.h"

struct share_process *people_find(struct share *share, pid_t pid, unsigned long long start)
{
    struct share_process *found = NULL;

    for (size_t i = 0; i < share->process_count; i++) {
        struct share_process *process = &share->processes[i];
        unsigned long long known = process->owner.start_ticks;

        if (process->number == 0 || process->over || process->owner.pid != pid)
            continue;
        if ((start == 0 || known == 0 || start == known) &&
            (found == NULL || found->number < process->number))
            found = process;
    }
    return found;
}

struct share_process *people_of(struct share *share, uint64_t number)
{
    struct share_process *process = &share->processes[number % SHARE_PROCESSES_MAX];

    return number != 0 && process->number == number ? process : NULL;
}

/* ---- what sharers have in common ---- */

static void keep_same(char *text, const char *other)
{
    if (strcmp(text, other) != 0)
        text[0] = '\0';
}

static void keep_common(struct owner *into, const struct owner *other)
{
    into->uid_known = into->uid_known && other->uid_known && into->uid == other->uid;
    if (into->runtime != other->runtime)
        into->runtime = OWNER_RUNTIME_NONE;
    keep_same(into->user, other->user);
    keep_same(into->command, other->command);
    keep_same(into->cgroup, other->cgroup);
    keep_same(into->container_id, other->container_id);
    keep_same(into->slurm_job, other->slurm_job);
    keep_same(into->slurm_step, other->slurm_step);
    keep_same(into->pod_uid, other->pod_uid);
    keep_same(into->pod, other->pod);
    keep_same(into->pod_namespace, other->pod_namespace);
    keep_same(into->container, other->container);
    keep_same(into->training_job, other->training_job);
}

bool people_common(struct share *share, const struct ledger_set *set, struct owner *out_owner)
{
    bool named = true;

    *out_owner = (struct owner){.pid = 0};
    for (size_t i = 0; i < set->count; i++) {
        const struct share_process *process = people_of(share, set->processes[i]);
        static const struct owner nobody = {.pid = 0};
        const struct owner *owner = process != NULL ? &process->owner : &nobody;

        named = named && (process == NULL || process->named);
        if (i == 0)
            *out_owner = *owner;
        else
            keep_common(out_owner, owner);
    }
    return named;
}
