/* SPDX-License-Identifier: Apache-2.0 */
#include "device/quantity.h"

#include <stddef.h>
#include <string.h>

#define QUANTITY_FACTS(name, key, title, unit, course, help) \
    {key, title, MEANING_WHOLE, 0, unit, course, help},
const struct meaning quantity_facts[QUANTITY_NAMED_COUNT] = {QUANTITY_MAP(QUANTITY_FACTS)
                                                                 SETTING_MAP(QUANTITY_FACTS)};
const struct quantities device_quantities = {"a reading of a device", quantity_facts, QUANTITY_COUNT,
                                             sizeof quantity_facts[0]};

static int find(const char *key, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(quantity_facts[i].key, key) == 0)
            return i;
    }
    return -1;
}

int quantity_find(const char *key)
{
    return find(key, QUANTITY_COUNT);
}

int quantity_find_named(const char *key)
{
    return find(key, QUANTITY_NAMED_COUNT);
}

#define READING_WORD(name, word, clause) word,
#define READING_CLAUSE(name, word, clause) clause,
static const char *const words[READING_STATE_COUNT] = {READING_MAP(READING_WORD)};
static const char *const clauses[READING_STATE_COUNT] = {READING_MAP(READING_CLAUSE)};

const char *reading_state_word(enum reading_state state)
{
    return words[state];
}

const char *reading_state_clause(enum reading_state state)
{
    return clauses[state];
}

int reading_state_find(const char *word)
{
    for (int i = 0; i < READING_STATE_COUNT; i++) {
        if (strcmp(words[i], word) == 0)
            return i;
    }
    return -1;
}

void readings_fail(struct reading *values, quantity_set wanted, enum reading_state state, int code)
{
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if ((wanted & QUANTITY_BIT(i)) != 0)
            values[i] = (struct reading){.state = state, .code = code};
    }
}
