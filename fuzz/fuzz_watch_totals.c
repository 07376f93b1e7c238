/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's file of totals: any text either gives totals that can go on, also after a restart of the
 * machine, or is refused with the file's name and a line.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "node/watch/watch_state.h"

enum { SAVED_MAX = 8, TEXT_MAX = 1 << 16 };

static void go_on(const struct watch_saved *saved, bool rebooted)
{
    static const struct device_info info = {.kind = DEVICE_GPU};
    struct watch_saved before = *saved;
    struct device_reading reading = {.before = {.ns = 1000000000}, .after = {.ns = 1000000000}};
    struct watch_total total;
    int64_t rise_uj;

    if (rebooted)
        watch_total_reboot(&before.total);
    watch_total_resume(&total, &before.total);
    reading.values[QUANTITY_ENERGY] = (struct reading){.value = INT64_MAX, .state = READING_OK};
    rise_uj = watch_total_take(&total, &info, &reading);
    FUZZ_CHECK(rise_uj >= 0 && total.energy_uj == saved->total.energy_uj + rise_uj);
    FUZZ_CHECK(total.unobserved_uj <= total.energy_uj && total.resets >= saved->total.resets);
}

static void check(const struct watch_saved *saved)
{
    FUZZ_CHECK(memchr(saved->uuid, '\0', sizeof saved->uuid) != NULL && saved->uuid[0] != '\0');
    FUZZ_CHECK(saved->total.unobserved_uj >= 0 && saved->total.unobserved_uj <= saved->total.energy_uj);
    FUZZ_CHECK(isfinite(saved->total.unknown_s) && saved->total.unknown_s >= 0);
    go_on(saved, false);
    go_on(saved, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct watch_saved saved[SAVED_MAX];
    struct fly_error error = {.text = ""};
    char boot[WATCH_BOOT_MAX], *text;
    size_t count = 0;
    int code;

    if (size > TEXT_MAX || memchr(data, '\0', size) != NULL)
        return 0;
    text = malloc(size + 1);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    code = watch_state_parse(text, "totals", saved, SAVED_MAX, &count, boot, &error);
    if (code == 0) {
        FUZZ_CHECK(count <= SAVED_MAX && memchr(boot, '\0', sizeof boot) != NULL);
        for (size_t i = 0; i < count; i++)
            check(&saved[i]);
    } else {
        FUZZ_CHECK(code == FLY_EDATA && strncmp(error.text, "totals", 6) == 0);
    }
    free(text);
    return 0;
}
