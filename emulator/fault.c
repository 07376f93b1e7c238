/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/fault.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"
#include "emulator/api.h"

enum { WORD_MAX = FAULT_FUNCTION_MAX };

/* A line that is read word by word. */
struct line {
    const char *name; /* of the script */
    unsigned number;
    const char *rest;
    char word[WORD_MAX]; /* the current one, "" after the last */
    struct fly_error *error;
};

static int complain(const struct line *line, const char *expected)
{
    if (line->word[0] == '\0')
        return error_set(line->error, FLY_EDATA, "%s:%u: the line ends where %s is expected; complete it",
                         line->name, line->number, expected);
    return error_set(line->error, FLY_EDATA, "%s:%u: '%s': expected %s", line->name, line->number, line->word,
                     expected);
}

/* Words that are too long are cut, and are then unknown. */
static void next_word(struct line *line)
{
    size_t length;

    line->rest += strspn(line->rest, " \t\r");
    length = strcspn(line->rest, " \t\r#\n");
    snprintf(line->word, sizeof line->word, "%.*s", (int)(length < WORD_MAX ? length : WORD_MAX - 1),
             line->rest);
    line->rest += length;
}

static bool is(const struct line *line, const char *word)
{
    return strcmp(line->word, word) == 0;
}

static int read_number(struct line *line, uint64_t lowest, uint64_t highest, const char *expected,
                       uint64_t *out)
{
    uint64_t number;

    next_word(line);
    if (!number_parse_u64(line->word, highest, &number) || number < lowest)
        return complain(line, expected);
    *out = number;
    return 0;
}

/* "200ms", "1.5s", "50us". */
static int read_duration(struct line *line, double *out_s)
{
    static const struct {
        const char *name;
        double s;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
    static const char expected[] = "a time such as 200ms, 1.5s or 50us, at most a day";

    next_word(line);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t length = strlen(line->word), unit = strlen(units[i].name);
        char digits[WORD_MAX];
        double value;

        if (length <= unit || strcmp(line->word + length - unit, units[i].name) != 0)
            continue;
        snprintf(digits, sizeof digits, "%.*s", (int)(length - unit), line->word);
        if (!number_parse_double(digits, &value) || value < 0.0 || value * units[i].s > 86400.0)
            continue;
        *out_s = value * units[i].s;
        return 0;
    }
    return complain(line, expected);
}

static int read_code(struct line *line, int *out_code)
{
#define RETURN_NAME(name, number, meaning) {#name, number},
    static const struct {
        const char *name;
        int number;
    } codes[] = {NVML_RETURNS(RETURN_NAME)};
#undef RETURN_NAME
    uint64_t number;

    next_word(line);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (is(line, codes[i].name)) {
            *out_code = codes[i].number;
            return 0;
        }
    }
    if (!number_parse_u64(line->word, 9999, &number))
        return complain(line, "a code from 0 to 9999 or a name such as GPU_IS_LOST");
    *out_code = (int)number;
    return 0;
}

/* A name that the library does not have would never match a call. */
static int read_function(struct line *line, struct fault *fault)
{
#define FUNCTION_NAME(result, symbol, parameters) #symbol,
    static const char *const functions[] = {NVML_FUNCTIONS(FUNCTION_NAME) NVML_MORE_FUNCTIONS(FUNCTION_NAME)};
#undef FUNCTION_NAME
    const size_t count = sizeof functions / sizeof functions[0];
    char expected[FAULT_FUNCTION_MAX + 16];
    int nearest;

    next_word(line);
    if (word_index(line->word, functions, count) < 0) {
        nearest = line->word[0] != '\0' ? word_nearest(line->word, functions, count) : -1;
        if (nearest < 0)
            return complain(line, "the name of a function, such as nvmlDeviceGetPowerUsage");
        snprintf(expected, sizeof expected, "%s, perhaps", functions[nearest]);
        return complain(line, expected);
    }
    snprintf(fault->function, sizeof fault->function, "%s", line->word);
    return 0;
}

/* Reads the selection and the moment; leaves the action's word as the current one. */
static int read_conditions(struct line *line, struct fault *fault)
{
    static const struct {
        const char *word;
        enum fault_when when;
    } moments[] = {{"nth", FAULT_NTH}, {"from", FAULT_FROM}, {"every", FAULT_EVERY}};
    uint64_t gpu = 0;
    int code = 0;

    if (is(line, "gpu")) {
        code = read_number(line, 0, 127, "the index of a GPU, 0 to 127", &gpu);
        fault->gpu = (int)gpu;
        next_word(line);
    }
    if (code == 0 && is(line, "call")) {
        code = read_function(line, fault);
        next_word(line);
    }
    for (size_t i = 0; code == 0 && i < sizeof moments / sizeof moments[0]; i++) {
        if (!is(line, moments[i].word))
            continue;
        fault->when = moments[i].when;
        code = read_number(line, 1, UINT32_MAX, "a number of calls, 1 or more", &fault->number);
        next_word(line);
        return code;
    }
    if (code == 0 && is(line, "at")) {
        fault->when = FAULT_AT;
        code = read_duration(line, &fault->at_s);
        next_word(line);
    } else if (code == 0 && is(line, "always")) {
        next_word(line);
    }
    return code;
}

