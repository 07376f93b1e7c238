/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_OUTPUT_WATCH_H
#define FLYBALL_CLI_MEASURE_OUTPUT_WATCH_H

#include <regex.h>
#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "train/program/memory_words.h"

/*
 * Looks for words about memory in what a program writes to its standard streams, without changing
 * the streams for the program.
 *
 *     output_watch_begin(&watch, regex or NULL, streams);   once, while this process has no threads
 *     for each program:
 *         output_watch_put(&watch);
 *         ... fork it ...
 *         output_watch_take_back(&watch);
 *         output_watch_progress(&watch);      what was said before this was no failure
 *         output_watch_end(&watch, &seen);    after it has ended
 *     output_watch_close(&watch);
 *
 * - A stream that is a regular file, which can be read, is left alone and read afterwards: what
 *   was written since the program began or made progress, at most the last OUTPUT_TAIL_MAX bytes.
 * - In place of a terminal the program gets another one, of the same size; in place of anything
 *   else (a pipe, a socket, /dev/null) it gets a pipe. A small helper process passes all bytes on
 *   unchanged and looks at them. The helper outlives this process, so that a program whose
 *   `flyball run` was killed can go on writing. If the helper itself is killed, this process
 *   passes the bytes on.
 * - Two streams that are one file stay one, so that their order stays.
 *
 * If any of this fails, the stream is left alone and not watched. For one thread.
 */
enum { OUTPUT_TAIL_MAX = 64 << 20, OUTPUT_STREAMS = 2 };

struct output_shared;

struct output_watch {
    struct output_stream {
        enum { OUTPUT_ALONE, OUTPUT_FILE, OUTPUT_PASSED, OUTPUT_WITH_FIRST } how;
        int stream;
        int program_end, saved; /* -1: none */
        int source;             /* of the bytes to pass on, or the file; -1: none */
        int copy;               /* where all bytes go too; -1: nowhere */
        bool terminal;
        int life;                     /* of the helper, by pidfd_open; -1: not known, or it has ended */
        off_t from;                   /* of a file: where to start looking */
        struct output_shared *shared; /* with the helper */
        struct memory_seen before;    /* at the beginning, or at the last progress */
    } streams[OUTPUT_STREAMS];
    const regex_t *told; /* borrowed */
    bool begun;
};

/*
 * Writes all bytes and waits for a slow reader. Returns false if nobody reads any more; bytes
 * that cannot be written for another reason are dropped.
 */
bool output_pass_on(int stream, const char *bytes, size_t length);

/*
 * `watched`: standard output and standard error. `error_copy`: descriptor to which standard error is written
 * as well, or -1; then it is also passed on if it is a file, and its words about memory are left to whoever
 * reads the copy. Borrowed.
 */
void output_watch_begin(struct output_watch *watch, const regex_t *told, const bool watched[OUTPUT_STREAMS],
                        int error_copy);
void output_watch_put(struct output_watch *watch);
void output_watch_take_back(struct output_watch *watch);

void output_watch_progress(struct output_watch *watch);

/* Does the work of a helper that has ended. Call it now and then. */
void output_watch_tend(struct output_watch *watch);

/*
 * Waits, not for long, until everything that was written is passed on, and adds what it said of
 * memory since the last progress.
 */
void output_watch_end(struct output_watch *watch, struct memory_seen *seen);

/* Closes it; the helpers end when nobody writes any more. Accepts a zeroed struct. */
void output_watch_close(struct output_watch *watch);

#endif
