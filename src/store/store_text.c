/* SPDX-License-Identifier: Apache-2.0 */
/* Checks names, kinds, keys, versions and bodies. */
#include "store/store_text.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/text/utf8.h"

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
    if (has_control(text) || !text_is_utf8(text, strlen(text)))
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
    if (!text_is_utf8(event->body, length))
        return error_set(out_error, FLY_EUSAGE, "the body of an event '%s' is not UTF-8; encode it",
                         event->kind);
    if (event->time_us < 0)
        return error_set(out_error, FLY_EUSAGE, "the date of an event '%s' lies before 1970", event->kind);
    if (event->trial > INT64_MAX)
        return error_set(out_error, FLY_ELIMIT, "the trial of an event '%s' is beyond 2^63-1", event->kind);
    return 0;
}

int store_no_job(const char *job, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ENOTFOUND, "no job '%s' in this store; 'flyball job list' names all",
                     job);
}
