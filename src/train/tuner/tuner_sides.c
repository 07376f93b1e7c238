/* SPDX-License-Identifier: Apache-2.0 */
/* The knob on trial and the other one: exchanges them, and notes why one of them is not turned. */
#include <stdio.h>

#include "base/words.h"
#include "train/tuner/tuner_private.h"

#define SWAP(type, one, other) \
    do {                       \
        type swapped = (one);  \
        (one) = (other);       \
        (other) = swapped;     \
    } while (0)

void tuner_swap_knobs(struct fly_tuner *tuner)
{
    struct tuner_side *other = &tuner->other;
    size_t count = tuner->limit_count > other->limit_count ? tuner->limit_count : other->limit_count;

    SWAP(enum fly_tuner_knob, tuner->options.knob, other->knob);
    SWAP(const struct fly_turner *, tuner->options.turner, other->turner);
    SWAP(void *, tuner->options.turner_data, other->data);
    SWAP(double, tuner->start_limit_w, other->start_w);
    SWAP(double, tuner->standing_w, other->standing_w);
    SWAP(bool, tuner->turned, other->turned);
    SWAP(bool, tuner->foreign, other->foreign);
    SWAP(size_t, tuner->limit_count, other->limit_count);
    SWAP(size_t, tuner->chosen, other->chosen);
    for (size_t i = 0; i < count; i++)
        SWAP(struct fly_tuner_point, tuner->points[i], other->points[i]);
}

void tuner_note_knob(struct fly_tuner *tuner, const char *knob, const char *text, const char *instead)
{
    char *note = tuner->report.knob_note;
    size_t size = sizeof tuner->report.knob_note;

    words_fit(note, size, snprintf(note, size, "%s, since the %s may not be set: %s", instead, knob, text));
}

bool tuner_may_give_way(const struct fly_tuner *tuner)
{
    return tuner->other.turner != NULL && !tuner->proven &&
           (tuner->is_second || tuner->options.knob == FLY_TUNER_POWER_LIMIT);
}

void tuner_note_refusal(struct fly_tuner *tuner, const char *text)
{
    tuner->refused = true;
    if (tuner->is_second)
        tuner_note_knob(tuner, "clock", text, "the power limit is tuned alone");
    else
        tuner_note_knob(tuner, "power limit", text, "the clock is tuned alone");
}
