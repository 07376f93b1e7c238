/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/crash_streaks.h"

/* A streak must be rarer than this by chance. */
static const double rare = 0.05;

/* Returns whether so many crashes in a row show that this batch size differs from the others. */
static bool stands_out(const struct crash_streak *streak)
{
    double rate = ((double)streak->others_crashed + 1.0) /
                  ((double)streak->others_crashed + (double)streak->others_trained + 2.0);
    double chance = 1.0;

    if (streak->crashes < CRASH_STREAK_LEAST || streak->others_trained == 0)
        return false;
    for (uint64_t i = 0; i < streak->crashes && chance >= rare; i++)
        chance *= rate;
    return chance < rare;
}

bool crash_streaks_alone(const struct crash_streak *streak)
{
    return streak->crashes >= CRASH_STREAK_LEAST && streak->others_trained == 0;
}

bool crash_streaks_take(struct crash_streak *streaks, size_t count, size_t batch, bool crashed)
{
    struct crash_streak *own = &streaks[batch];
    bool before = own->given_up;

    for (size_t i = 0; i < count; i++) {
        if (i == batch || streaks[i].crashes == 0)
            continue;
        streaks[i].others_crashed += crashed;
        streaks[i].others_trained += !crashed;
    }
    if (crashed)
        own->crashes++;
    else
        *own = (struct crash_streak){.given_up = before};
    own->given_up |= stands_out(own);
    return own->given_up && !before;
}

void crash_streaks_save(const struct crash_streak *streaks, size_t count, struct buffer *bytes)
{
    for (size_t i = 0; i < count; i++) {
        bytes_put_u64(bytes, streaks[i].crashes);
        bytes_put_u64(bytes, streaks[i].others_trained);
        bytes_put_u64(bytes, streaks[i].others_crashed);
        bytes_put_u64(bytes, streaks[i].given_up);
    }
}

void crash_streaks_load(struct crash_streak *streaks, size_t count, struct bytes_reader *bytes)
{
    for (size_t i = 0; i < count; i++) {
        streaks[i].crashes = bytes_u64(bytes);
        streaks[i].others_trained = bytes_u64(bytes);
        streaks[i].others_crashed = bytes_u64(bytes);
        streaks[i].given_up = bytes_bool(bytes);
    }
}
