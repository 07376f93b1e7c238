/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every element takes its colour from a class and paints with currentColor;
 * that also works in viewers that know no variables of style sheets.
 */
#include "cli/svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/harmless.h"

static const struct {
    const char *name, *light, *dark;
} colors[] = {
    [SVG_INK] = {"ink", "#636c76", "#a3abb5"},       [SVG_FAINT] = {"faint", "#8a929c", "#79818b"},
    [SVG_BLUE] = {"blue", "#0072b2", "#4ba3e3"},     [SVG_ORANGE] = {"orange", "#d55e00", "#f0843c"},
    [SVG_GREEN] = {"green", "#008f68", "#2fbf94"},   [SVG_PURPLE] = {"purple", "#b8579a", "#dc93bd"},
    [SVG_YELLOW] = {"yellow", "#b58900", "#e3b93c"},
};
_Static_assert(sizeof colors / sizeof colors[0] == SVG_COLOR_COUNT, "two shades for every colour");

static const char *const dashes[] = {
    [SVG_SOLID] = "", [SVG_DASHED] = "6 3", [SVG_DOTTED] = "2 3", [SVG_DASH_DOT] = "8 3 2 3"};
_Static_assert(sizeof dashes / sizeof dashes[0] == SVG_DASH_COUNT, "a pattern for every dash");

static const char *const anchors[] = {[SVG_START] = "start", [SVG_MIDDLE] = "middle", [SVG_END] = "end"};

void svg_number(struct buffer *out, double value)
{
    bool bounded = fabs(value) < 1e9; /* false for NaN too */
    int64_t tenths = bounded ? (int64_t)floor(fabs(value) * 10.0 + 0.5) : 0;

    if (value < 0.0 && tenths > 0)
        buffer_puts(out, "-");
    buffer_printf(out, "%lld", (long long)(tenths / 10));
    if (tenths % 10 != 0)
        buffer_printf(out, ".%d", (int)(tenths % 10));
}

void svg_escape(struct buffer *out, const char *text)
{
    for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
        uint32_t character;

        bytes = harmless_read(text, left, &character);
        if (!harmless_is(character))
            buffer_puts(out, "?");
        else if (*text == '&')
            buffer_puts(out, "&amp;");
        else if (*text == '<')
            buffer_puts(out, "&lt;");
        else if (*text == '>')
            buffer_puts(out, "&gt;");
        else if (*text == '"')
            buffer_puts(out, "&quot;");
        else
            buffer_append(out, text, bytes);
    }
}

double svg_text_width(const char *text, double font_size)
{
    size_t characters = 0;

    for (; *text != '\0'; text++)
        characters += ((unsigned char)*text & 0xC0) != 0x80;
    return (double)characters * font_size * 0.55;
}

/* ` name="value"` */
static void put_length(struct buffer *out, const char *name, double value)
{
    buffer_printf(out, " %s=\"", name);
    svg_number(out, value);
    buffer_puts(out, "\"");
}

static void put_style(struct buffer *out)
{
    buffer_puts(out, "<style>\n.flyball{font-family:system-ui,sans-serif}\n");
    for (int i = 0; i < SVG_COLOR_COUNT; i++)
        buffer_printf(out, ".flyball .%s{color:%s}\n", colors[i].name, colors[i].light);
    buffer_puts(out, "@media (prefers-color-scheme:dark){\n");
    for (int i = 0; i < SVG_COLOR_COUNT; i++)
        buffer_printf(out, ".flyball .%s{color:%s}\n", colors[i].name, colors[i].dark);
    buffer_puts(out, "}\n</style>\n");
}

void svg_begin(struct buffer *out, double width, double height, const char *title, const char *description)
{
    buffer_puts(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flyball\" role=\"img\"");
    put_length(out, "width", width);
    put_length(out, "height", height);
    buffer_puts(out, " viewBox=\"0 0 ");
    svg_number(out, width);
    buffer_puts(out, " ");
    svg_number(out, height);
    buffer_puts(out, "\">\n<title>");
    svg_escape(out, title);
    buffer_puts(out, "</title>\n<desc>");
    svg_escape(out, description);
    buffer_puts(out, "</desc>\n");
    put_style(out);
}

