/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_RUN_CAPTURE_H
#define FLYBALL_CLI_MEASURE_RUN_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

/*
 * Reads a program's standard stream on its way: what the program writes goes on unchanged, and
 * its lines are looked at.
 *
 *     capture_open(&capture, STDOUT_FILENO, out_error);
 *     capture_put(&capture);           this process's stream is the program's end
 *     ... fork the program ...
 *     capture_take_back(&capture);
 *     while (capture_pass(&capture, look, state))
 *         ...                          whenever capture_fd is readable, and when the program has ended
 *     capture_end(&capture, look, state);
 *     capture_flush(&capture);
 *     capture_close(&capture);
 *
 * As with step lines, the program's end is a file in memory: writing to it never waits or fails,
 * whatever becomes of this process. The program can see that it is no terminal.
 *
 * With stream -1 it only looks, at what somebody else writes to program_end; lines that a carriage
 * return ends, as progress bars draw them again and again, are then passed over.
 */
enum { CAPTURE_LINE_MAX = 4096, CAPTURE_BYTES_MAX = 1 << 16 };

struct run_capture {
    int stream;                           /* of this process; -1: none */
    int file, program_end, notice, saved; /* -1: none */
    off_t read_to, written_to, freed_to;
    char line[CAPTURE_LINE_MAX + 1];
    size_t length; /* bytes beyond the line's maximum are not looked at */
    bool returned; /* with stream -1: a carriage return came last */
    bool open;
};

/* FLY_ELIMIT. Closing it after that is harmless. */
int capture_open(struct run_capture *out_capture, int stream, struct fly_error *out_error);
void capture_put(struct run_capture *capture);
void capture_take_back(struct run_capture *capture);

/* Returns a descriptor that is readable when something was written; -1 if the system does not offer that. */
int capture_fd(const struct run_capture *capture);

/* Called with each line, without its end and closed by NUL. */
typedef void capture_look(void *state, const char *line);

/*
 * Looks at one piece of what has come, and passes on as much as the reader has room for. Returns
 * whether there may be more. Never waits for the reader.
 */
bool capture_pass(struct run_capture *capture, capture_look *look, void *state);

/* Returns whether bytes wait for the reader. */
bool capture_waits(const struct run_capture *capture);

/*
 * Looks at all that is left; the last line may lack its end. This and the next two accept one
 * that is not open.
 */
void capture_end(struct run_capture *capture, capture_look *look, void *state);
/* Passes on all of it, however long the reader takes. */
void capture_flush(struct run_capture *capture);
void capture_close(struct run_capture *capture);

#endif
