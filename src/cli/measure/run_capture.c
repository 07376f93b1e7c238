/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/run_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/measure/output_watch.h"

enum { PATH_BYTES_MAX = 64, FREE_EVERY = 1 << 20, PAGE_BYTES = 4096, EVENTS_MAX = 4096 };

int capture_open(struct run_capture *out_capture, int stream, struct fly_error *out_error)
{
    char path[PATH_BYTES_MAX];

    *out_capture = (struct run_capture){
        .stream = stream, .file = -1, .program_end = -1, .notice = -1, .saved = -1, .open = true};
    out_capture->file = memfd_create("flyball-output", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", out_capture->file);
    if (out_capture->file >= 0)
        out_capture->program_end = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (out_capture->program_end < 0) {
        int result = error_set(out_error, FLY_ELIMIT, "no file for a program's output: %s", strerror(errno));

        capture_close(out_capture);
        return result;
    }
    out_capture->notice = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (out_capture->notice >= 0 && inotify_add_watch(out_capture->notice, path, IN_MODIFY) < 0) {
        close(out_capture->notice);
        out_capture->notice = -1;
    }
    return 0;
}

void capture_put(struct run_capture *capture)
{
    if (!capture->open)
        return;
    capture->saved = fcntl(capture->stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (capture->saved >= 0)
        dup2(capture->program_end, capture->stream);
}

void capture_take_back(struct run_capture *capture)
{
    if (!capture->open)
        return;
    if (capture->saved >= 0) {
        dup2(capture->saved, capture->stream);
        close(capture->saved);
    }
    close(capture->program_end);
    capture->saved = capture->program_end = -1;
}

int capture_fd(const struct run_capture *capture)
{
    return capture->notice;
}

static void end_line(struct run_capture *capture, capture_look *look, void *state)
{
    if (capture->length > 0 && capture->line[capture->length - 1] == '\r')
        capture->length--;
    capture->line[capture->length] = '\0';
    look(state, capture->line);
    capture->length = 0;
}

/* Progress bars end their lines with only a carriage return. */
static void look_at(struct run_capture *capture, const char *bytes, size_t count, capture_look *look,
                    void *state)
{
    for (size_t i = 0; i < count; i++) {
        if (capture->returned && bytes[i] != '\n' && bytes[i] != '\r')
            capture->length = 0;
        capture->returned = capture->stream < 0 && bytes[i] == '\r';
        if (capture->returned)
            continue;
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            if (capture->length > 0)
                end_line(capture, look, state);
        } else if (capture->length < CAPTURE_LINE_MAX && bytes[i] != '\0') {
            capture->line[capture->length++] = bytes[i];
        }
    }
}

/* Gives back the memory of what nobody needs any more. */
static void free_written(struct run_capture *capture)
{
    if (capture->written_to - capture->freed_to < FREE_EVERY)
        return;
    (void)fallocate(capture->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, capture->freed_to,
                    capture->written_to - capture->freed_to);
    capture->freed_to = capture->written_to;
}

/*
 * Passes on bytes that were looked at. Returns whether any could be. Without `patience`, bytes
 * for which the reader has no room wait: a pipe that is reported as ready takes a page, so that
 * nothing blocks.
 */
static bool pass_on(struct run_capture *capture, bool patience)
{
    struct pollfd ready = {.fd = capture->stream, .events = POLLOUT};
    char bytes[PAGE_BYTES];
    off_t left = capture->read_to - capture->written_to;
    ssize_t count;

    if (left <= 0 || (!patience && poll(&ready, 1, 0) <= 0))
        return false;
    count = pread(capture->file, bytes, left < (off_t)sizeof bytes ? (size_t)left : sizeof bytes,
                  capture->written_to);
    if (count <= 0)
        return false;
    (void)output_pass_on(capture->stream, bytes, (size_t)count);
    capture->written_to += count;
    free_written(capture);
    return true;
}

/* Looks at what has come. Returns whether there was any. */
static bool look_on(struct run_capture *capture, capture_look *look, void *state)
{
    static char bytes[CAPTURE_BYTES_MAX];
    ssize_t count = pread(capture->file, bytes, sizeof bytes, capture->read_to);

    if (count <= 0)
        return false;
    capture->read_to += count;
    if (capture->stream < 0) {
        capture->written_to = capture->read_to;
        free_written(capture);
    }
    look_at(capture, bytes, (size_t)count, look, state);
    return true;
}

bool capture_pass(struct run_capture *capture, capture_look *look, void *state)
{
    char events[EVENTS_MAX];
    bool any;

    if (!capture->open)
        return false;
    while (capture->notice >= 0 && read(capture->notice, events, sizeof events) > 0)
        ;
    any = look_on(capture, look, state);
    for (int i = 0; i < CAPTURE_BYTES_MAX / PAGE_BYTES && pass_on(capture, false); i++)
        any = true;
    return any;
}

bool capture_waits(const struct run_capture *capture)
{
    return capture->open && capture->written_to < capture->read_to;
}

void capture_end(struct run_capture *capture, capture_look *look, void *state)
{
    while (capture_pass(capture, look, state))
        ;
    if (capture->open && capture->length > 0 && !capture->returned)
        end_line(capture, look, state);
}

void capture_flush(struct run_capture *capture)
{
    while (capture->open && pass_on(capture, true))
        ;
}

void capture_close(struct run_capture *capture)
{
    const int descriptors[] = {capture->file, capture->program_end, capture->notice};

    if (!capture->open)
        return;
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    }
    capture->open = false;
}
