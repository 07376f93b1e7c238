/* SPDX-License-Identifier: Apache-2.0 */
/* A journal's entry as text: line by line, in a fixed order, with a last line that marks its end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "knob/journal.h"

enum { LINE_MAX_BYTES = 320 };

/* A text without sets is of the first version, and as that wrote it; the memory's clock came with the third.
 */
static const char first_word[] = "flyball-journal";
enum { VERSION_FIRST = 1, VERSION_SETS = 2, VERSION_MEMORY = 3 };

/* Appends to a text that has room for the longest entry. */
__attribute__((format(printf, 3, 4))) static void append(char text[JOURNAL_TEXT_MAX], int *length,
                                                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    *length += vsnprintf(text + *length, (size_t)(JOURNAL_TEXT_MAX - *length), format, arguments);
    va_end(arguments);
}

/* Returns the first version that knows turns of that quantity. */
static int version_with(enum quantity quantity)
{
    if (quantity == QUANTITY_MEMORY_CLOCK_CEILING)
        return VERSION_MEMORY;
    return quantity == QUANTITY_WORKLOADS || quantity == QUANTITY_PERFORMANCE_LEVEL ? VERSION_SETS
                                                                                    : VERSION_FIRST;
}

static int version_of(const struct journal_entry *entry)
{
    int version = VERSION_FIRST;

    for (size_t i = 0; i < entry->turn_count; i++) {
        int least = version_with(entry->turns[i].quantity);

        version = least > version ? least : version;
    }
    return version;
}

static void append_setting(char text[JOURNAL_TEXT_MAX], int *length, enum quantity quantity,
                           const struct setting *setting)
{
    char hex[WORKLOAD_HEX_MAX];

    if (quantity == QUANTITY_WORKLOADS)
        append(text, length, " %s", workload_hex(&setting->workloads, hex));
    else
        append(text, length, " %lld", (long long)setting->number);
}

size_t journal_format(const struct journal_entry *entry, char text[JOURNAL_TEXT_MAX])
{
    int length = 0;

    append(text, &length, "%s %d\ngpu %s\nboot %s\nby %lld %llu %s\ndate %lld\n", first_word,
           version_of(entry), entry->uuid, entry->boot, (long long)entry->pid,
           (unsigned long long)entry->start_ticks, entry->program, (long long)entry->date_s);
    if (entry->daemon[0] != '\0')
        append(text, &length, "%s %s\n", way_name(WAY_DAEMON), entry->daemon);
    for (size_t i = 0; i < entry->turn_count; i++) {
        const struct turn *turn = &entry->turns[i];

        append(text, &length, "turn %s", quantity_facts[turn->quantity].key);
        append_setting(text, &length, turn->quantity, &turn->previous);
        append_setting(text, &length, turn->quantity, &turn->earlier);
        append_setting(text, &length, turn->quantity, &turn->ours);
        append(text, &length, "%s%s\n", turn->way != WAY_DRIVER ? " " : "",
               turn->way != WAY_DRIVER ? way_name(turn->way) : "");
    }
    append(text, &length, "end\n");
    return (size_t)length;
}

struct reader {
    const char *rest;
    unsigned line;
    char text[LINE_MAX_BYTES]; /* the current line */
    char *words;               /* the rest of it */
};

/* Reads the next line if it begins with that word; else returns false. */
static bool next_line(struct reader *reader, const char *word)
{
    const char *end = strchr(reader->rest, '\n');
    size_t length = end != NULL ? (size_t)(end - reader->rest) : 0, word_length = strlen(word);

    reader->line++;
    if (end == NULL || length >= sizeof reader->text)
        return false;
    memcpy(reader->text, reader->rest, length);
    reader->text[length] = '\0';
    reader->rest = end + 1;
    if (strncmp(reader->text, word, word_length) != 0)
        return false;
    reader->words = reader->text + word_length;
    return *reader->words == '\0' || *reader->words++ == ' ';
}

static bool take_number(struct reader *reader, uint64_t maximum, uint64_t *out_value)
{
    char *word = strsep(&reader->words, " ");

    return word != NULL && number_parse_u64(word, maximum, out_value);
}

/* Takes the rest of the line, which must be printable and not empty. */
static bool take_rest(struct reader *reader, char *text, size_t bytes)
{
    size_t length = reader->words != NULL ? strlen(reader->words) : 0;

    if (length == 0 || length >= bytes)
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)reader->words[i] < ' ' || reader->words[i] == 0x7F)
            return false;
    }
    memcpy(text, reader->words, length + 1);
    return true;
}

static bool take_maker(struct reader *reader, struct journal_entry *entry)
{
    uint64_t pid;

    if (!take_number(reader, INT32_MAX, &pid) || !take_number(reader, UINT64_MAX, &entry->start_ticks))
        return false;
    entry->pid = (pid_t)pid;
    return take_rest(reader, entry->program, sizeof entry->program);
}

