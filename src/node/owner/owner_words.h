/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_OWNER_OWNER_WORDS_H
#define FLYBALL_NODE_OWNER_OWNER_WORDS_H

#include <stddef.h>

#include "node/owner/owner.h"

/*
 * Reads the text of /proc/PID/status and, piece by piece, that of /proc/PID/environ. Pure; thread-safe.
 *
 *     struct owner_words words = {.owner = &owner};
 *
 *     while ((length = read(file, bytes, sizeof bytes)) > 0)
 *         owner_words_take(&words, bytes, length);
 */

/* Returns whether the text has a real user, with it. */
bool owner_status_uid(const char *text, uid_t *out_uid);

enum { OWNER_WORD_MAX = 256 };

struct owner_words {
    struct owner *owner;
    size_t length;              /* of the entry so far; one with more than the maximum is skipped */
    char entry[OWNER_WORD_MAX]; /* "NAME=value", without its end yet */
};

/*
 * Takes the next bytes: entries end with a 0 byte, and one that is not ended is not read. What is
 * set twice counts the first time, as in getenv. Fills in training_job and, unless the control group
 * named a job, slurm_job and slurm_step. A value of a form that their makers would not give is skipped.
 */
void owner_words_take(struct owner_words *words, const char *bytes, size_t length);

#endif
