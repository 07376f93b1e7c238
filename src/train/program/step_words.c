/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_words.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"

enum { EPOCH_DIGITS_MAX = 18, SENDER_NUMBER_MAX = 1 << 30 };

static bool is_text(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (((unsigned char)line[i] < ' ' && line[i] != '\t' && line[i] != '\r') || line[i] == 0x7f)
            return false;
    }
    return true;
}

/* Reads " metric 0.61" after an epoch's number; `rest` ends with NUL. */
static bool read_metric(const char *rest, double *out_metric)
{
    static const char word[] = " metric ";

    if (strncmp(rest, word, sizeof word - 1) != 0)
        return false;
    rest += sizeof word - 1;
    if (strcmp(rest, "nan") == 0) {
        *out_metric = NAN;
        return true;
    }
    return number_parse_double(rest, out_metric);
}

/* The event of what follows "epoch". */
static enum step_event epoch_event(const char *rest, struct step_report *out_report)
{
    size_t digits = strspn(rest[0] == ' ' ? rest + 1 : rest, "0123456789");
    struct step_report report = {.metric = NAN};
    uint64_t number = 0;
    char text[EPOCH_DIGITS_MAX + 1] = "";

    if (strcmp(rest, " end") == 0)
        return STEP_EPOCH_END;
    if (rest[0] != ' ' || digits == 0 || digits > EPOCH_DIGITS_MAX)
        return STEP_MALFORMED;
    if (rest[1 + digits] == '\0')
        return STEP_EPOCH_BEGIN;
    memcpy(text, rest + 1, digits);
    if (!number_parse_u64(text, UINT32_MAX, &number) || !read_metric(rest + 1 + digits, &report.metric))
        return STEP_MALFORMED;
    report.epoch = (uint32_t)number;
    *out_report = report;
    return STEP_REPORT;
}

/*
 * Reads "WORD NUMBER" and the blank after it at `text`; returns what follows, or `text` when that is not
 * there.
 */
static const char *read_part(const char *text, const char *word, int *out_number)
{
    size_t length = strlen(word), digits;
    char number_text[EPOCH_DIGITS_MAX + 1] = "";
    uint64_t number;

    if (strncmp(text, word, length) != 0)
        return text;
    digits = strspn(text + length, "0123456789");
    if (digits > EPOCH_DIGITS_MAX || (text[length + digits] != ' ' && text[length + digits] != '\0'))
        return text;
    memcpy(number_text, text + length, digits);
    if (!number_parse_u64(number_text, SENDER_NUMBER_MAX, &number))
        return text;
    *out_number = (int)number;
    return text + length + digits + (text[length + digits] == ' ' ? 1 : 0);
}

/* Reads the word of the hook, which always names its process. */
static const char *read_hook(const char *text, struct step_sender *sender)
{
    static const char word[] = "hook";
    size_t length = sizeof word - 1;

    if (sender->pid < 0 || strncmp(text, word, length) != 0 || (text[length] != ' ' && text[length] != '\0'))
        return text;
    sender->hook = true;
    return text + length + (text[length] == ' ' ? 1 : 0);
}

const char *step_line_sender(const char *line, struct step_sender *out_sender)
{
    *out_sender = (struct step_sender){.rank = -1, .pid = -1};
    line = read_part(line, "rank ", &out_sender->rank);
    line = read_part(line, "pid ", &out_sender->pid);
    return read_hook(line, out_sender);
}

static bool is_of_hook(const char *said)
{
    static const char *const words[] = {"saw ", "counts ", "failed "};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(said, words[i], strlen(words[i])) == 0)
            return true;
    }
    return false;
}

enum step_event step_line_event(const char *line, size_t length, struct step_sender *out_sender,
                                struct step_report *out_report)
{
    static const char epoch[] = "epoch";
    char text[STEP_LINE_MAX + 1] = "";
    const char *said;

    *out_sender = (struct step_sender){.rank = -1, .pid = -1};
    if (length > STEP_LINE_MAX || !is_text(line, length))
        return STEP_MALFORMED;
    memcpy(text, line, length);
    text[length] = '\0';
    said = step_line_sender(text, out_sender);
    if (out_sender->hook && is_of_hook(said))
        return STEP_HOOK;
    if (strcmp(said, "session") == 0)
        return STEP_SESSION;
    if (strcmp(said, "out of memory") == 0)
        return STEP_OUT_OF_MEMORY;
    if (strncmp(said, epoch, sizeof epoch - 1) != 0)
        return STEP_BEGIN;
    return epoch_event(said + sizeof epoch - 1, out_report);
}
