/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of visits, and the noise between them: variances compared by chi squared. */
#include "train/tuner/tuner_visits.h"

#include <math.h>

#include "policy/limit_arms.h"

/* 99th percentile of chi squared over its degrees of freedom: chance does not explain a larger value. */
static const double chance[] = {6.63, 4.61, 3.78, 3.32, 3.02, 2.80, 2.64, 2.51, 2.41, 2.32};
/* 99th percentile of Student's t, since one looks at it more than once; 5 where it is larger. */
static const double student[] = {5.0, 5.0, 4.54, 3.75, 3.36, 3.14, 3.00, 2.90, 2.82, 2.76};
enum { KNOWN_DEGREES = sizeof chance / sizeof chance[0] };
_Static_assert(sizeof student == sizeof chance, "a value for each");

/* Leaves out an energy so coarse that it would make the sum less certain. */
static void add_energy(struct tuner_visits *visits, const struct tuner_visit *visit)
{
    double energy_j = visits->energy_j + visit->energy_j;
    double half_j2 = visits->half_j2 + visit->half_j * visit->half_j;

    if (visits->energy_j > 0.0 && sqrt(half_j2) / energy_j > sqrt(visits->half_j2) / visits->energy_j)
        return;
    visits->energy_j = energy_j;
    visits->energy_s += visit->time_s;
    visits->half_j2 = half_j2;
}

/* The table's value for that many degrees of freedom, at least 1; beyond its end the last one. */
static double of_degrees(const double *table, unsigned degrees)
{
    size_t place = degrees < KNOWN_DEGREES ? degrees : KNOWN_DEGREES;

    return table[place > 0 ? place - 1 : 0];
}

void tuner_visits_add(struct tuner_visits *visits, const struct tuner_visit *visit)
{
    double step_s = visit->time_s / visit->steps, power_w = visit->energy_j / visit->time_s;
    double power_error = visit->half_j / visit->energy_j / limit_half_width;
    double error_s = visit->time_error * visit->time_s;

    visits->count++;
    visits->steps += visit->steps;
    visits->time_s += visit->time_s;
    add_energy(visits, visit);
    visits->error_s2 += error_s * error_s;
    visits->step_s += step_s;
    visits->step_s2 += step_s * step_s;
    visits->power_w += power_w;
    visits->power_w2 += power_w * power_w;
    visits->known_time2 += visit->time_error * visit->time_error;
    visits->known_power2 += power_error * power_error;
}

/* Sum of squared relative deviations of `count` values from their mean. */
static double deviations(double sum, double squares, double count)
{
    double mean = sum / count;

    return fmax(squares - count * mean * mean, 0.0) / (mean * mean);
}

static double beyond_chance(double deviation2, double known2, unsigned degrees)
{
    double limit = of_degrees(chance, degrees);

    /* Rounding leaves a remainder even when all values are equal. */
    if (deviation2 <= limit * known2 || deviation2 < 1e-12)
        return 0.0;
    return sqrt((deviation2 - known2) / degrees);
}

struct tuner_noise tuner_visits_noise(const struct tuner_visits *visits, size_t count)
{
    struct tuner_noise noise = {0};
    double time2 = 0.0, power2 = 0.0, known_time2 = 0.0, known_power2 = 0.0;

    for (size_t i = 0; i < count; i++) {
        double n = visits[i].count;

        if (visits[i].count < 2)
            continue;
        noise.degrees += visits[i].count - 1;
        time2 += deviations(visits[i].step_s, visits[i].step_s2, n);
        power2 += deviations(visits[i].power_w, visits[i].power_w2, n);
        known_time2 += visits[i].known_time2 * (n - 1.0) / n;
        known_power2 += (visits[i].known_power2 + visits[i].known_time2) * (n - 1.0) / n;
    }
    if (noise.degrees == 0)
        return noise;
    noise.time = beyond_chance(time2, known_time2, noise.degrees);
    noise.power = beyond_chance(power2, known_power2, noise.degrees);
    return noise;
}

double tuner_noise_factor(const struct tuner_noise *noise)
{
    if (noise->degrees == 0)
        return 0.0;
    return of_degrees(student, noise->degrees);
}
