/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/proc_stat.h"

#include <string.h>

enum { FIELDS_MIN = 4, FIELDS = 8 };

/* Reads a number that ends at a blank or the line's end; returns the rest of the line, or NULL. */
static const char *take_number(const char *text, uint64_t *out_value)
{
    uint64_t value = 0;
    const char *start = text;

    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        /* The limit keeps sums of all fields in range. */
        if (value > (UINT64_MAX / 16 - digit) / 10)
            return NULL;
        value = value * 10 + digit;
    }
    if (text == start || strchr(" \n", *text) == NULL)
        return NULL;
    *out_value = value;
    return text;
}

bool proc_stat_parse(const char *text, struct proc_stat *out_stat)
{
    uint64_t fields[FIELDS] = {0};
    size_t count = 0;

    if (strncmp(text, "cpu ", 4) != 0)
        return false;
    text += 3;
    while (count < FIELDS) {
        text += strspn(text, " ");
        if (*text == '\n' || *text == '\0')
            break;
        text = take_number(text, &fields[count++]);
        if (text == NULL)
            return false;
    }
    if (count < FIELDS_MIN)
        return false;
    *out_stat = (struct proc_stat){
        .busy_ticks = fields[0] + fields[1] + fields[2] + fields[5] + fields[6],
        .idle_ticks = fields[3] + fields[4],
        .steal_ticks = fields[7],
    };
    return true;
}

unsigned proc_stat_processors(const char *text)
{
    unsigned count = 0;

    while (text != NULL) {
        text += *text == '\n';
        count += strncmp(text, "cpu", 3) == 0 && text[3] >= '0' && text[3] <= '9';
        text = strchr(text, '\n');
    }
    return count;
}
