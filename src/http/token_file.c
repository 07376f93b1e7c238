/* SPDX-License-Identifier: Apache-2.0 */
#include "http/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/append_file.h"

enum { CHUNK_BYTES = 4096, SETTLED_S = 2 };

static int failed(const char *doing, const char *path, struct fly_error *out_error)
{
    int code = errno == ENOENT ? FLY_ENOTFOUND : errno == EACCES || errno == EPERM ? FLY_EPERM : FLY_EREAD;

    return error_set(out_error, code,
                     "%s the file of tokens '%s' failed: %s; 'flyball token NAME --tokens FILE' makes one",
                     doing, path, strerror(errno));
}

static int check_owner(const struct stat *status, const char *path, struct fly_error *out_error)
{
    if (!S_ISREG(status->st_mode))
        return error_set(out_error, FLY_EUSAGE, "'%s' is no file; tokens stand in one", path);
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return error_set(out_error, FLY_EPERM,
                         "the file of tokens '%s' belongs to another user, who may let in anybody; chown it",
                         path);
    if ((status->st_mode & (S_IWGRP | S_IRWXO)) != 0)
        return error_set(out_error, FLY_EPERM,
                         "the file of tokens '%s' may be read or written by others; chmod it to 0600, or to "
                         "0640 for a group",
                         path);
    return 0;
}

/* Reads an open file to its end. */
static int read_content(int fd, const char *path, struct buffer *text, struct fly_error *out_error)
{
    char chunk[CHUNK_BYTES];
    ssize_t count;

    while ((count = read(fd, chunk, sizeof chunk)) > 0)
        buffer_append(text, chunk, (size_t)count);
    if (count < 0)
        return failed("reading", path, out_error);
    if (text->error < 0 || strlen(text->data) != text->length)
        return error_set(out_error, FLY_ELIMIT, "the file of tokens '%s' is no text of at most %d bytes",
                         path, TOKEN_FILE_MAX);
    return 0;
}

static int read_list(int fd, const char *path, struct token_list *out_list, struct stat *out_status,
                     struct fly_error *out_error)
{
    struct buffer text;
    int code = fstat(fd, out_status) == 0 ? 0 : failed("reading", path, out_error);

    buffer_init(&text, TOKEN_FILE_MAX);
    if (code == 0)
        code = check_owner(out_status, path, out_error);
    if (code == 0)
        code = read_content(fd, path, &text, out_error);
    if (code == 0)
        code = token_list_parse(text.data, path, out_list, out_error);
    buffer_deinit(&text);
    return code;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/*
 * Returns whether the file may have changed since it was read. File times move in steps, so two
 * writes within a step, just now, look like one.
 */
static bool may_have_changed(const struct token_file *file)
{
    struct stat now;

    return !file->read || file->why.code != 0 || stat(file->path, &now) != 0 || !is_same(&now, &file->seen) ||
           time(NULL) - now.st_ctim.tv_sec < SETTLED_S;
}

static void look(struct token_file *file)
{
    struct token_list list;
    int code, fd;

    if (!may_have_changed(file))
        return;
    fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    token_list_deinit(&file->list);
    file->read = true;
    file->why.code = 0;
    code = fd < 0 ? failed("reading", file->path, &file->why)
                  : read_list(fd, file->path, &list, &file->seen, &file->why);
    if (code == 0)
        file->list = list;
    if (fd >= 0)
        close(fd);
}

int token_file_open(struct token_file *file, const char *path, struct fly_error *out_error)
{
    *file = (struct token_file){.path = path};
    look(file);
    if (file->why.code != 0) {
        if (out_error != NULL)
            *out_error = file->why;
        return file->why.code;
    }
    pthread_mutex_init(&file->lock, NULL);
    return 0;
}

void token_file_close(struct token_file *file)
{
    token_list_deinit(&file->list);
    pthread_mutex_destroy(&file->lock);
}

int token_file_ask(struct token_file *file, const char *secret, int64_t now_s, struct token *out_token,
                   struct fly_error *out_error)
{
    const struct token *found;
    char date[TOKEN_DATE_MAX];
    int code = 0;

    pthread_mutex_lock(&file->lock);
    look(file);
    found = token_list_find(&file->list, secret);
    if (file->why.code != 0) {
        /* Only the operator is told where the file lies and what is wrong with it. */
        code = error_set(out_error, FLY_ECONFIG, "the service's file of tokens cannot be read now");
    } else if (found == NULL) {
        code = error_set(out_error, FLY_EPERM, "the token is not one of this service's");
    } else if (found->expires_s <= now_s) {
        code = error_set(out_error, FLY_EPERM, "the token '%s' expired at %s; ask for another", found->name,
                         token_date(found->expires_s, date));
    } else {
        *out_token = *found;
    }
    pthread_mutex_unlock(&file->lock);
    return code;
}

int token_file_check(struct token_file *file, bool anew, struct fly_error *out_error)
{
    int code;

    pthread_mutex_lock(&file->lock);
    file->read = file->read && !anew;
    look(file);
    code = file->why.code;
    if (code < 0 && out_error != NULL)
        *out_error = file->why;
    pthread_mutex_unlock(&file->lock);
    return code;
}

static int append(int fd, const char *path, const struct token *token, struct fly_error *out_error)
{
    struct buffer line;
    int code = 0, cause;

    buffer_init(&line, CHUNK_BYTES);
    token_line_put(token, &line);
    if (line.error < 0) {
        code = error_no_memory(out_error);
    } else {
        cause = append_file_lines(fd, line.data, line.length);
        if (cause == 0 && fsync(fd) != 0)
            cause = errno;
        if (cause != 0)
            code = error_set(out_error, FLY_EWRITE, "writing the file of tokens '%s' failed: %s", path,
                             strerror(cause));
    }
    buffer_deinit(&line);
    return code;
}

int token_file_add(const char *path, const struct token *token, struct fly_error *out_error)
{
    struct token_list list;
    struct stat status;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    int code;

    if (fd < 0)
        return failed("opening", path, out_error);
    code = flock(fd, LOCK_EX) == 0 ? 0 : failed("locking", path, out_error);
    if (code == 0)
        code = read_list(fd, path, &list, &status, out_error);
    if (code == 0) {
        for (size_t i = 0; i < list.count && code == 0; i++) {
            if (strcmp(list.tokens[i].name, token->name) == 0)
                code = error_set(out_error, FLY_ECONFLICT,
                                 "'%s' has a token named '%s'; remove its line first, or choose another name",
                                 path, token->name);
        }
        if (code == 0)
            code = append(fd, path, token, out_error);
        token_list_deinit(&list);
    }
    close(fd);
    return code;
}
