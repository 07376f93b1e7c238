/* SPDX-License-Identifier: Apache-2.0 */
/* flyballd's record with any text: windows and processes lie within the period, and last no longer. */
#include <math.h>

#include "fuzz.h"
#include "meter/tally/used.h"

static const double since_s = 1.0e9, until_s = 1.9e9, rounding = 1e-6;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct used used;

    used_init(&used);
    if (used_take(&used, (const char *)data, size, "n", NULL) == 0 &&
        used_end(&used, since_s, until_s, NULL) == 0) {
        for (size_t i = 0; i < used.window_count; i++) {
            const struct tally_window *window = &used.windows[i];

            FUZZ_CHECK(window->start_unix_s >= since_s && window->time_s > 0.0);
            FUZZ_CHECK(window->start_unix_s + window->time_s <= until_s * (1 + rounding));
            FUZZ_CHECK(window->energy_j >= 0.0);
        }
        for (size_t i = 0; i < used.process_count; i++)
            FUZZ_CHECK(used.processes[i].pid > 0 && !(used.processes[i].energy_j < 0.0));
    }
    used_deinit(&used);
    return 0;
}
