/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_RECORDING_FACTS_PRIVATE_H
#define FLYBALL_DEVICE_RECORDING_FACTS_PRIVATE_H

#include "device/recording/facts.h"
#include "shapes/shape.h"

/* The members of the document. */
extern const struct shape facts_shape;

#endif
