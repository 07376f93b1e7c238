/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_KNOB_DEFAULTS_H
#define FLYBALL_KNOB_KNOB_DEFAULTS_H

#include "knob/knob.h"
#include "knob/turnable.h"

/* A session's options, with defaults for what they leave out. Texts are borrowed from the options. */

/* Returns what is needed to find others who use the GPUs. */
struct turnable_options knob_others(const struct knob_options *options);

/* Returns the name of this program for others. */
const char *knob_program(const struct knob_options *options);

#endif
