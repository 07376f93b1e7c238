/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the audit log. A line is written whole or not at all. */
#include "node/lease/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file/append_file.h"
#include "base/file/user_directory.h"
#include "base/harmless.h"
#include "base/number.h"
#include "base/text/iso_time.h"
#include "shapes/shape_rows.h"

enum {
    LINE_BYTES_MAX = 8192,
    FILE_MODE = 0640,
    DIRECTORY_MODE = 0755,
    PATH_BYTES_MAX = 512,
    NS_PER_S = 1000000000
};

struct audit {
    char path[PATH_BYTES_MAX];
    bool required;
    pthread_mutex_t lock;
    int fd;
    uint64_t lost, missing; /* lines: ever, and since one was written */
    int cause;              /* why the last one was lost, an errno */
    bool failed;            /* one was lost since the last look */
};

/* A line as it is written. */
struct audit_line {
    const char *schema, *date, *what, *outcome, *why;
    bool has_uid;
    uint32_t uid, pid;
    const char *program, *token, *lease, *gpu, *quantity;
    json_t *from, *to; /* NULL: unknown */
    uint64_t count;
    bool has_count;
};

#define AUDIT_IS_TEXT .kind = SHAPE_TEXT, .longest = AUDIT_WHY_MAX, .free_text = true, .any_bytes = true

static const struct shape_field line_rows[] = {
    {SHAPE_AT(audit_line, schema), AUDIT_IS_TEXT},
    {SHAPE_AT(audit_line, date), AUDIT_IS_TEXT},
    {SHAPE_AT(audit_line, what), AUDIT_IS_TEXT},
    {SHAPE_AT(audit_line, outcome), AUDIT_IS_TEXT},
    {SHAPE_AT(audit_line, why), AUDIT_IS_TEXT, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, uid), SHAPE_IS_U32(0, UINT32_MAX), SHAPE_IF(audit_line, has_uid)},
    {SHAPE_AT(audit_line, pid), SHAPE_IS_U32(0, INT32_MAX), .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, program), AUDIT_IS_TEXT, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, token), AUDIT_IS_TEXT, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, lease), AUDIT_IS_TEXT, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, gpu), AUDIT_IS_TEXT, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, quantity), AUDIT_IS_TEXT, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, from), .kind = SHAPE_JSON, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, to), .kind = SHAPE_JSON, .need = SHAPE_SPARING},
    {SHAPE_AT(audit_line, count), SHAPE_IS_U64(1, INT64_MAX), SHAPE_IF(audit_line, has_count)},
};
static const struct shape line_shape = {SHAPE_OF(audit_line, line_rows)};

static const char *const what_words[] = {
#define AUDIT_WORD(name, word) word,
    AUDIT_MAP(AUDIT_WORD)
#undef AUDIT_WORD
};
_Static_assert(sizeof what_words / sizeof what_words[0] == AUDIT_COUNT, "each event has a word");

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "the audit log '%s' cannot be opened: %s; look at its directory's owner and permissions",
                     path, strerror(cause));
}

/*
 * For reading, too, since the end of a file may be torn; a file that may not be read is written all the same.
 * What is missing of its directory is made.
 */
static int open_file(const char *path)
{
    static const int how = O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, O_RDWR | how, FILE_MODE);

    if (fd < 0 && errno == ENOENT && user_directory_make_above(path, DIRECTORY_MODE) == 0)
        fd = open(path, O_RDWR | how, FILE_MODE);
    if (fd < 0)
        fd = open(path, O_WRONLY | how, FILE_MODE);
    return fd;
}

int audit_open(const char *path, bool required, struct audit **out_audit, struct fly_error *out_error)
{
    struct audit *audit;

    if (path == NULL) {
        *out_audit = NULL;
        return 0;
    }
    if (strlen(path) >= PATH_BYTES_MAX)
        return failed(path, ENAMETOOLONG, out_error);
    audit = calloc(1, sizeof *audit);
    if (audit == NULL)
        return error_no_memory(out_error);
    snprintf(audit->path, sizeof audit->path, "%s", path);
    audit->required = required;
    audit->fd = open_file(path);
    if (audit->fd < 0) {
        int code = failed(path, errno, out_error);

        free(audit);
        return code;
    }
    pthread_mutex_init(&audit->lock, NULL);
    *out_audit = audit;
    return 0;
}

void audit_close(struct audit *audit)
{
    if (audit == NULL)
        return;
    close(audit->fd);
    pthread_mutex_destroy(&audit->lock);
    free(audit);
}

int audit_reopen(struct audit *audit, struct fly_error *out_error)
{
    int fd;

    if (audit == NULL)
        return 0;
    fd = open_file(audit->path);
    if (fd < 0)
        return failed(audit->path, errno, out_error);
    pthread_mutex_lock(&audit->lock);
    close(audit->fd);
    audit->fd = fd;
    pthread_mutex_unlock(&audit->lock);
    return 0;
}

/* A value as JSON: a number as one, other text as text; NULL for none. */
static json_t *value_of(const char *text)
{
    uint64_t number;

    if (text == NULL || text[0] == '\0')
        return NULL;
    return number_parse_u64(text, INT64_MAX, &number) ? json_integer((json_int_t)number) : json_string(text);
}

