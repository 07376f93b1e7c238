/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/harmless.h"
#include "shapes/shape.h"
#include "shapes/shape_rows.h"

enum { MESSAGE_MAX = 2048, LINE_BYTES_MAX = 16384, DATE_MAX = 32 };

static atomic_bool as_json, with_requests;

static const char *const levels[] = {"info", "warning", "error"};
static const char *const fronts[] = {"flyballd: ", "flyballd: warning: ", "flyballd: error: "};
_Static_assert(sizeof levels / sizeof levels[0] == SAY_COUNT, "one word for every level");
_Static_assert(sizeof fronts / sizeof fronts[0] == SAY_COUNT, "one front for every level");

struct log_line {
    const char *date, *level, *message;
};

static const struct shape_field line_rows[] = {
    {SHAPE_AT(log_line, date), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(log_line, level), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(log_line, message), SHAPE_IS_TEXT(UINT32_MAX)},
};
static const struct shape shape_log_line = {SHAPE_OF(log_line, line_rows)};

void log_as_json(bool json)
{
    atomic_store(&as_json, json);
}

void log_with_requests(bool requests)
{
    atomic_store(&with_requests, requests);
}

void log_request(const char *line)
{
    if (atomic_load(&with_requests))
        log_say(SAY_INFO, "%s", line);
}

static void put_json(enum log_level level, const char *message, struct buffer *line)
{
    char date[DATE_MAX];
    time_t now = time(NULL);
    struct tm parts;
    char *text = NULL;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    if (shape_write_text(&shape_log_line, &(struct log_line){date, levels[level], message}, &text, NULL) == 0)
        buffer_printf(line, "%s\n", text);
    free(text);
}

void log_say(enum log_level level, const char *format, ...)
{
    char message[MESSAGE_MAX];
    struct buffer line;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    harmless_make(message, strlen(message), false);
    buffer_init(&line, LINE_BYTES_MAX);
    if (atomic_load(&as_json))
        put_json(level, message, &line);
    else
        buffer_printf(&line, "%s%s\n", fronts[level], message);
    if (line.length > 0 && write(STDERR_FILENO, line.data, line.length) < 0)
        atomic_thread_fence(memory_order_relaxed); /* nobody reads it: nothing can be said about that */
    buffer_deinit(&line);
}
