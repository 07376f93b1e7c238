/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series of the grid from CSV: any bytes are refused with a reason, or give ordered periods that do not
 * overlap, with values in range.
 */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "grid/providers.h"

enum { PATH_BYTES = 64 };

static void check(const struct grid_series *series, enum grid_quantity quantity)
{
    for (size_t i = 0; i < series->count; i++) {
        const struct grid_period *period = &series->periods[i];

        FUZZ_CHECK(period->start_s < period->end_s);
        FUZZ_CHECK(i == 0 || series->periods[i - 1].end_s <= period->start_s);
        FUZZ_CHECK(isnan(period->value) == (period->quality == GRID_UNKNOWN));
        FUZZ_CHECK(isnan(period->value) || quantity == GRID_PRICE ||
                   (period->value > 0.0 && period->value <= GRID_CARBON_MOST));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int file = memfd_create("grid", MFD_CLOEXEC);
    char path[PATH_BYTES];

    if (file < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (int quantity = GRID_CARBON; write(file, data, size) == (ssize_t)size && quantity <= GRID_PRICE;
         quantity++) {
        struct grid_request request = {.quantity = (enum grid_quantity)quantity};
        struct grid_answer answer;
        struct fly_error error = {.code = 0};
        int code = grid_read(path, &request, &answer, &error);

        if (code == 0) {
            check(&answer.actual, request.quantity);
            check(&answer.published, request.quantity);
            grid_answer_deinit(&answer);
        } else {
            FUZZ_CHECK(error.code == code && error.text[0] != '\0');
        }
        if (ftruncate(file, 0) < 0 || lseek(file, 0, SEEK_SET) < 0)
            break;
    }
    close(file);
    return 0;
}
