/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/sleeps.h"

struct sleeps sleeps_of(const struct emulator_settings *settings, int64_t origin_ns)
{
    return (struct sleeps){.origin_ns = origin_ns,
                           .every_ns = (int64_t)(settings->suspend_every_s * 1e9 + 0.5),
                           .each_ns = (int64_t)(settings->suspend_s * 1e9 + 0.5)};
}

int64_t sleeps_up_to_ns(const struct sleeps *sleeps, int64_t at_ns)
{
    int64_t count = 0;

    if (sleeps->every_ns > 0 && at_ns > sleeps->origin_ns)
        count = (at_ns - sleeps->origin_ns) / sleeps->every_ns;
    return sleeps->more_ns + count * sleeps->each_ns;
}

int64_t sleeps_left_out_ns(const struct sleeps *sleeps, int64_t with_sleep_ns)
{
    int64_t since_ns = with_sleep_ns - sleeps->more_ns - sleeps->origin_ns;
    int64_t round_ns = sleeps->every_ns + sleeps->each_ns;
    int64_t rest_ns;

    if (sleeps->every_ns <= 0 || since_ns <= 0)
        return sleeps->origin_ns + since_ns;
    rest_ns = since_ns % round_ns;
    if (rest_ns > sleeps->every_ns)
        rest_ns = sleeps->every_ns;
    return sleeps->origin_ns + since_ns / round_ns * sleeps->every_ns + rest_ns;
}
