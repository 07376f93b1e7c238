/* SPDX-License-Identifier: Apache-2.0 */
/* Splits commands into words as a shell does, and fills values in. */
#include "knob/way/command_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

enum { NAME_MAX_BYTES = 32, WORD_BYTES_MAX = 4096, MW_IN_W = 1000 };

static const char blanks[] = " \t\n";

/* Where one word is read and written; the writing place is never ahead of the reading place. */
struct cursor {
    char *from, *to;
};

/* Within double quotes a backslash escapes only these. */
static bool is_kept(char c)
{
    return c != '\0' && strchr("$`\"\\", c) != NULL;
}

/* Takes a quoted part, at its opening quote; false without a closing one. */
static bool take_quoted(struct cursor *cursor)
{
    char quote = *cursor->from++;

    while (*cursor->from != quote) {
        if (*cursor->from == '\0')
            return false;
        if (quote == '"' && *cursor->from == '\\' && cursor->from[1] == '\n') {
            cursor->from += 2;
            continue;
        }
        if (quote == '"' && *cursor->from == '\\' && is_kept(cursor->from[1]))
            cursor->from++;
        *cursor->to++ = *cursor->from++;
    }
    cursor->from++;
    return true;
}

/* Takes a word up to the next blank and moves past that; false with the cause. */
static bool take_word(struct cursor *cursor, const char **out_cause)
{
    while (*cursor->from != '\0' && strchr(blanks, *cursor->from) == NULL) {
        if (*cursor->from == '\'' || *cursor->from == '"') {
            if (!take_quoted(cursor)) {
                *out_cause = "a quote has no end";
                return false;
            }
        } else if (*cursor->from == '\\') {
            if (cursor->from[1] == '\0') {
                *out_cause = "nothing stands behind its last backslash";
                return false;
            }
            if (cursor->from[1] != '\n')
                *cursor->to++ = cursor->from[1];
            cursor->from += 2;
        } else {
            *cursor->to++ = *cursor->from++;
        }
    }
    if (*cursor->from != '\0')
        cursor->from++;
    *cursor->to++ = '\0';
    return true;
}

bool command_words_split(char *line, char *pool[COMMAND_POOL_MAX], size_t *count,
                         char cause[COMMAND_CAUSE_MAX])
{
    struct cursor cursor = {line, line};
    size_t begin = *count;
    const char *why = NULL;

    for (;;) {
        cursor.from += strspn(cursor.from, blanks);
        if (*cursor.from == '#') /* a comment, as in a shell */
            cursor.from += strcspn(cursor.from, "\n");
        else if (*cursor.from == '\0')
            break;
        else if (*count == COMMAND_POOL_MAX || *count - begin == COMMAND_WORDS_MAX)
            why = "there are too many words";
        else {
            pool[(*count)++] = cursor.to;
            take_word(&cursor, &why);
        }
        if (why != NULL)
            break;
    }
    if (why == NULL && (*count == begin || pool[begin][0] == '\0'))
        why = "it names no program";
    if (why != NULL)
        snprintf(cause, COMMAND_CAUSE_MAX, "%s", why);
    return why == NULL;
}

static int64_t number_gpu(const struct operation_call *call)
{
    return call->gpu->index;
}

static const char *text_uuid(const struct operation_call *call)
{
    return call->gpu->uuid;
}

static const char *text_pci(const struct operation_call *call)
{
    return call->gpu->pci;
}

static int64_t number_limit(const struct operation_call *call)
{
    return call->limit_mw;
}

static int64_t number_watts(const struct operation_call *call)
{
    return call->limit_mw / MW_IN_W;
}

static int64_t number_enabled(const struct operation_call *call)
{
    return call->enabled;
}

static int64_t number_min_clock(const struct operation_call *call)
{
    return call->min_clock_mhz;
}

static int64_t number_max_clock(const struct operation_call *call)
{
    return call->max_clock_mhz;
}

/* What may stand in braces: a text or a number. */
static const struct placeholder {
    const char *name;
    enum parameter of; /* PARAMETER_NONE: of all operations */
    int64_t (*number)(const struct operation_call *call);
    const char *(*text)(const struct operation_call *call);
} placeholders[] = {
    {"gpu_id", PARAMETER_NONE, number_gpu, NULL},
    {"gpu_uuid", PARAMETER_NONE, NULL, text_uuid},
    {"gpu_pci", PARAMETER_NONE, NULL, text_pci},
    {"power_limit_mw", PARAMETER_LIMIT, number_limit, NULL},
    {"power_limit_w", PARAMETER_LIMIT, number_watts, NULL},
    {"enabled", PARAMETER_ENABLED, number_enabled, NULL},
    {"min_clock_mhz", PARAMETER_CLOCKS, number_min_clock, NULL},
    {"max_clock_mhz", PARAMETER_CLOCKS, number_max_clock, NULL},
};

/* Returns the placeholder whose opening brace is there, and the place after it; NULL if there is none. */
static const struct placeholder *find(const char *at, const char **out_behind)
{
    const char *end = at + strcspn(at + 1, "{}") + 1;

    for (size_t i = 0; *end == '}' && i < sizeof placeholders / sizeof placeholders[0]; i++) {
        size_t length = strlen(placeholders[i].name);

        if ((size_t)(end - at - 1) == length && strncmp(placeholders[i].name, at + 1, length) == 0) {
            *out_behind = end + 1;
            return &placeholders[i];
        }
    }
    return NULL;
}

bool command_words_check(char *const *words, size_t count, enum operation operation,
                         char cause[COMMAND_CAUSE_MAX])
{
    for (size_t i = 0; i < count; i++) {
        for (const char *at = words[i] + strcspn(words[i], "{}"); *at != '\0'; at += strcspn(at, "{}")) {
            const struct placeholder *found = *at == '{' ? find(at, &at) : NULL;

            if (found == NULL ||
                (found->of != PARAMETER_NONE && found->of != operation_facts[operation].parameter)) {
                snprintf(cause, COMMAND_CAUSE_MAX, "'%.80s' holds braces around no value that it has",
                         words[i]);
                return false;
            }
        }
    }
    return true;
}

char *command_word_fill(const char *word, const struct operation_call *call)
{
    struct buffer filled;
    char *text;

    buffer_init(&filled, WORD_BYTES_MAX);
    while (*word != '\0') {
        size_t plain = strcspn(word, "{");
        const struct placeholder *found;

        buffer_append(&filled, word, plain);
        word += plain;
        found = *word != '\0' ? find(word, &word) : NULL;
        if (found != NULL && found->text != NULL)
            buffer_puts(&filled, found->text(call));
        else if (found != NULL)
            buffer_printf(&filled, "%" PRId64, found->number(call));
        else if (*word != '\0')
            buffer_append(&filled, word++, 1);
    }
    text = filled.error == 0 ? strdup(filled.data) : NULL;
    buffer_deinit(&filled);
    return text;
}
