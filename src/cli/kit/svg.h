/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_SVG_H
#define FLYBALL_CLI_KIT_SVG_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * An SVG picture, written element by element into a buffer.
 *
 * The picture has no background, scales with the page, and names its colours
 * twice: for light pages and, by the media feature prefers-color-scheme, for
 * dark ones. A reader whose page and system disagree still sees it, since every
 * colour stands out from white and from black. The hues are those of Okabe and
 * Ito, told apart by all kinds of colour vision; callers vary shape or dash
 * with the colour all the same. No scripts, no references to elsewhere.
 *
 * The bytes are the same everywhere: lengths are rounded to a tenth and written
 * without the locale. Texts are escaped; what XML cannot hold becomes '?'.
 *
 *     struct buffer picture;
 *     buffer_init(&picture, 1 << 20);
 *     svg_begin(&picture, 640, 400, "Energy and time", "Each point is one choice.");
 *     svg_shape(&picture, SVG_CIRCLE, 20, 30, 4, SVG_BLUE, "batch 32 at 250 W");
 *     svg_end(&picture);
 *     if (picture.error < 0) ...
 */

enum svg_color {
    SVG_INK,
    SVG_FAINT,
    SVG_BLUE,
    SVG_ORANGE,
    SVG_GREEN,
    SVG_PURPLE,
    SVG_YELLOW,
    SVG_COLOR_COUNT
};

enum svg_shape { SVG_NO_SHAPE, SVG_CIRCLE, SVG_SQUARE, SVG_DIAMOND, SVG_TRIANGLE, SVG_RING, SVG_STAR };

enum svg_dash { SVG_SOLID, SVG_DASHED, SVG_DOTTED, SVG_DASH_DOT, SVG_DASH_COUNT };

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

/* How a text is set; y is its base line. */
struct svg_font {
    enum svg_anchor anchor;
    enum svg_color color;
    double size; /* px */
    int bold;
};

enum { SVG_FONT_SIZE = 12 };

/* Opens the document; title and description are for those who cannot see it. */
void svg_begin(struct buffer *out, double width, double height, const char *title, const char *description);
void svg_end(struct buffer *out);

/*
 * Sets a text within a picture of that width: one that would run over its border is moved; one that is
 * wider than the picture is made smaller, by a quarter at most, and what is wider still ends with an ellipsis
 * and is whole under the pointer.
 */
void svg_text(struct buffer *out, double picture_width, double x, double y, const struct svg_font *font,
              const char *text);
void svg_segment(struct buffer *out, double x1, double y1, double x2, double y2, enum svg_color color,
                 double width);

/* `tip` is shown under the pointer by browsers; NULL: none. */
void svg_shape(struct buffer *out, enum svg_shape shape, double x, double y, double radius,
               enum svg_color color, const char *tip);

/* A line or, filled, an area: begin, its points in order, end. */
void svg_line_begin(struct buffer *out, enum svg_color color, enum svg_dash dash, double width);
void svg_area_begin(struct buffer *out, enum svg_color color);
void svg_point(struct buffer *out, double x, double y);
void svg_line_end(struct buffer *out);

/* Appends a length, rounded to a tenth: "12", "0.5", "-3.1". */
void svg_number(struct buffer *out, double value);

/* Appends a text, escaped for element content and attributes. */
void svg_escape(struct buffer *out, const char *text);

/* How wide a text is at most, in px, in the usual fonts without serifs, of which this is a wide one. */
double svg_text_width(const char *text, double font_size);

#endif
