/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of workload power profiles, and their names. */
#include "device/workloads.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

enum { WORD_BITS = 32, WORD_DIGITS = 8 };

static const struct {
    unsigned id;
    const char *name;
} names[] = {
    {0, "MAX_P"},        {1, "MAX_Q"}, {2, "COMPUTE"},   {3, "MEMORY_BOUND"},
    {7, "LLM_TRAINING"}, {13, "HPC"},  {20, "TRAINING"},
};
enum { NAMES = sizeof names / sizeof names[0] };

static const char no_profiles[] = "none";

bool workload_has(const struct workload_set *set, unsigned id)
{
    return id < WORKLOADS_MAX && (set->words[id / WORD_BITS] >> id % WORD_BITS & 1U) != 0;
}

void workload_add(struct workload_set *set, unsigned id)
{
    if (id < WORKLOADS_MAX)
        set->words[id / WORD_BITS] |= (uint32_t)1 << id % WORD_BITS;
}

bool workload_is_empty(const struct workload_set *set)
{
    return workload_equals(set, &(struct workload_set){{0}});
}

bool workload_equals(const struct workload_set *one, const struct workload_set *other)
{
    return memcmp(one->words, other->words, sizeof one->words) == 0;
}

bool workload_is_within(const struct workload_set *part, const struct workload_set *whole)
{
    struct workload_set rest = workload_without(part, whole);

    return workload_is_empty(&rest);
}

struct workload_set workload_without(const struct workload_set *set, const struct workload_set *taken)
{
    struct workload_set result;

    for (int i = 0; i < WORKLOAD_WORDS; i++)
        result.words[i] = set->words[i] & ~taken->words[i];
    return result;
}

struct workload_set workload_union(const struct workload_set *one, const struct workload_set *other)
{
    struct workload_set result;

    for (int i = 0; i < WORKLOAD_WORDS; i++)
        result.words[i] = one->words[i] | other->words[i];
    return result;
}

struct workload_set workload_common(const struct workload_set *one, const struct workload_set *other)
{
    struct workload_set result;

    for (int i = 0; i < WORKLOAD_WORDS; i++)
        result.words[i] = one->words[i] & other->words[i];
    return result;
}

char *workload_name(unsigned id, char text[WORKLOAD_NAME_MAX])
{
    snprintf(text, WORKLOAD_NAME_MAX, "%u", id);
    for (int i = 0; i < NAMES; i++) {
        if (names[i].id == id)
            snprintf(text, WORKLOAD_NAME_MAX, "%s", names[i].name);
    }
    return text;
}

char *workload_list(const struct workload_set *set, char text[WORKLOAD_TEXT_MAX])
{
    char name[WORKLOAD_NAME_MAX];
    size_t length = 0;

    text[0] = '\0';
    for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
        if (workload_has(set, id))
            length += (size_t)snprintf(text + length, WORKLOAD_TEXT_MAX - length, "%s%s",
                                       length > 0 ? "," : "", workload_name(id, name));
    }
    return text;
}

char *workload_text(const struct workload_set *set, char text[WORKLOAD_TEXT_MAX])
{
    if (workload_list(set, text)[0] == '\0')
        snprintf(text, WORKLOAD_TEXT_MAX, "%s", no_profiles);
    return text;
}

static bool find(const char *text, unsigned *out_id)
{
    uint64_t id;

    for (int i = 0; i < NAMES; i++) {
        if (strcasecmp(text, names[i].name) == 0) {
            *out_id = names[i].id;
            return true;
        }
    }
    if (!number_parse_u64(text, WORKLOADS_MAX - 1, &id))
        return false;
    *out_id = (unsigned)id;
    return true;
}

bool workload_parse(const char *text, struct workload_set *out_set)
{
    struct workload_set set = {{0}};
    const char *at = text;
    bool empty = strcasecmp(text, no_profiles) == 0;

    while (!empty) {
        size_t length = strcspn(at, ",");
        char word[WORKLOAD_NAME_MAX];
        unsigned id;

        if (length >= sizeof word)
            return false;
        memcpy(word, at, length);
        word[length] = '\0';
        if (!find(word, &id))
            return false;
        workload_add(&set, id);
        if (at[length] == '\0')
            break;
        at += length + 1;
        at += strspn(at, " ");
    }
    *out_set = set;
    return true;
}

char *workload_hex(const struct workload_set *set, char text[WORKLOAD_HEX_MAX])
{
    int word = WORKLOAD_WORDS - 1;
    int length;

    while (word > 0 && set->words[word] == 0)
        word--;
    length = snprintf(text, WORKLOAD_HEX_MAX, "%x", set->words[word]);
    while (word-- > 0)
        length += snprintf(text + length, (size_t)(WORKLOAD_HEX_MAX - length), "%08x", set->words[word]);
    return text;
}

bool workload_parse_hex(const char *text, struct workload_set *out_set)
{
    struct workload_set set = {{0}};
    size_t length = strlen(text);

    if (length == 0 || length >= WORKLOAD_HEX_MAX || strspn(text, "0123456789abcdef") != length ||
        (text[0] == '0' && length > 1))
        return false;
    for (size_t i = 0; i < length; i++) {
        size_t place = length - 1 - i;
        uint32_t digit = (uint32_t)(isdigit((unsigned char)text[i]) ? text[i] - '0' : text[i] - 'a' + 10);

        set.words[place / WORD_DIGITS] |= digit << 4 * (place % WORD_DIGITS);
    }
    *out_set = set;
    return true;
}