void svg_end(struct buffer *out)
{
    buffer_puts(out, "</svg>\n");
}

void svg_text(struct buffer *out, double x, double y, const struct svg_font *font, const char *text)
{
    buffer_printf(out, "<text class=\"%s\" fill=\"currentColor\"", colors[font->color].name);
    put_length(out, "x", x);
    put_length(out, "y", y);
    put_length(out, "font-size", font->size);
    if (font->anchor != SVG_START)
        buffer_printf(out, " text-anchor=\"%s\"", anchors[font->anchor]);
    buffer_puts(out, font->bold ? " font-weight=\"600\">" : ">");
    svg_escape(out, text);
    buffer_puts(out, "</text>\n");
}

void svg_segment(struct buffer *out, double x1, double y1, double x2, double y2, enum svg_color color,
                 double width)
{
    buffer_printf(out, "<line class=\"%s\" stroke=\"currentColor\"", colors[color].name);
    put_length(out, "x1", x1);
    put_length(out, "y1", y1);
    put_length(out, "x2", x2);
    put_length(out, "y2", y2);
    put_length(out, "stroke-width", width);
    buffer_puts(out, "/>\n");
}

/* Corners of a shape around its centre, in radii; the area is about that of the circle. */
struct outline {
    int count;
    double corners[10][2];
};

static const struct outline outlines[] = {
    [SVG_SQUARE] = {4, {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}},
    [SVG_DIAMOND] = {4, {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}}},
    [SVG_TRIANGLE] = {3, {{0, -1.3}, {1.2, 0.8}, {-1.2, 0.8}}},
    [SVG_STAR] = {10,
                  {{0, -1.5},
                   {0.37, -0.51},
                   {1.43, -0.46},
                   {0.6, 0.19},
                   {0.88, 1.21},
                   {0, 0.63},
                   {-0.88, 1.21},
                   {-0.6, 0.19},
                   {-1.43, -0.46},
                   {-0.37, -0.51}}},
};

void svg_shape(struct buffer *out, enum svg_shape shape, double x, double y, double radius,
               enum svg_color color, const char *tip)
{
    bool round = shape == SVG_CIRCLE || shape == SVG_RING;
    const char *paint = shape == SVG_RING ? "fill=\"none\" stroke-width=\"2\" stroke=\"currentColor\""
                                          : "fill=\"currentColor\"";

    if (shape == SVG_NO_SHAPE)
        return;
    buffer_printf(out, "<%s class=\"%s\" %s", round ? "circle" : "path", colors[color].name, paint);
    if (round) {
        put_length(out, "cx", x);
        put_length(out, "cy", y);
        put_length(out, "r", radius);
    } else {
        buffer_puts(out, " d=\"M");
        for (int i = 0; i < outlines[shape].count; i++)
            svg_point(out, x + outlines[shape].corners[i][0] * radius,
                      y + outlines[shape].corners[i][1] * radius);
        buffer_puts(out, "z\"");
    }
    if (tip != NULL) {
        buffer_puts(out, "><title>");
        svg_escape(out, tip);
        buffer_printf(out, "</title></%s>\n", round ? "circle" : "path");
    } else
        buffer_puts(out, "/>\n");
}

void svg_line_begin(struct buffer *out, enum svg_color color, enum svg_dash dash, double width)
{
    buffer_printf(out, "<path class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-linejoin=\"round\"",
                  colors[color].name);
    put_length(out, "stroke-width", width);
    if (dash != SVG_SOLID)
        buffer_printf(out, " stroke-dasharray=\"%s\"", dashes[dash]);
    buffer_puts(out, " d=\"M");
}

void svg_area_begin(struct buffer *out, enum svg_color color)
{
    buffer_printf(out, "<path class=\"%s\" fill=\"currentColor\" fill-opacity=\"0.2\" d=\"M",
                  colors[color].name);
}

void svg_point(struct buffer *out, double x, double y)
{
    if (out->length > 0 && out->data[out->length - 1] != 'M')
        buffer_puts(out, " ");
    svg_number(out, x);
    buffer_puts(out, ",");
    svg_number(out, y);
}

void svg_line_end(struct buffer *out)
{
    buffer_puts(out, "\"/>\n");
}
