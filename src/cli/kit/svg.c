/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every element takes its colour from a class and paints with currentColor, which also works in
 * viewers that do not support variables in style sheets.
 */
#include "cli/kit/svg.h"

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

static const double border = 2.0;    /* px around the picture without text */
static const double smallest = 0.75; /* share of its size to which a text shrinks before it is cut short */
static const char ellipsis[] = "\xE2\x80\xA6";

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

static void escape_bytes(struct buffer *out, const char *text, size_t count)
{
    for (size_t left = count, bytes; left > 0; text += bytes, left -= bytes) {
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

void svg_escape(struct buffer *out, const char *text)
{
    escape_bytes(out, text, strlen(text));
}

/* Widths of characters as shares of the font's size, those of DejaVu Sans and Verdana rounded up. */
static const struct {
    const char *characters;
    double width;
} glyphs[] = {
    {"iIjl.,:;'|!()[]/\\ ", 0.46},
    {"frt-`\"*", 0.56},
    {"abcdeghknopqsuvxyz0123456789?_$", 0.65},
    {"ABCDEFGHJKLMNOPQRSTUVXYZ&<>=+~#^{}", 0.85},
    {"mwMW@%", 1.08},
};
enum { GLYPHS = sizeof glyphs / sizeof glyphs[0] };
static const double usual_glyph = 0.9, wide_glyph = 1.05, bold_factor = 1.12;
static const uint32_t first_wide = 0x1000; /* ideographs, and other characters that are as wide */

/*
 * Returns the length in bytes of the character there, and its width; a character that cannot be
 * shown becomes '?'.
 */
static size_t read_glyph(const char *text, size_t left, double *out_width)
{
    uint32_t character;
    size_t bytes = harmless_read(text, left, &character);

    if (!harmless_is(character))
        character = '?';
    *out_width = character >= first_wide ? wide_glyph : usual_glyph;
    for (int i = 0; i < GLYPHS && character < 0x80; i++) {
        if (strchr(glyphs[i].characters, (int)character) != NULL) {
            *out_width = glyphs[i].width;
            break;
        }
    }
    return bytes;
}

double svg_text_width(const char *text, double font_size)
{
    double sum = 0.0, width;

    for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
        bytes = read_glyph(text, left, &width);
        sum += width;
    }
    return sum * font_size;
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

/* Returns how many bytes of a text, in whole characters, fit into that width. */
static size_t bytes_within(const char *text, double room, double size)
{
    size_t left = strlen(text), kept = 0, bytes;
    double sum = 0.0, width;

    for (; left > 0; kept += bytes, left -= bytes) {
        bytes = read_glyph(text + kept, left, &width);
        sum += width * size;
        if (sum > room)
            break;
    }
    return kept;
}

size_t svg_line_bytes(const char *text, double room, const struct svg_font *font)
{
    size_t fits = bytes_within(text, room, font->size * (font->bold ? bold_factor : 1.0)), end = fits;

    if (text[fits] == '\0')
        return fits;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : fits > 0 ? fits : strlen(text);
}

/* Returns where a text of that width begins or ends, moved so that it stays within the picture. */
static double moved(double x, double width, enum svg_anchor anchor, double picture_width)
{
    static const double shares[] = {[SVG_START] = 0.0, [SVG_MIDDLE] = 0.5, [SVG_END] = 1.0};
    double before = width * shares[anchor];

    return fmax(fmin(x, picture_width - border - (width - before)), border + before);
}

/* Returns a smaller size for a text that is too wide, as long as it stays readable; sizes are tenths. */
static double fitting_size(const char *text, double size, double factor, double room)
{
    double fits = floor(room / svg_text_width(text, factor) * 10.0) / 10.0;

    return fmin(size, fmax(fits, size * smallest));
}

void svg_text(struct buffer *out, double picture_width, double x, double y, const struct svg_font *font,
              const char *text)
{
    double factor = font->bold ? bold_factor : 1.0, room = picture_width - 2.0 * border;
    double shown = fitting_size(text, font->size, factor, room), size = shown * factor;
    double width = svg_text_width(text, size);
    bool whole = width <= room;

    buffer_printf(out, "<text class=\"%s\" fill=\"currentColor\"", colors[font->color].name);
    put_length(out, "x", moved(x, fmin(width, room), font->anchor, picture_width));
    put_length(out, "y", y);
    put_length(out, "font-size", shown);
    if (font->anchor != SVG_START)
        buffer_printf(out, " text-anchor=\"%s\"", anchors[font->anchor]);
    buffer_puts(out, font->bold ? " font-weight=\"600\">" : ">");
    if (whole) {
        svg_escape(out, text);
    } else {
        buffer_puts(out, "<title>");
        svg_escape(out, text);
        buffer_puts(out, "</title>");
        escape_bytes(out, text, bytes_within(text, room - wide_glyph * size, size));
        buffer_puts(out, ellipsis);
    }
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
