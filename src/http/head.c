/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head.h"

#include <string.h>
#include <strings.h>

enum { LINE_END = 2 /* CR LF */ };

static const char host_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]%~!$&'()*+;=";

static void fail(struct head_check *check, const char *fault)
{
    if (check->fault == NULL)
        check->fault = fault;
}

static bool is_letter_of_names(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || (letter != '\0' && strchr("!#$%&'*+-.^_`|~", letter) != NULL);
}

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_letter_of_names(text[i]))
            return false;
    }
    return length > 0;
}

/* Returns whether no byte is a control character; blanks and tabs are accepted with `blanks`. */
static bool is_clean(const char *text, size_t length, bool blanks)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (byte < ' ' ? byte != '\t' || !blanks : byte == 0x7f || (byte == ' ' && !blanks))
            return false;
    }
    return true;
}

static const char line_fault[] = "the request's head has a line that does not end with CR LF, or a NUL";

/* Checks that the piece begins where the last one ended; `gap` bytes follow the piece. */
static void expect(struct head_check *check, const char *piece, size_t length, size_t gap)
{
    if (!check->in_place)
        return;
    if (piece != check->at)
        fail(check, line_fault);
    else
        check->at += length + gap;
}

static bool is_version(const char *text)
{
    size_t known = strlen("HTTP/1.");

    return strncmp(text, "HTTP/1.", known) == 0 && text[known] >= '0' && text[known] <= '9' &&
           text[known + 1] == '\0';
}

void head_check_begin(struct head_check *check, const char *method, const char *target, size_t target_length,
                      const char *version, bool in_place)
{
    *check = (struct head_check){.in_place = in_place, .begin = method, .at = method};
    if (!is_name(method, strlen(method)))
        fail(check, "the request's method is no word");
    if (!is_clean(target, target_length, false))
        fail(check, "the request's address has a blank or a control character in it");
    if (!is_version(version))
        fail(check, "the request's version is none");
    check->wants_host = strcmp(version, "HTTP/1.0") != 0;
    expect(check, method, strlen(method), 1 + target_length + 1);
    expect(check, version, strlen(version), LINE_END);
}

static void check_value(struct head_check *check, const char *name, const char *value, size_t length)
{
    if (!is_clean(value, length, true))
        fail(check, "a header of the request has a control character in it");
    if (strcasecmp(name, "Host") == 0) {
        check->hosts++;
        if (length == 0 || strspn(value, host_letters) != length)
            fail(check, "the request's Host names no host");
    }
    check->lengths += strcasecmp(name, "Content-Length") == 0;
    check->tokens += strcasecmp(name, "Authorization") == 0;
}

void head_check_line(struct head_check *check, const char *name, size_t name_length, const char *value,
                     size_t value_length)
{
    check->bytes += name_length + value_length + strlen(": ") + LINE_END;
    if (!is_name(name, name_length))
        fail(check, "a header of the request has a name that is none, or a blank before its colon");
    else
        check_value(check, name, value, value_length);
    expect(check, name, name_length, 1);
    if (check->in_place && check->fault == NULL) {
        /* Blanks and tabs may stand between a colon and its value. */
        while (check->at < value && (*check->at == ' ' || *check->at == '\t'))
            check->at++;
        expect(check, value, value_length, LINE_END);
    }
}

const char *head_check_end(struct head_check *check, size_t head_bytes)
{
    static const char last_ends[2 * LINE_END] = {0};

    if (check->hosts > 1)
        fail(check, "the request has two headers Host");
    if (check->hosts == 0 && check->wants_host)
        fail(check, "the request has no header Host");
    /* A proxy in front of the service might use the other one. */
    if (check->lengths > 1)
        fail(check, "the request has two headers Content-Length");
    if (check->tokens > 1)
        fail(check, "the request has two headers Authorization");
    if (check->in_place && check->fault == NULL) {
        expect(check, check->at, 0, LINE_END);
        expect(check, check->begin + head_bytes, 0, 0);
    }
    /* A NUL hides the rest of its line. A line that begins with NUL ends the head, as an empty line does. */
    if (check->in_place && check->fault == NULL &&
        memcmp(check->at - sizeof last_ends, last_ends, sizeof last_ends) != 0)
        fail(check, line_fault);
    return check->fault;
}
