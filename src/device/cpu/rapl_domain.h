/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_RAPL_DOMAIN_H
#define FLYBALL_DEVICE_CPU_RAPL_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/*
 * What the two ways to RAPL, powercap and perf events, have in common: which
 * domains there are, and what is known of their counters.
 *
 * A package's figure holds its cores and what else is on the chip ("core" and
 * "uncore" are parts of it) but not memory, which has a domain of its own on
 * servers. "psys", the whole platform, overlaps both and is never used.
 */
struct rapl_domain {
    enum device_kind kind; /* DEVICE_CPU or DEVICE_DRAM */
    unsigned package;
    int die; /* -1: the whole package */
};

/* "package-0", "package-1-die-0"; false for anything else, such as "psys". */
bool rapl_domain_parse(const char *name, struct rapl_domain *out_domain);

/*
 * Whether the packages' energy is counted once for each package, whatever its
 * dies: so on AMD, where Linux 6.9 to 6.11 nevertheless listed the one register
 * of a package again for each of its dies.
 */
bool rapl_counts_whole_packages(const char *root);

/*
 * Name, uuid, sensor facts of a domain; what differs between the ways to it
 * is left to the caller. The uuid is the same by either way: "cpu-0", "dram-1-die-0".
 */
void rapl_domain_info(const struct rapl_domain *domain, bool whole_packages, struct device_info *out_info);

/*
 * Where energy_uj wraps, by the kernel's max_energy_range_uj. Behind it is a
 * register of 32 bits in units of a whole number of nanojoules, so the counter
 * has 2^32 values and the range, which is the last of them, is one unit short of
 * the modulus: 65532610987 uJ belongs to 15258 nJ and wraps at 65532611002. A
 * range that no such unit explains is taken as it is documented, as the last
 * value of a counter of microjoules.
 */
uint64_t rapl_modulus_uj(uint64_t range_uj);

#endif
