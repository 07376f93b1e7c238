/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_KNOB_DEFAULTS_H
#define FLYBALL_KNOB_KNOB_DEFAULTS_H

#include "knob/knob.h"
#include "knob/turnable.h"

/*
 * What a session's options come to, with what holds where they say nothing. Texts are borrowed from the
 * options.
 */

/* What others than the session look at. */
struct turnable_options knob_others(const struct knob_options *options);

/* The places of the site's ways, where the options name any. */
struct site_options knob_ways(const struct knob_options *options);

/* How others call this program. */
const char *knob_program(const struct knob_options *options);

#endif
