/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/chart_dots.h"

const struct chart_unit chart_time_units[CHART_UNIT_COUNT] = {
    {"d", 86400.0}, {"h", 3600.0}, {"min", 60.0}, {"s", 1.0}};
const struct chart_unit chart_energy_units[CHART_UNIT_COUNT] = {
    {"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}, {"J", 1.0}};

struct chart_unit chart_unit_for(const struct chart_unit *units, double value)
{
    int i = 0;

    while (i < CHART_UNIT_COUNT - 1 && value < units[i].size)
        i++;
    return units[i];
}

bool chart_dots_init(struct chart_dots *dots, struct arena *arena, size_t most)
{
    *dots = (struct chart_dots){.x = arena_alloc(arena, most + 1, sizeof dots->x[0]),
                                .y = arena_alloc(arena, most + 1, sizeof dots->y[0]),
                                .tips = arena_alloc(arena, most + 1, sizeof dots->tips[0])};
    return dots->x != NULL && dots->y != NULL && dots->tips != NULL;
}

void chart_dots_add(struct chart_dots *dots, double x, double y, const char *tip)
{
    dots->x[dots->count] = x;
    dots->y[dots->count] = y;
    dots->tips[dots->count++] = tip;
}

struct chart_series chart_dots_series(const struct chart_dots *dots, const char *name, enum chart_kind kind,
                                      enum svg_color color, enum svg_shape shape, double radius)
{
    return (struct chart_series){.name = name,
                                 .kind = kind,
                                 .color = color,
                                 .shape = shape,
                                 .radius = radius,
                                 .x = dots->x,
                                 .y = dots->y,
                                 .tips = shape != SVG_NO_SHAPE ? dots->tips : NULL,
                                 .count = dots->count};
}
