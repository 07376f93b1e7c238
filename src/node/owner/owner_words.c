/* SPDX-License-Identifier: Apache-2.0 */
#include "node/owner/owner_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "job/core/definition.h"
#include "train/program/run_variables.h"

bool owner_status_uid(const char *text, uid_t *out_uid)
{
    static const char name[] = "\nUid:\t";
    const char *at = strstr(text, name);
    char number[16];
    uint64_t uid;

    if (at == NULL)
        return false;
    at += sizeof name - 1;
    snprintf(number, sizeof number, "%.*s", (int)strspn(at, "0123456789"), at);
    if (!number_parse_u64(number, UINT32_MAX, &uid))
        return false;
    *out_uid = (uid_t)uid;
    return true;
}

/* Steps that Slurm names by numbers at the end of the range, which differ by its version. */
static const struct special_step {
    const char *number, *name;
} special_steps[] = {
    {"4294967290", "interactive"}, {"4294967291", "batch"},  {"4294967292", "extern"},
    {"4294967294", "batch"},       {"4294967295", "extern"},
};

static bool is_number(const char *value)
{
    return value[0] != '\0' && value[strspn(value, "0123456789")] == '\0' && strlen(value) < OWNER_SLURM_MAX;
}

static void set_once(char *out, size_t size, const char *value)
{
    if (out[0] == '\0')
        snprintf(out, size, "%s", value);
}

static void take_training(struct owner *owner, const char *value)
{
    if (job_name_fits(value))
        set_once(owner->training_job, sizeof owner->training_job, value);
}

/* The group's word comes before. What the process says it says in any order, so a mark tells whose it is. */
static bool may_claim(struct owner *owner)
{
    if (owner->slurm_job[0] == '\0' && owner->slurm_step[0] == '\0')
        owner->slurm_claimed = true;
    return owner->slurm_claimed;
}

static void take_slurm_job(struct owner *owner, const char *value)
{
    if (is_number(value) && may_claim(owner))
        set_once(owner->slurm_job, sizeof owner->slurm_job, value);
}

static void take_slurm_step(struct owner *owner, const char *value)
{
    if (!is_number(value) || !may_claim(owner))
        return;
    for (size_t i = 0; i < sizeof special_steps / sizeof special_steps[0]; i++)
        if (strcmp(special_steps[i].number, value) == 0)
            value = special_steps[i].name;
    set_once(owner->slurm_step, sizeof owner->slurm_step, value);
}

static void take_entry(struct owner *owner, char *entry)
{
    const struct variable {
        const char *name;
        void (*take)(struct owner *owner, const char *value);
    } variables[] = {
        {run_variables[RUN_VARIABLE_JOB].name, take_training},
        {"SLURM_JOB_ID", take_slurm_job},
        {"SLURM_STEP_ID", take_slurm_step},
    };
    char *value = strchr(entry, '=');

    if (value == NULL)
        return;
    *value++ = '\0';
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (strcmp(variables[i].name, entry) == 0)
            variables[i].take(owner, value);
}

void owner_words_take(struct owner_words *words, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t part = strnlen(bytes, length);
        bool ended = part < length;

        if (words->length + part < sizeof words->entry)
            memcpy(words->entry + words->length, bytes, part);
        words->length += part;
        if (ended && words->length < sizeof words->entry) {
            words->entry[words->length] = '\0';
            take_entry(words->owner, words->entry);
        }
        if (ended)
            words->length = 0;
        bytes += part + ended;
        length -= part + ended;
    }
}