static const char *outcome_of(bool asked, int code)
{
    if (asked)
        return "asked";
    if (code == 0)
        return "done";
    if (code == FLY_EUNSURE)
        return "unsure";
    return code == FLY_EPERM || code == FLY_ECONFLICT || code == FLY_ELIMIT || code == FLY_EUSAGE ? "refused"
                                                                                                  : "failed";
}

static void put_line(const struct audit_event *event, struct buffer *text)
{
    char date[ISO_TIME_TEXT_MAX], why[AUDIT_WHY_MAX] = "";
    const struct lease_holder *holder = event->holder;
    struct audit_line line = {.schema = "flyball-audit/1",
                              .what = what_words[event->what],
                              .outcome = outcome_of(event->asked, event->code),
                              .why = why,
                              .lease = event->lease,
                              .gpu = event->gpu,
                              .quantity = event->quantity,
                              .from = value_of(event->from),
                              .to = value_of(event->to),
                              .count = event->count,
                              .has_count = event->count > 0};
    struct buffer json;

    line.date = iso_time_format(clock_real.date(clock_real.state).ns / NS_PER_S, date);
    if (event->why != NULL)
        snprintf(why, sizeof why, "%.*s", AUDIT_WHY_MAX - 1, event->why);
    if (holder != NULL) {
        line.has_uid = holder->uid != LEASE_NOBODY;
        line.uid = holder->uid;
        line.pid = (uint32_t)holder->pid;
        line.program = holder->program;
        line.token = holder->token;
    }
    buffer_init(&json, LINE_BYTES_MAX);
    if (shape_put(&line_shape, &line, SHAPE_SPARE, &json, NULL) == 0) {
        harmless_put_json(text, json.data, json.length);
        buffer_puts(text, "\n");
    }
    buffer_deinit(&json);
    json_decref(line.from);
    json_decref(line.to);
}

/* Makes a file that somebody has removed: what is written to the old one would be lost. Returns 0 or an
 * errno. */
static int make_again(struct audit *audit)
{
    struct stat status;
    int fd;

    if (fstat(audit->fd, &status) != 0 || status.st_nlink > 0)
        return 0;
    fd = open_file(audit->path);
    if (fd < 0)
        return errno;
    close(audit->fd);
    audit->fd = fd;
    return 0;
}

/* Appends what lines there are, or none. Returns 0 or an errno. Under the lock. */
static int append(struct audit *audit, const struct buffer *text)
{
    int cause = make_again(audit);

    if (cause == 0)
        cause = append_file_lines(audit->fd, text->data, text->length);
    if (cause == 0 && audit->required && fdatasync(audit->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        cause = errno;
    return cause;
}

static void put_missing(const struct audit *audit, struct buffer *text)
{
    const struct audit_event event = {
        .what = AUDIT_MISSING, .code = FLY_EWRITE, .why = strerror(audit->cause), .count = audit->missing};

    if (audit->missing > 0)
        put_line(&event, text);
}

static int say_lost(const struct audit *audit, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_EWRITE,
        "lines of the audit log '%.300s' could not be written: %s; make room there, or look at its "
        "owner and permissions",
        audit->path, strerror(audit->cause));
}

int audit_write(struct audit *audit, const struct audit_event *event, struct fly_error *out_error)
{
    struct buffer text;
    size_t before;
    int code = 0, cause = EINVAL;

    if (audit == NULL)
        return 0;
    buffer_init(&text, 2 * LINE_BYTES_MAX);
    pthread_mutex_lock(&audit->lock);
    put_missing(audit, &text);
    before = text.length;
    put_line(event, &text);
    if (text.length > before && text.error == 0)
        cause = append(audit, &text);
    if (cause == 0) {
        audit->missing = 0;
    } else {
        audit->lost++;
        audit->missing++;
        audit->cause = cause;
        audit->failed = true;
        code = say_lost(audit, out_error);
    }
    pthread_mutex_unlock(&audit->lock);
    buffer_deinit(&text);
    return code;
}

bool audit_is_required(const struct audit *audit)
{
    return audit != NULL && audit->required;
}

int audit_look(struct audit *audit, struct fly_error *out_error)
{
    struct buffer text;
    int code = 0;

    buffer_init(&text, LINE_BYTES_MAX);
    pthread_mutex_lock(&audit->lock);
    put_missing(audit, &text);
    if (text.length > 0 && text.error == 0 && append(audit, &text) == 0)
        audit->missing = 0;
    if (audit->missing > 0 || audit->failed)
        code = say_lost(audit, out_error);
    audit->failed = false;
    pthread_mutex_unlock(&audit->lock);
    buffer_deinit(&text);
    return code;
}

uint64_t audit_lost(struct audit *audit)
{
    uint64_t lost = 0;

    if (audit == NULL)
        return 0;
    pthread_mutex_lock(&audit->lock);
    lost = audit->lost;
    pthread_mutex_unlock(&audit->lock);
    return lost;
}
