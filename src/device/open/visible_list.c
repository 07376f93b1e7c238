/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are distinguished by their beginnings. */
#include "device/open/visible_list.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_with(const struct visible_entry *entry, const char *word)
{
    size_t length = strlen(word);

    return entry->length >= length && memcmp(entry->text, word, length) == 0;
}

/* Returns how many digits are at the beginning. */
static size_t digits(const char *text, size_t length)
{
    size_t count = 0;

    while (count < length && is_digit(text[count]))
        count++;
    return count;
}

/* Reads a sign, digits, and ignores what follows. Large numbers stay large; -0 is 0. */
static void read_index(struct visible_entry *entry)
{
    size_t sign = entry->length > 0 && (entry->text[0] == '+' || entry->text[0] == '-');
    size_t count = digits(entry->text + sign, entry->length - sign);
    uint64_t index = 0;

    for (size_t i = 0; i < count; i++)
        index = index > UINT64_MAX / 16 ? index : index * 10 + (uint64_t)(entry->text[sign + i] - '0');
    if (count == 0 || (entry->text[0] == '-' && index > 0))
        return;
    entry->kind = VISIBLE_INDEX;
    entry->index = index;
    entry->exact = count == entry->length;
}

/* "MIG-GPU-UUID/1/0" names the GPU; "MIG-UUID" does not. */
static void read_instance(struct visible_entry *entry)
{
    static const char newer[] = "MIG-", older[] = "MIG-GPU-";
    const char *end = entry->text + entry->length, *uuid = entry->text + strlen(newer), *slash, *at;
    size_t count;

    entry->kind = VISIBLE_INSTANCE;
    if (!begins_with(entry, older))
        return;
    entry->kind = VISIBLE_INVALID;
    slash = memchr(uuid, '/', (size_t)(end - uuid));
    if (slash == NULL)
        return;
    count = digits(slash + 1, (size_t)(end - slash - 1));
    at = slash + 1 + count;
    if (count == 0 || at == end || *at != '/')
        return;
    count = digits(at + 1, (size_t)(end - at - 1));
    if (count == 0 || at + 1 + count != end)
        return;
    entry->kind = VISIBLE_INSTANCE;
    entry->gpu_uuid = uuid;
    entry->gpu_uuid_length = (size_t)(slash - uuid);
}

bool visible_next(const char **rest, struct visible_entry *out_entry)
{
    const char *text = *rest, *comma, *end;

    if (text == NULL || *text == '\0')
        return false;
    comma = strchr(text, ',');
    end = comma != NULL ? comma : text + strlen(text);
    *rest = comma != NULL ? comma + 1 : end;
    while (text < end && is_blank(*text))
        text++;
    while (end > text && is_blank(end[-1]))
        end--;
    *out_entry =
        (struct visible_entry){.kind = VISIBLE_INVALID, .text = text, .length = (size_t)(end - text)};
    if (begins_with(out_entry, "GPU-"))
        out_entry->kind = VISIBLE_UUID;
    else if (begins_with(out_entry, "MIG-"))
        read_instance(out_entry);
    else
        read_index(out_entry);
    return true;
}
