/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device_coding.h"

#include <stdio.h>

#include "device/device.h"

static bool read_kind(const char *text, void *out_kind)
{
    return device_kind_find(text, out_kind);
}

static void write_kind(const void *kind, char text[SHAPE_CODED_MAX])
{
    snprintf(text, SHAPE_CODED_MAX, "%s", device_kind_name(*(const enum device_kind *)kind));
}

const struct shape_coding device_kind_coding = {
    .expected = "GPU, CPU or DRAM", .size = sizeof(enum device_kind), .read = read_kind, .write = write_kind};
