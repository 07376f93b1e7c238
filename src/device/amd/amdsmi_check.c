/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a GPU's counter and its die from a few readings. */
#include <string.h>

#include "device/amd/amdsmi_gpu.h"

static const double tolerance = 4.0;

/* The kernel's driver leaves power and energy of Aldebaran's second die at zero. */
static const char *const two_die_names[] = {"MI250"};

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

enum amdsmi_verdict amdsmi_judge(const struct amdsmi_trial *trial)
{
    double before_w = (double)trial->power_before.value * 1e-3;
    double after_w = (double)trial->power_after.value * 1e-3;
    double counted_w;

    if (trial->energy_before.state != READING_OK || trial->energy_after.state != READING_OK)
        return AMDSMI_COUNTER_ABSENT;
    if (trial->energy_after.value < trial->energy_before.value)
        return AMDSMI_COUNTER_WRONG;
    if (trial->power_before.state != READING_OK || trial->power_after.state != READING_OK ||
        !(trial->time_s > 0.0) || !(least(before_w, after_w) > 0.0))
        return AMDSMI_COUNTER_UNCHECKED;
    counted_w = (double)(trial->energy_after.value - trial->energy_before.value) * 1e-6 / trial->time_s;
    if (counted_w < least(before_w, after_w) / tolerance || counted_w > most(before_w, after_w) * tolerance)
        return AMDSMI_COUNTER_WRONG;
    return AMDSMI_COUNTER_GOOD;
}

bool amdsmi_two_dies(const char *name)
{
    for (size_t i = 0; i < sizeof two_die_names / sizeof two_die_names[0]; i++) {
        if (strcasestr(name, two_die_names[i]) != NULL)
            return true;
    }
    return false;
}

/*
 * Returns true for zero, which no powered card draws, and for no reading at all; a denied or
 * failed one tells nothing.
 */
static bool no_power(const struct reading *power)
{
    return power->state == READING_UNSUPPORTED || (power->state == READING_OK && power->value == 0);
}

bool amdsmi_is_second_die(const char *name, const struct amdsmi_trial *trial)
{
    bool counts =
        trial->energy_after.state == READING_OK &&
        (trial->energy_before.state != READING_OK || trial->energy_after.value != trial->energy_before.value);

    return amdsmi_two_dies(name) && !counts && no_power(&trial->power_before) &&
           no_power(&trial->power_after);
}
