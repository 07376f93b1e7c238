/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CRASH_STREAKS_H
#define FLYBALL_POLICY_CRASH_STREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * Finds batch sizes that crash again and again while others do not.
 *
 * A streak is the number of trials of one batch size that crashed since a trial of it last
 * trained. The batch size is given up when its streak has CRASH_STREAK_LEAST crashes, another
 * batch size has trained since the streak began, and so many crashes in a row would be rarer than
 * one in twenty if this batch size crashed as often as the others did since then. That rate is
 * (crashed + 1) / (trials + 2), by Laplace's rule. So nothing is given up where everything
 * crashes, and where every third trial crashes by chance, three crashes in a row are not enough.
 *
 * Plain values over indices of batch sizes. Uses only + and *, so results are equal on all
 * machines. A batch size that was given up stays given up.
 */
enum { CRASH_STREAK_LEAST = 3 };

struct crash_streak {
    uint64_t crashes;
    uint64_t others_trained, others_crashed; /* trials since the streak's first crash */
    bool given_up;
};

/* Records that a trial of `batch` crashed, or trained. Returns whether this gives the batch size up. */
bool crash_streaks_take(struct crash_streak *streaks, size_t count, size_t batch, bool crashed);

/*
 * Returns whether there are crashes enough to give up, but no other batch size has trained to
 * compare with.
 */
bool crash_streaks_alone(const struct crash_streak *streak);

/* Write all streaks as bytes, and read them back. */
void crash_streaks_save(const struct crash_streak *streaks, size_t count, struct buffer *bytes);
void crash_streaks_load(struct crash_streak *streaks, size_t count, struct bytes_reader *bytes);

#endif
