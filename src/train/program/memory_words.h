/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_MEMORY_WORDS_H
#define FLYBALL_TRAIN_PROGRAM_MEMORY_WORDS_H

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

#include "train/program/traceback.h"

/*
 * Words in a program's output that say that memory ran out: the messages and exception names of
 * PyTorch, JAX and XLA, TensorFlow, CuPy, CUDA's and ROCm's libraries, Python, NumPy, C++ and
 * Slurm. What they mean depends on how the program ends: one that recovers prints them too. So
 * they are counted here, and whoever watches compares. Words of advice ("if you see CUDA out of
 * memory, ...") and the code in a Python traceback are not counted, and what was counted is withdrawn
 * when a later traceback ends with another exception that does not follow from it.
 *
 *     struct memory_words words = {.told = regex or NULL};
 *
 *     memory_words_take(&words, bytes, count, &seen);     in pieces as they come
 *     memory_words_end(&words, &seen);                    the last line may lack its end
 *     if (memory_seen_since(&seen, MEMORY_GPU, before) > 0) ...
 *
 * Lines end with a newline or a carriage return. Of a line longer than MEMORY_LINE_MAX each piece
 * is looked at, with an overlap that no words are longer than. Pure; memory is that of the struct.
 */
enum memory_kind {
    MEMORY_NONE,
    MEMORY_TOLD, /* a pattern of the user's own matches */
    MEMORY_GPU,
    MEMORY_HOST,
    MEMORY_KINDS
};

enum { MEMORY_LINE_MAX = 4096, MEMORY_OVERLAP = 256 };

/* How many lines said so, and what the newest of them said: texts that live for ever. */
struct memory_seen {
    uint64_t count[MEMORY_KINDS];
    const char *words[MEMORY_KINDS];
    uint64_t withdrawn[MEMORY_KINDS]; /* so many of them were no failure */
};

struct memory_words {
    const regex_t *told; /* borrowed; NULL: none */
    struct traceback traceback;
    char said_by[TRACEBACK_PREFIX_MAX + 1]; /* how the newest line that counted began */
    size_t length;
    char line[MEMORY_LINE_MAX + 1];
};

void memory_words_take(struct memory_words *words, const char *bytes, size_t count, struct memory_seen *seen);
void memory_words_end(struct memory_words *words, struct memory_seen *seen);

/* A whole line of a stream whose lines come one by one. */
void memory_words_line(struct memory_words *words, const char *line, struct memory_seen *seen);

/* How many count, since there were `before`. */
uint64_t memory_seen_since(const struct memory_seen *seen, enum memory_kind kind, uint64_t before);

/* Of one line, MEMORY_NONE for no such words; `out_words` are those that were found. */
enum memory_kind memory_words_in(const char *line, const char **out_words);

#endif
