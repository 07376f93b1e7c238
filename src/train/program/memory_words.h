/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_MEMORY_WORDS_H
#define FLYBALL_TRAIN_PROGRAM_MEMORY_WORDS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Recognizes Python's tracebacks in a program's output: which lines are code, and which line names the
 * exception. A launcher puts the same prefix before all lines of a rank ("[rank0]: "); lines with another
 * prefix belong to other processes. Pure.
 */
enum traceback_line {
    TRACEBACK_NONE,  /* not part of a traceback */
    TRACEBACK_CODE,  /* a file's line, or program text */
    TRACEBACK_RELAY, /* an exception that follows from another exception or from another process */
    TRACEBACK_RAISED /* an exception that stands for itself */
};

enum { TRACEBACK_PREFIX_MAX = 32 };

/* Zero it before the first line. */
struct traceback {
    bool open;    /* the line with the exception is still to come */
    bool chained; /* the next exception follows from the one before */
    size_t prefix_length;
    char prefix[TRACEBACK_PREFIX_MAX];
};

/*
 * Finds words in a program's output that say that memory ran out: messages and exception names of PyTorch,
 * JAX and XLA, TensorFlow, CuPy, the libraries of CUDA and ROCm, Python, NumPy, C++ and Slurm. What such
 * words mean depends on how the program ends, since a program that recovers prints them too. So this only
 * counts them, and the caller compares. It does not count advice ("if you see CUDA out of memory, ...") or
 * the code in a Python traceback, and it withdraws what it counted when a later traceback ends with another
 * exception that does not follow from it.
 *
 *     struct memory_words words = {.told = regex or NULL};
 *
 *     memory_words_take(&words, bytes, count, &seen);     in pieces as they come
 *     memory_words_end(&words, &seen);                    the last line may lack its end
 *     if (memory_seen_since(&seen, MEMORY_GPU, before) > 0) ...
 *
 * Lines end with a newline or a carriage return. A line longer than MEMORY_LINE_MAX is searched piece by
 * piece; the pieces overlap by more than the longest words. Pure; uses no memory but the struct's.
 */
enum memory_kind {
    MEMORY_NONE,
    MEMORY_TOLD, /* a pattern that the user gave matches */
    MEMORY_GPU,
    MEMORY_HOST,
    MEMORY_KINDS
};

enum { MEMORY_LINE_MAX = 4096, MEMORY_OVERLAP = 256 };

/* How many lines said so, and the words of the newest one: static texts. */
struct memory_seen {
    uint64_t count[MEMORY_KINDS];
    const char *words[MEMORY_KINDS];
    uint64_t withdrawn[MEMORY_KINDS]; /* how many of the lines were no failure */
};

struct memory_words {
    const regex_t *told; /* borrowed; NULL: none */
    struct traceback traceback;
    char said_by[TRACEBACK_PREFIX_MAX + 1]; /* how the newest counted line began */
    size_t length;
    char line[MEMORY_LINE_MAX + 1];
};

void memory_words_take(struct memory_words *words, const char *bytes, size_t count, struct memory_seen *seen);
void memory_words_end(struct memory_words *words, struct memory_seen *seen);

/* Takes a whole line of a stream that comes line by line. */
void memory_words_line(struct memory_words *words, const char *line, struct memory_seen *seen);

/* How many lines count beyond `before`. */
uint64_t memory_seen_since(const struct memory_seen *seen, enum memory_kind kind, uint64_t before);

/* The kind of words in one line, MEMORY_NONE for none; `out_words` are the words found. */
enum memory_kind memory_words_in(const char *line, const char **out_words);

#endif
