/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the emulator: accepted ones lie within their ranges, refused ones change nothing. */
#include <math.h>
#include <string.h>

#include "emulator/boards.h"
#include "emulator/settings.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emulator_settings settings = emulator_default_settings;
    struct fly_error error = {.code = 0};
    char *text = malloc(size + 1);

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (emulator_settings_parse(&settings, text, &error) < 0) {
        FUZZ_CHECK(error.code == FLY_EUSAGE && error.text[0] != '\0');
        FUZZ_CHECK(settings.gpus == emulator_default_settings.gpus && settings.faults[0] == '\0');
        FUZZ_CHECK(!settings.virtual_time && !settings.any_user && isnan(settings.settle_s));
    } else {
        FUZZ_CHECK(settings.gpus <= EMULATOR_GPUS_MAX);
        FUZZ_CHECK(settings.board < emulated_board_count && emulated_boards[settings.board].name != NULL);
        FUZZ_CHECK(settings.gain >= 0.1 && settings.gain <= 10.0);
        FUZZ_CHECK(isnan(settings.settle_s) || (settings.settle_s >= 0.9e-6 && settings.settle_s <= 5.0));
        FUZZ_CHECK(settings.latency_s >= 0.0 && settings.latency_s <= 10.0);
    }
    free(text);
    return 0;
}
