/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_POWER_SEARCH_SPARE_H
#define FLYBALL_POLICY_POWER_SEARCH_SPARE_H

#include <flyball/power_search.h>

/*
 * Leaves out one limit that the search has yet to come to, since its figures would be those of another one.
 * Does nothing for the limit on trial, for one that was measured, and for one that the search does not have.
 */
void power_search_spare(struct fly_power_search *search, double limit_w);

#endif
