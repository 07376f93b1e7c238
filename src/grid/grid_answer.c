/* SPDX-License-Identifier: Apache-2.0 */
/* An answer is two series. */
#include "grid/grid_answer.h"

void grid_answer_deinit(struct grid_answer *answer)
{
    grid_series_deinit(&answer->actual);
    grid_series_deinit(&answer->published);
}
