/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_DEVICE_CODING_H
#define FLYBALL_DEVICE_DEVICE_CODING_H

#include "shapes/shape.h"

/* Codes an enum device_kind as the text of a shape's member: "GPU", "CPU", "DRAM". */
extern const struct shape_coding device_kind_coding;

#endif
