/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/debt.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "knob/runtime_directory.h"

enum { VALUE_MAX = 96, DATE_MAX = 32 };

/* Reads the debts of this boot that may be believed. */
static bool read_debts(const char *directory, const char *uuid, struct journal_entry *out_entry)
{
    return journal_read(directory, JOURNAL_OWED, uuid, out_entry, NULL) == 0 &&
           journal_is_of_this_boot(out_entry);
}

static size_t place_of(const struct journal_entry *entry, enum quantity quantity)
{
    size_t place = 0;

    while (place < entry->turn_count && entry->turns[place].quantity != quantity)
        place++;
    return place;
}

static bool is_same(const struct turn *one, const struct turn *other)
{
    return one->way == other->way && setting_equals(&one->previous, &other->previous) &&
           setting_equals(&one->earlier, &other->earlier) && setting_equals(&one->ours, &other->ours);
}

int debt_keep(const char *directory, const struct journal_entry *from, const struct turn *turn,
              struct fly_error *out_error)
{
    struct journal_entry entry;
    size_t place;

    if (!read_debts(directory, from->uuid, &entry)) {
        entry = *from;
        entry.turn_count = 0;
        entry.date_s = (int64_t)time(NULL);
    }
    if (from->daemon[0] != '\0')
        memcpy(entry.daemon, from->daemon, SITE_PLACE_MAX);
    place = place_of(&entry, turn->quantity);
    if (place == TURNS_MAX)
        return 0; /* there are no more knobs than that */
    if (place < entry.turn_count && is_same(&entry.turns[place], turn))
        return 0;
    entry.turn_count += place == entry.turn_count;
    entry.turns[place] = *turn;
    return journal_write(directory, JOURNAL_OWED, &entry, out_error);
}

static bool find(const char *directory, const char *uuid, enum quantity quantity, struct turn *out_debt)
{
    struct journal_entry entry;
    size_t place;

    if (!read_debts(directory, uuid, &entry))
        return false;
    place = place_of(&entry, quantity);
    if (place < entry.turn_count)
        *out_debt = entry.turns[place];
    return place < entry.turn_count;
}

int debt_keep_entry(const char *directory, const char *uuid, enum journal_kind kind,
                    struct fly_error *out_error)
{
    struct journal_entry entry;
    int code = journal_read(directory, kind, uuid, &entry, out_error);

    for (size_t i = 0; code == 0 && i < entry.turn_count; i++) {
        const struct turn *turn = &entry.turns[i];
        struct turn debt;

        /* One that was made while it was put back knows better where the knob stands. */
        if (!find(directory, uuid, turn->quantity, &debt) || !setting_equals(&debt.previous, &turn->previous))
            code = debt_keep(directory, &entry, turn, out_error);
    }
    return code < 0 ? code : journal_remove(directory, kind, uuid, out_error);
}

bool debt_find(const char *directory, const char *uuid, enum quantity quantity, struct turn *out_debt)
{
    char daemon[RUNTIME_PATH_MAX];

    return find(directory, uuid, quantity, out_debt) ||
           (runtime_directory_look_daemon(directory, daemon) && find(daemon, uuid, quantity, out_debt));
}

static void end(const char *directory, const char *uuid, enum quantity quantity)
{
    struct journal_entry entry;
    size_t place;

    if (!journal_exists(directory, JOURNAL_OWED, uuid) || !read_debts(directory, uuid, &entry))
        return;
    place = place_of(&entry, quantity);
    if (place == entry.turn_count)
        return;
    entry.turn_count--;
    memmove(&entry.turns[place], &entry.turns[place + 1], (entry.turn_count - place) * sizeof entry.turns[0]);
    (void)journal_write(directory, JOURNAL_OWED, &entry, NULL);
}

void debt_end(const char *directory, const char *uuid, enum quantity quantity)
{
    char daemon[RUNTIME_PATH_MAX];

    end(directory, uuid, quantity);
    if (runtime_directory_look_daemon(directory, daemon))
        end(daemon, uuid, quantity);
}

/* Writes a value as people read it. */
static const char *value_text(enum quantity quantity, const struct setting *setting, char text[VALUE_MAX])
{
    char list[WORKLOAD_TEXT_MAX];

    if (quantity == QUANTITY_POWER_LIMIT)
        snprintf(text, VALUE_MAX, "%g W", (double)setting->number * 1e-3);
    else if (quantity == QUANTITY_WORKLOADS)
        snprintf(text, VALUE_MAX, "%.90s", workload_text(&setting->workloads, list));
    else if (quantity == QUANTITY_PERFORMANCE_LEVEL)
        snprintf(text, VALUE_MAX, "'%s'", device_level_word(setting->number));
    else if (quantity == QUANTITY_PERSISTENCE)
        snprintf(text, VALUE_MAX, "%s", setting->number != 0 ? "on" : "off");
    else if (setting->number == 0)
        snprintf(text, VALUE_MAX, "none");
    else
        snprintf(text, VALUE_MAX, "%lld MHz", (long long)setting->number);
    return text;
}

static void date_text(int64_t date_s, char text[DATE_MAX])
{
    time_t date = (time_t)date_s;
    struct tm local;

    if (localtime_r(&date, &local) == NULL || strftime(text, DATE_MAX, "%Y-%m-%d %H:%M", &local) == 0)
        snprintf(text, DATE_MAX, "an unknown date");
}

static void say(const struct journal_entry *entry, unsigned index, char text[DEBT_TEXT_MAX])
{
    char owed[VALUE_MAX], now[VALUE_MAX], date[DATE_MAX];
    size_t length;

    date_text(entry->date_s, date);
    length = (size_t)snprintf(text, DEBT_TEXT_MAX,
                              "GPU %u is owed what stood before '%.40s', which could not be set (%s)", index,
                              entry->program, date);
    for (size_t i = 0; i < entry->turn_count && length < DEBT_TEXT_MAX; i++) {
        const struct turn *turn = &entry->turns[i];

        length += (size_t)snprintf(text + length, DEBT_TEXT_MAX - length, "%s %s %s, meanwhile %s",
                                   i == 0 ? ":" : ";", quantity_facts[turn->quantity].title,
                                   value_text(turn->quantity, &turn->previous, owed),
                                   value_text(turn->quantity, &turn->ours, now));
    }
    if (length < DEBT_TEXT_MAX)
        snprintf(text + length, DEBT_TEXT_MAX - length,
                 "; it is tried again, and 'flyball power set' or 'flyball power reset' ends it");
}

bool debt_say(const char *directory, const struct device *device, char text[DEBT_TEXT_MAX])
{
    char daemon[RUNTIME_PATH_MAX];
    struct journal_entry entry;

    text[0] = '\0';
    if (read_debts(directory, device->info.uuid, &entry) ||
        (runtime_directory_look_daemon(directory, daemon) && read_debts(daemon, device->info.uuid, &entry)))
        say(&entry, device->info.index, text);
    return text[0] != '\0';
}
