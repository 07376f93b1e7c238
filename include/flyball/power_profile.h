/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POWER_PROFILE_H
#define FLYBALL_POWER_PROFILE_H

/*
 * What one power limit does to a unit of work (a step, an epoch, a window of
 * fixed length; the same unit throughout a profile). A power profile is an
 * array of these, one for each limit, in any order.
 * A value type: its layout never changes within a major version.
 */
struct fly_power_point {
    double limit_w; /* the power limit that was set, > 0 */
    double power_w; /* mean power drawn under it, all GPUs together, > 0 */
    double time_s;  /* time of the unit of work on the slowest rank, > 0 */
};

#endif
