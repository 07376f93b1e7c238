/* SPDX-License-Identifier: Apache-2.0 */
/* All ways of turning knobs, in the order in which they are tried. */
#include "knob/way/way.h"

static bool driver_offers(const struct site *site, const struct device *device)
{
    (void)site;
    return device->backend->set != NULL;
}

static int driver_set(struct site *site, const struct device *device, enum quantity quantity,
                      const struct setting *value, bool *out_uncertain, struct fly_error *out_error)
{
    (void)site;
    (void)out_uncertain;
    return setting_make(device, quantity, value, out_error);
}

static const struct way_calls way_driver = {
    .offers = driver_offers,
    .set = driver_set,
};

const struct way_calls *const ways[WAY_COUNT] = {
    [WAY_DRIVER] = &way_driver,
    [WAY_COMMANDS] = &way_commands,
    [WAY_DAEMON] = &way_daemon,
};
