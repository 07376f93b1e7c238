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

static const struct bytes_row rows[] = {
    BYTES_AT(crash_streak, crashes), BYTES_AT(crash_streak, others_trained),
    BYTES_AT(crash_streak, others_crashed), BYTES_AT(crash_streak, given_up)};

void crash_streaks_save(const struct crash_streak *streaks, size_t count, struct buffer *bytes)
{
    for (size_t i = 0; i < count; i++)
        bytes_put_rows(bytes, BYTES_ROWS(rows), &streaks[i]);
}

void crash_streaks_load(struct crash_streak *streaks, size_t count, struct bytes_reader *bytes)
{
    for (size_t i = 0; i < count; i++)
        bytes_rows(bytes, BYTES_ROWS(rows), &streaks[i]);
}
