/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_FLYBALL_H
#define FLYBALL_FLYBALL_H

/*
 * Flyball, an energy optimiser for training deep neural networks: everything a
 * program needs to include.
 *
 * Units stand in names: _w watts, _j joules, _s seconds. Handles are opaque and
 * used by one thread at a time unless their header says otherwise. Structs that
 * may grow begin with `size`; value types say that they never change.
 */
#include <flyball/carbon.h>
#include <flyball/cost.h>
#include <flyball/error.h>
#include <flyball/job.h>
#include <flyball/job_definition.h>
#include <flyball/meter.h>
#include <flyball/objective.h>
#include <flyball/operating_point.h>
#include <flyball/pareto.h>
#include <flyball/power_knob.h>
#include <flyball/power_profile.h>
#include <flyball/power_search.h>
#include <flyball/power_selector.h>
#include <flyball/record.h>
#include <flyball/session.h>
#include <flyball/sim.h>
#include <flyball/tuner.h>
#include <flyball/version.h>

#endif
