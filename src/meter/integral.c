/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/integral.h"

void integral_take(struct integral *integral, struct mono_time at, double power_w)
{
    double elapsed_s = mono_elapsed_s(integral->at, at);

    if (integral->known && elapsed_s <= 0.0)
        return;
    if (integral->known) {
        double energy_j = 0.5 * (integral->power_w + power_w) * elapsed_s;

        integral->total_j += energy_j;
        if (elapsed_s > integral->gap_max_s) {
            integral->holes_s += elapsed_s;
            integral->holes_j += energy_j;
        }
    }
    integral->known = true;
    integral->at = at;
    integral->power_w = power_w;
}

struct integral_edge integral_edge(const struct integral *integral, struct mono_time at)
{
    double elapsed_s = mono_elapsed_s(integral->at, at);

    return (struct integral_edge){
        .known = integral->known && elapsed_s <= integral->gap_max_s,
        .total_j = integral->total_j + integral->power_w * elapsed_s,
        .power_w = integral->power_w,
        .holes_s = integral->holes_s,
        .holes_j = integral->holes_j,
        .held_s = elapsed_s,
    };
}

struct integral_edge integral_between(const struct integral *integral, struct mono_time at,
                                      struct mono_time next_at, double next_w)
{
    struct integral_edge edge = integral_edge(integral, at);
    double elapsed_s = mono_elapsed_s(integral->at, at), whole_s = mono_elapsed_s(integral->at, next_at);

    if (whole_s > 0.0)
        edge.total_j += 0.5 * (next_w - integral->power_w) * elapsed_s * elapsed_s / whole_s;
    return edge;
}
