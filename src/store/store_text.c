/* SPDX-License-Identifier: Apache-2.0 */
/* Checks names, kinds, keys, versions and bodies; a table of ranges reads UTF-8. */
#include "store/store_text.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"

/* By the first byte: how many follow, and what the next one may be (Unicode 15, table 3-7). */
static const struct lead {
    unsigned char first, last, following, next_first, next_last;
} leads[] = {
    {0x00, 0x7F, 0, 0, 0},       {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF},
    {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF},
    {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

static const struct lead *lead_of(unsigned char byte)
{
    for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    }
    return NULL;
}

/* The bytes of one character, or 0. */
static size_t character_bytes(const unsigned char *text, size_t length)
{
    const struct lead *lead = lead_of(text[0]);

    if (lead == NULL || length <= lead->following)
        return 0;
    if (lead->following > 0 && (text[1] < lead->next_first || text[1] > lead->next_last))
        return 0;
    for (size_t i = 2; i <= lead->following; i++) {
        if (text[i] < 0x80 || text[i] > 0xBF)
            return 0;
    }
    return lead->following + 1u;
}

bool store_text_is_utf8(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;

    while (length > 0) {
        size_t used = character_bytes(bytes, length);

        if (used == 0)
            return false;
        bytes += used;
        length -= used;
    }
    return true;
}

static bool has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return true;
    }
    return false;
}

int store_text_check(const char *text, const char *what, size_t maximum, bool may_be_empty,
                     struct fly_error *out_error)
{
    if (text == NULL || (text[0] == '\0' && !may_be_empty))
        return error_set(out_error, FLY_EUSAGE, "the %s is empty; give one", what);
    if (strlen(text) > maximum)
        return error_set(out_error, FLY_ELIMIT, "the %s '%.40s...' has %zu bytes; at most %zu are allowed",
                         what, text, strlen(text), maximum);
    if (has_control(text) || !store_text_is_utf8(text, strlen(text)))
        return error_set(out_error, FLY_EUSAGE,
                         "the %s '%.60s' has control characters or is not UTF-8; choose another", what, text);
    return 0;
}

int store_event_check(const struct store_event *event, struct fly_error *out_error)
{
    int code = store_text_check(event->kind, "kind of an event", STORE_KIND_MAX, false, out_error);
    size_t length;

    if (code == 0)
        code = store_text_check(event->key, "key of an event", STORE_KEY_MAX, true, out_error);
    if (code < 0)
        return code;
    if (event->body == NULL)
        return error_set(out_error, FLY_EUSAGE, "an event '%s' has no body; give '{}'", event->kind);
    length = strlen(event->body);
    if (length > STORE_BODY_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "the body of an event '%s' has %zu bytes; at most %d are allowed", event->kind,
                         length, STORE_BODY_MAX);
    if (!store_text_is_utf8(event->body, length))
        return error_set(out_error, FLY_EUSAGE, "the body of an event '%s' is not UTF-8; encode it",
                         event->kind);
    if (event->time_us < 0)
        return error_set(out_error, FLY_EUSAGE, "the date of an event '%s' lies before 1970", event->kind);
    if (event->trial > INT64_MAX)
        return error_set(out_error, FLY_ELIMIT, "the trial of an event '%s' is beyond 2^63-1", event->kind);
    return 0;
}
