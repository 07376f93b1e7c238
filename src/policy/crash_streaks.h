/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CRASH_STREAKS_H
#define FLYBALL_POLICY_CRASH_STREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * Which batch sizes crash again and again while others do not.
 *
 * A streak is the trials of one batch size that crashed since one of it last trained. It
 * is given up when it has CRASH_STREAK_LEAST crashes, another batch size has trained since the
 * streak began, and so many crashes in a row would be rarer than one in twenty if this batch
 * size crashed as often as the others did since then. That rate is (crashed + 1) / (trials + 2),
 * by Laplace's rule: where everything crashes nothing is given up, and where every third trial
 * crashes by chance, three in a row are not enough.
 *
 * Plain values over indices of batch sizes; only + and *, so equal on all machines. What was
 * given up stays so.
 */
enum { CRASH_STREAK_LEAST = 3 };

struct crash_streak {
    uint64_t crashes;
    uint64_t others_trained, others_crashed; /* since the first of them */
    bool given_up;
};

/* A trial of `batch` crashed, or trained. True when the batch size is given up by this. */
bool crash_streaks_take(struct crash_streak *streaks, size_t count, size_t batch, bool crashed);

/* Whether it has crashes enough to be given up, and no other batch size has trained to compare it with. */
bool crash_streaks_alone(const struct crash_streak *streak);

/* As bytes, and back. */
void crash_streaks_save(const struct crash_streak *streaks, size_t count, struct buffer *bytes);
void crash_streaks_load(struct crash_streak *streaks, size_t count, struct bytes_reader *bytes);

#endif
