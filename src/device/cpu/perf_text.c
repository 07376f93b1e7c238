/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/perf_text.h"

#include <string.h>

#include "base/number.h"

enum { CPU_MAX = 65535, EVENT_MAX = 255, ITEM_MAX = 32 };

static bool parse_hex(const char *text, uint64_t *out_value)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;

    if (*text == '\0' || strlen(text) > 8)
        return false;
    for (; *text != '\0'; text++) {
        const char *digit = strchr(digits, *text);

        if (digit == NULL)
            return false;
        value = value * 16 + (uint64_t)(digit - digits);
    }
    *out_value = value;
    return true;
}

bool perf_event_parse(const char *text, uint64_t *out_config)
{
    static const char head[] = "event=";
    uint64_t value;

    if (strncmp(text, head, strlen(head)) != 0)
        return false;
    text += strlen(head);
    if (strncmp(text, "0x", 2) == 0 ? !parse_hex(text + 2, &value)
                                    : !number_parse_u64(text, EVENT_MAX, &value))
        return false;
    if (value > EVENT_MAX)
        return false;
    *out_config = value;
    return true;
}

/* Parses "3" or "0-3". */
static bool parse_range(char *item, uint64_t *out_first, uint64_t *out_last)
{
    char *dash = strchr(item, '-');

    if (dash != NULL)
        *dash++ = '\0';
    return number_parse_u64(item, CPU_MAX, out_first) &&
           number_parse_u64(dash != NULL ? dash : item, CPU_MAX, out_last) && *out_first <= *out_last;
}

bool perf_cpus_parse(const char *text, unsigned *cpus, size_t maximum, size_t *out_count)
{
    size_t count = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        char item[ITEM_MAX];
        uint64_t first, last;

        if (length >= sizeof item)
            return false;
        memcpy(item, text, length);
        item[length] = '\0';
        if (!parse_range(item, &first, &last) || last - first >= maximum - count)
            return false;
        while (first <= last)
            cpus[count++] = (unsigned)first++;
        text += length;
        if (*text == ',' && *++text == '\0')
            return false;
    }
    *out_count = count;
    return true;
}
