/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/views/saving_words.h"

#include <math.h>

const char saving_words_chance[] = "Whether any energy is saved cannot be told from chance.";

void saving_words_change(struct buffer *text, const struct fly_job_range *saving, const char *what)
{
    double sign = saving->value < 0.0 ? -100.0 : 100.0;
    double one = sign * saving->low, other = sign * saving->high;

    if (!isfinite(saving->value)) {
        buffer_printf(text, "%s out of the range of numbers", what);
        return;
    }
    buffer_printf(text, "%.1f %% %s %s", sign * saving->value, saving->value < 0.0 ? "more" : "less", what);
    if (isfinite(one) && isfinite(other))
        buffer_printf(text, " (%.1f to %.1f %%)", fmin(one, other), fmax(one, other));
}

void saving_words_unknown(struct buffer *text, const struct job_savings *savings)
{
    bool few = savings->doubt == SAVING_FEW_BASELINE;

    if (few && savings->baseline.runs < SAVING_BLOCKS_MIN)
        buffer_printf(text, "unknown; your default was measured in %zu of %d runs needed",
                      savings->baseline.runs, (int)SAVING_BLOCKS_MIN);
    else if (savings->doubt == SAVING_FEW_TUNED && savings->tuned.runs < SAVING_BLOCKS_MIN)
        buffer_printf(text, "unknown; what was chosen was measured in %zu of %d runs needed",
                      savings->tuned.runs, (int)SAVING_BLOCKS_MIN);
    else
        buffer_printf(text, "unknown; %s", saving_doubt_text(savings->doubt));
}

bool saving_words_by_chance(const struct fly_job_range *saving)
{
    return saving->low <= 0.0 && saving->high >= 0.0;
}