/* Reads the numbers of FAULT_RANGE, the second not below the first, or that of FAULT_STEP. */
static int read_watts(struct line *line, struct fault *fault)
{
    size_t count = fault->action == FAULT_RANGE ? 2 : 1;
    uint64_t watts = 1;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = read_number(line, watts, 100000, "a number of watts, the lowest first", &watts);
        fault->watts[i] = (unsigned)watts;
    }
    return code;
}

static int read_action(struct line *line, struct fault *fault)
{
    static const struct {
        const char *word;
        enum fault_action action;
        int code;
    } actions[] = {
        {"return", FAULT_RETURN, -1},
        {"no-permission", FAULT_RETURN, NVML_NO_PERMISSION},
        {"missing", FAULT_RETURN, NVML_FUNCTION_NOT_FOUND},
        {"slow", FAULT_SLOW, 0},
        {"reset-counter", FAULT_RESET_COUNTER, 0},
        {"lost", FAULT_LOST, 0},
        {"hot", FAULT_HOT, 0},
        {"back", FAULT_BACK, 0},
        {"range", FAULT_RANGE, 0},
        {"step", FAULT_STEP, 0},
    };

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (!is(line, actions[i].word))
            continue;
        fault->action = actions[i].action;
        fault->code = actions[i].code;
        if (fault->code < 0)
            return read_code(line, &fault->code);
        if (fault->action == FAULT_RANGE || fault->action == FAULT_STEP)
            return read_watts(line, fault);
        return fault->action == FAULT_SLOW ? read_duration(line, &fault->slow_s) : 0;
    }
    return complain(line,
                    "return, slow, reset-counter, lost, back, range, step, hot, no-permission or missing");
}

static int read_count(struct line *line, struct fault_list *list)
{
    next_word(line);
    if (!is(line, "process") && !is(line, "machine"))
        return complain(line, "process or machine");
    list->per_machine = is(line, "machine");
    return 0;
}

static int read_fault(struct line *line, struct fault_list *list)
{
    struct fault fault = {.gpu = -1};
    bool missing = is(line, "missing");
    int code;

    if (list->count == FAULTS_MAX)
        return error_set(line->error, FLY_ELIMIT, "%s:%u: more than %d faults; split the script", line->name,
                         line->number, FAULTS_MAX);
    code = read_conditions(line, &fault);
    if (code == 0)
        code = read_action(line, &fault);
    if (code == 0 && missing && line->rest[strspn(line->rest, " \t\r")] == 'n')
        code = read_function(line, &fault);
    if (code == 0)
        list->faults[list->count++] = fault;
    return code;
}

static int read_line(struct line *line, struct fault_list *list)
{
    int code;

    next_word(line);
    if (line->word[0] == '\0' && (line->rest[0] == '\0' || line->rest[0] == '\n' || line->rest[0] == '#'))
        return 0;
    code = is(line, "count") ? read_count(line, list) : read_fault(line, list);
    if (code < 0)
        return code;
    next_word(line);
    return line->word[0] != '\0' ? complain(line, "the end of the line") : 0;
}

int faults_parse(const char *text, const char *name, struct fault_list *out_list, struct fly_error *out_error)
{
    struct line line = {.name = name, .rest = text, .error = out_error};
    struct fault_list *list = calloc(1, sizeof *list);
    int code = 0;

    if (list == NULL)
        return error_set(out_error, FLY_ENOMEM, "%s: memory is exhausted", name);
    while (code == 0 && line.rest[0] != '\0') {
        line.number++;
        code = read_line(&line, list);
        line.rest += strcspn(line.rest, "\n");
        line.rest += line.rest[0] == '\n';
    }
    if (code == 0)
        *out_list = *list;
    free(list);
    return code;
}

int faults_read(const char *path, struct fault_list *out_list, struct fly_error *out_error)
{
    FILE *file = fopen(path, "r");
    char *text = malloc(FAULT_TEXT_MAX);
    size_t length = 0;
    int code = 0;

    if (file == NULL)
        code = error_set(out_error, FLY_ENOTFOUND, "fault script '%s': %s; name one that can be read", path,
                         strerror(errno));
    else if (text == NULL)
        code = error_set(out_error, FLY_ENOMEM, "fault script '%s': memory is exhausted", path);
    else
        length = fread(text, 1, FAULT_TEXT_MAX, file);
    if (code == 0 && file != NULL && ferror(file) != 0)
        code = error_set(out_error, FLY_EREAD, "fault script '%s': reading failed; name a file", path);
    else if (code == 0 && length == FAULT_TEXT_MAX)
        code = error_set(out_error, FLY_ELIMIT, "fault script '%s' is longer than %d bytes; shorten it", path,
                         FAULT_TEXT_MAX - 1);
    if (code == 0 && text != NULL) {
        text[length] = '\0';
        code = faults_parse(text, path, out_list, out_error);
    }
    if (file != NULL)
        fclose(file);
    free(text);
    return code;
}

bool fault_selects(const struct fault *fault, const char *function, int gpu)
{
    return (fault->gpu < 0 || fault->gpu == gpu) &&
           (fault->function[0] == '\0' || strcmp(fault->function, function) == 0);
}

bool fault_strikes(const struct fault *fault, uint64_t met, double age_s)
{
    switch (fault->when) {
    case FAULT_ALWAYS:
        return true;
    case FAULT_NTH:
        return met == fault->number;
    case FAULT_FROM:
        return met >= fault->number;
    case FAULT_EVERY:
        return met % fault->number == 0;
    case FAULT_AT:
        return age_s >= fault->at_s;
    }
    return false;
}
