/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_WATCH_WATCH_TOTAL_H
#define FLYBALL_NODE_WATCH_WATCH_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "meter/counter.h"

/*
 * The energy of one device, as a total that goes on over restarts of the daemon, the driver and the
 * machine.
 *
 *     watch_total_resume(&total, &saved);                  once, if something was saved
 *     delta_uj = watch_total_take(&total, &info, &reading);    with each reading
 *
 * With an energy counter the total is the sum of its differences; readings that the device cannot have
 * reached are left out (meter/counter.h). If the counter fell, the driver was loaded again: what it
 * shows was drawn since then. Where no device could have drawn that much, the power that was read fills
 * the gap; where none was, the gap's energy is unknown. Without a counter, power is integrated by the
 * trapezoidal rule.
 *
 * Energy between two readings more than WATCH_GAP_S apart is also counted as unobserved: the total
 * knows it, and nobody saw who drew it. Without a counter the energy of such a gap is unknown; it is
 * not in the total, and the gap's length is in `unknown_s`.
 *
 * Plain values, no locks. Energies are whole microjoules, so sums are exact.
 */
enum { WATCH_GAP_S = 5 };

struct watch_total {
    int64_t energy_uj;     /* all that is known, the unobserved part included */
    int64_t unobserved_uj; /* of it */
    double unknown_s;      /* gaps whose energy is unknown */
    uint64_t resets;       /* how often the counter fell, rose or came back as no device makes it */
    bool counts;           /* the last reading had a counter, whose value this is: */
    uint64_t counter_uj;
    bool resumed; /* the counter's value is of a daemon before this one */
    struct counter counter;
    int64_t ahead_uj;    /* counted, and taken back by a later reading: energy to come is held against it */
    bool powered;        /* the last reading had a power, without a counter */
    double power_w;      /* of the last reading; NAN: it had none */
    double part_uj;      /* less than a microjoule, left over by the integral */
    struct mono_time at; /* of the last reading; 0: there was none */
};

/* Takes a reading, in order of time, and returns by how many microjoules the total rose. */
int64_t watch_total_take(struct watch_total *total, const struct device_info *info,
                         const struct device_reading *reading);

/* Begins with what another daemon saved. */
void watch_total_resume(struct watch_total *total, const struct watch_total *saved);

/* Says of a saved total that the machine was started since, so that its counter began anew. */
void watch_total_reboot(struct watch_total *saved);

/* Returns the reading's power in W: instant, else average, else NAN. */
double watch_power_w(const struct device_reading *reading);

#endif