/* Reads the name of a way at the end of the line; without one it is the driver, as in the first entries. */
static bool take_way(struct reader *reader, enum way *out_way)
{
    int way = reader->words != NULL ? way_find(reader->words) : WAY_DRIVER;

    if (way < 0 || (reader->words != NULL && way == WAY_DRIVER))
        return false;
    *out_way = (enum way)way;
    return true;
}

/* Reads the daemon's place, if the next line states it. */
static bool take_daemon(struct reader *reader, char place[SITE_PLACE_MAX])
{
    const char *name = way_name(WAY_DAEMON);
    size_t length = strlen(name);

    if (strncmp(reader->rest, name, length) != 0 || reader->rest[length] != ' ')
        return true;
    return next_line(reader, name) && take_rest(reader, place, SITE_PLACE_MAX);
}

/* Takes a set, or a number; those of drivers fit into 32 bits. */
static bool take_setting(struct reader *reader, enum quantity quantity, struct setting *out_setting)
{
    struct setting setting = {.number = 0};
    const char *word;
    uint64_t number;

    if (quantity == QUANTITY_WORKLOADS) {
        word = strsep(&reader->words, " ");
        if (word == NULL || !workload_parse_hex(word, &setting.workloads))
            return false;
    } else {
        if (!take_number(reader, UINT32_MAX, &number))
            return false;
        setting.number = (int64_t)number;
    }
    *out_setting = setting;
    return true;
}

static bool take_turn(struct reader *reader, int version, struct turn *out_turn)
{
    const char *key = strsep(&reader->words, " ");
    int quantity = key != NULL ? quantity_find_named(key) : -1;
    struct turn turn = {.way = WAY_DRIVER};

    if (quantity < 0 || (QUANTITY_BIT(quantity) & QUANTITIES_SETTABLE) == 0 ||
        version < version_with((enum quantity)quantity))
        return false;
    turn.quantity = (enum quantity)quantity;
    if (!take_setting(reader, turn.quantity, &turn.previous) ||
        !take_setting(reader, turn.quantity, &turn.earlier) ||
        !take_setting(reader, turn.quantity, &turn.ours) || !take_way(reader, &turn.way))
        return false;
    *out_turn = turn;
    return true;
}

/* An entry has one turn per knob, however often the knob is set. */
static bool is_new(const struct journal_entry *entry, enum quantity quantity)
{
    for (size_t i = 0; i < entry->turn_count; i++) {
        if (entry->turns[i].quantity == quantity)
            return false;
    }
    return true;
}

static bool parse_head(struct reader *reader, struct journal_entry *entry)
{
    uint64_t date;

    if (!next_line(reader, "gpu") || !take_rest(reader, entry->uuid, sizeof entry->uuid))
        return false;
    if (!next_line(reader, "boot") || !take_rest(reader, entry->boot, sizeof entry->boot))
        return false;
    if (!next_line(reader, "by") || !take_maker(reader, entry))
        return false;
    if (!next_line(reader, "date") || !take_number(reader, INT64_MAX, &date) || reader->words != NULL)
        return false;
    entry->date_s = (int64_t)date;
    return true;
}

/* Reads the first line; 0: it is none. */
static int parse_version(struct reader *reader)
{
    uint64_t version;

    return next_line(reader, first_word) && take_number(reader, INT32_MAX, &version) && reader->words == NULL
               ? (int)version
               : 0;
}

static bool parse(struct reader *reader, int version, struct journal_entry *entry)
{
    if (!parse_head(reader, entry) || !take_daemon(reader, entry->daemon))
        return false;
    while (strncmp(reader->rest, "turn ", strlen("turn ")) == 0) {
        if (entry->turn_count == TURNS_MAX || !next_line(reader, "turn") ||
            !take_turn(reader, version, &entry->turns[entry->turn_count]) ||
            !is_new(entry, entry->turns[entry->turn_count].quantity))
            return false;
        entry->turn_count++;
    }
    return next_line(reader, "end") && reader->words[0] == '\0' && reader->rest[0] == '\0';
}

int journal_parse(const char *text, struct journal_entry *out_entry, struct fly_error *out_error)
{
    struct journal_entry entry = {.pid = 0};
    struct reader reader = {.rest = text};
    int version = parse_version(&reader);

    if (version > VERSION_MEMORY)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the journal's entry is of version %d, and this program knows up to %d; use a newer "
                         "Flyball",
                         version, VERSION_MEMORY);
    if (version < VERSION_FIRST || !parse(&reader, version, &entry))
        return error_set(out_error, FLY_EDATA,
                         "line %u of the journal's entry is not as it was written; its file was "
                         "damaged or cut short",
                         reader.line);
    *out_entry = entry;
    return 0;
}
