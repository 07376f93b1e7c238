/* SPDX-License-Identifier: Apache-2.0 */
#include "node/rights_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/accounts.h"
#include "base/error.h"
#include "base/number.h"
#include "base/words.h"
#include "cli/frame/value.h"

static const char front[] = "rule ";

bool rules_is_section(const char *section)
{
    return strncmp(section, front, sizeof front - 1) == 0 && section[sizeof front - 1] != '\0';
}

static int bad_value(const char *origin, enum rule_key key, const char *text, const char *expected,
                     struct fly_error *out_error)
{
    return value_error(&node_rule_keys[key], CLI_FILE, origin, text, expected, NULL, out_error);
}

static bool find_id(enum rights_who who, const char *name, uint64_t *out_id)
{
    uint32_t number = 0;
    bool found = who == RIGHTS_USER ? accounts_user(name, &number) : accounts_group(name, &number);

    *out_id = number;
    return found;
}

static int take_for(struct rules *rules, const char *origin, const char *text, struct fly_error *out_error)
{
    static const struct {
        const char *front;
        enum rights_who who;
    } kinds[] = {{"user:", RIGHTS_USER}, {"group:", RIGHTS_GROUP}, {"token:", RIGHTS_TOKEN}};

    if (strcmp(text, "anyone") == 0)
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].front);

        if (strncmp(text, kinds[i].front, length) != 0 || text[length] == '\0')
            continue;
        rules->made.who = kinds[i].who;
        snprintf(rules->made.token, sizeof rules->made.token, "%s", text + length);
        if (kinds[i].who == RIGHTS_TOKEN || find_id(kinds[i].who, text + length, &rules->made.id))
            return 0;
        return bad_value(origin, RULE_FOR, text, "a user or a group that this machine knows", out_error);
    }
    return bad_value(origin, RULE_FOR, text, "anyone, user:NAME, group:NAME or token:NAME", out_error);
}

static int take_gpus(struct rules *rules, const char *origin, const struct cli_value *value,
                     struct fly_error *out_error)
{
    rules->gpu_count = value->list.count;
    for (size_t i = 0; i < value->list.count; i++) {
        if (strlen(value->list.words[i]) >= DEVICE_TEXT_MAX)
            return bad_value(origin, RULE_GPUS, value->text, "UUIDs, PCI addresses, indices or *", out_error);
        snprintf(rules->gpus[i], sizeof rules->gpus[i], "%s", value->list.words[i]);
    }
    return 0;
}

static int take_allow(struct rules *rules, const char *origin, const struct cli_value *value,
                      struct fly_error *out_error)
{
    static const char *const words[] = {"read", "control", "overrule"};
    static const unsigned scopes[] = {RIGHTS_READ, RIGHTS_CONTROL, RIGHTS_OVERRULE};

    for (size_t i = 0; i < value->list.count; i++) {
        int index = word_index(value->list.words[i], words, sizeof words / sizeof words[0]);

        if (index < 0)
            return bad_value(origin, RULE_ALLOW, value->text, "one or more of read, control, overrule",
                             out_error);
        rules->made.scopes |= scopes[index];
    }
    return 0;
}

/* Reads "250" as W and "40%" as a share. */
static int take_limit(const char *origin, enum rule_key key, const char *text, struct rights_limit *out_limit,
                      struct fly_error *out_error)
{
    char number[VALUE_TEXT_MAX + 1];
    size_t length = strlen(text);
    bool share = text[length - 1] == '%';
    double value;

    snprintf(number, sizeof number, "%.*s", (int)(length - share), text);
    if (!number_parse_double(number, &value) || value <= 0 || value > (share ? 100 : 100000))
        return bad_value(origin, key, text, "a limit in W, such as 250, or a share, such as 40%", out_error);
    *out_limit = (struct rights_limit){.share = share ? value / 100 : 0, .power_w = share ? 0 : value};
    return 0;
}

