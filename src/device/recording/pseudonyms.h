/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_RECORDING_PSEUDONYMS_H
#define FLYBALL_DEVICE_RECORDING_PSEUDONYMS_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * Removes what names a person or a machine from a text of a driver or of this program.
 *
 *     struct pseudonym rows[] = {{"alice", "USER"}, {"GPU-8f3a...", "GPU-0"}};
 *
 *     pseudonyms_put(rows, 2, "'/home/alice/libnvidia-ml.so' of GPU-8f3a... is no library", &out);
 *     ... "'PATH' of GPU-0 is no library" ...
 *
 * It replaces words of the rows by their replacements, the longest first, and also
 *
 *     paths        by PATH, but for those that every machine has (/sys, /proc, /dev, libraries)
 *     addresses    what follows "://" by ADDRESS
 *     UUIDs        by UUID
 *     PCI          addresses of the bus by PCI
 *
 * Pure; thread-safe.
 */
struct pseudonym {
    const char *secret; /* a word, matched as a whole; "" is none */
    const char *instead;
};

void pseudonyms_put(const struct pseudonym *rows, size_t count, const char *text, struct buffer *out);

#endif
