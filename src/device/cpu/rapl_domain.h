/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_RAPL_DOMAIN_H
#define FLYBALL_DEVICE_CPU_RAPL_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/*
 * What the two ways to RAPL, powercap and perf events, share: which domains there are, and what
 * is known of their counters.
 *
 * A package's figure contains its cores and what else is on the chip ("core" and "uncore" are
 * parts of it) but not memory, which has a domain of its own on servers. "psys", the whole
 * platform, overlaps both and is never used.
 */
struct rapl_domain {
    enum device_kind kind; /* DEVICE_CPU or DEVICE_DRAM */
    unsigned package;
    int die; /* -1: the whole package */
};

/* Parses "package-0" or "package-1-die-0"; false for anything else, such as "psys". */
bool rapl_domain_parse(const char *name, struct rapl_domain *out_domain);

/*
 * Returns whether there is one energy counter for each package, whatever its dies. That is so on
 * AMD, although Linux 6.9 to 6.11 listed the one register of a package once for each of its dies.
 */
bool rapl_counts_whole_packages(const char *root);

/*
 * Sets name, uuid and sensor facts of a domain; the caller sets what differs between the ways to
 * it. Both ways give the same uuid: "cpu-0", "dram-1-die-0".
 */
void rapl_domain_info(const struct rapl_domain *domain, bool whole_packages, struct device_info *out_info);

/*
 * Returns where energy_uj wraps, from the kernel's max_energy_range_uj. The counter is a register
 * of 32 bits in units of a whole number of nanojoules. So it has 2^32 values and the range, which
 * is the last of them, is one unit less than the modulus: 65532610987 uJ belongs to 15258 nJ and
 * wraps at 65532611002. A range that fits no such unit is taken as documented, as the last value
 * of a counter of microjoules.
 */
uint64_t rapl_modulus_uj(uint64_t range_uj);

#endif