static int take_value(struct rules *rules, enum rule_key key, const char *origin,
                      const struct cli_value *value, struct fly_error *out_error)
{
    switch (key) {
    case RULE_FOR:
        return take_for(rules, origin, value->text, out_error);
    case RULE_GPUS:
        return take_gpus(rules, origin, value, out_error);
    case RULE_ALLOW:
        return take_allow(rules, origin, value, out_error);
    case RULE_FLOOR:
        return take_limit(origin, key, value->text, &rules->made.floor, out_error);
    case RULE_CEILING:
        return take_limit(origin, key, value->text, &rules->made.ceiling, out_error);
    case RULE_KEYS:
        break;
    }
    return 0;
}

static int find_key(const char *origin, const char *name, struct fly_error *out_error)
{
    for (int i = 0; i < RULE_KEYS; i++)
        if (strcmp(node_rule_keys[i].key, name) == 0)
            return i;
    return error_set(out_error, FLY_ECONFIG,
                     "%s: there is no key '%.100s' of a rule; expected for, gpus, allow, floor or ceiling",
                     origin, name);
}

static int begin(struct rules *rules, const char *origin, struct fly_error *out_error)
{
    int code = rules_end(rules, out_error);

    if (code < 0)
        return code;
    rules->open = true;
    memset(rules->set, 0, sizeof rules->set);
    rules->made = (struct rights_rule){.who = RIGHTS_ANYONE};
    rules->gpu_count = 1;
    snprintf(rules->gpus[0], sizeof rules->gpus[0], "*");
    snprintf(rules->where, sizeof rules->where, "%s", origin);
    return 0;
}

int rules_take(struct rules *rules, const char *path, const struct config_entry *entry,
               struct fly_error *out_error)
{
    char origin[RULE_WHERE_MAX];
    struct cli_value value;
    int key, code;

    snprintf(origin, sizeof origin, "%s:%zu", path, entry->line);
    if (entry->name == NULL)
        return begin(rules, origin, out_error);
    key = find_key(origin, entry->name, out_error);
    if (key < 0)
        return key;
    if (rules->set[key])
        return error_set(out_error, FLY_ECONFIG, "%s: '%s' is set twice in this rule; keep one", origin,
                         entry->name);
    rules->set[key] = true;
    value_init(&value);
    code = value_set(&value, &node_rule_keys[key], CLI_FILE, origin, entry->value, NULL, out_error);
    if (code == 0)
        code = take_value(rules, (enum rule_key)key, origin, &value, out_error);
    value_deinit(&value);
    return code;
}

static int check(const struct rules *rules, struct fly_error *out_error)
{
    const struct rights_rule *made = &rules->made;
    bool bounds = rules->set[RULE_FLOOR] || rules->set[RULE_CEILING];

    if (made->scopes == 0 && !bounds)
        return error_set(out_error, FLY_ECONFIG,
                         "%s: the rule says nothing; set 'allow', 'floor' or 'ceiling', or remove it",
                         rules->where);
    if (made->who == RIGHTS_ANYONE && (made->scopes & ~(unsigned)RIGHTS_READ) != 0)
        return error_set(out_error, FLY_ECONFIG,
                         "%s: the rule lets anyone control GPUs; say whom with 'for', as in user:NAME",
                         rules->where);
    if (rules->count + rules->gpu_count > RIGHTS_RULES_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "%s: more than %d rules (a rule for several GPUs counts as several)", rules->where,
                         RIGHTS_RULES_MAX);
    return 0;
}

int rules_end(struct rules *rules, struct fly_error *out_error)
{
    int code = rules->open ? check(rules, out_error) : 0;

    if (code < 0 || !rules->open)
        return code;
    for (size_t i = 0; i < rules->gpu_count; i++) {
        struct rights_rule *row = &rules->rows[rules->count++];

        *row = rules->made;
        snprintf(row->gpu, sizeof row->gpu, "%s", rules->gpus[i]);
    }
    rules->open = false;
    return 0;
}
