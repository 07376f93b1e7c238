/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_SVG_H
#define FLYBALL_CLI_KIT_SVG_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * An SVG picture, written element by element into a buffer.
 *
 * The picture has no background, scales with the page, and names each colour twice: for light
 * pages and, by the media feature prefers-color-scheme, for dark ones. It is visible even if page
 * and system disagree, since every colour stands out from white and from black. The hues are
 * those of Okabe and Ito, which all kinds of colour vision can tell apart; callers still vary
 * shape or dash together with the colour. No scripts, and no references to other files.
 *
 * The bytes are the same everywhere: lengths are rounded to a tenth and written without the
 * locale. Texts are escaped; characters that XML does not allow become '?'.
 *
 *     struct buffer picture;
 *
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

/* How to set a text; y is its base line. */
struct svg_font {
    enum svg_anchor anchor;
    enum svg_color color;
    double size; /* px */
    int bold;
};

enum { SVG_FONT_SIZE = 12 };

/* Opens the document. Title and description are for people who cannot see it. */
void svg_begin(struct buffer *out, double width, double height, const char *title, const char *description);
void svg_end(struct buffer *out);

/* Returns how many bytes of a text to put on a line of that width, up to a blank where there is one. */
size_t svg_line_bytes(const char *text, double room, const struct svg_font *font);

/*
 * Sets a text within a picture of that width. A text that would cross the border is moved. A text
 * wider than the picture is made smaller, by a quarter at most; if it is still wider, it ends
 * with an ellipsis and is shown in full under the pointer.
 */
void svg_text(struct buffer *out, double picture_width, double x, double y, const struct svg_font *font,
              const char *text);
void svg_segment(struct buffer *out, double x1, double y1, double x2, double y2, enum svg_color color,
                 double width);

/* Browsers show `tip` under the pointer; NULL: none. */
void svg_shape(struct buffer *out, enum svg_shape shape, double x, double y, double radius,
               enum svg_color color, const char *tip);

/* A line or, filled, an area: call begin, then its points in order, then end. */
void svg_line_begin(struct buffer *out, enum svg_color color, enum svg_dash dash, double width);
void svg_area_begin(struct buffer *out, enum svg_color color);
void svg_point(struct buffer *out, double x, double y);
void svg_line_end(struct buffer *out);

/* Appends a length, rounded to a tenth: "12", "0.5", "-3.1". */
void svg_number(struct buffer *out, double value);

/* Appends a text, escaped for element content and attributes. */
void svg_escape(struct buffer *out, const char *text);

/* Returns how wide a text is at most, in px, in the usual sans-serif fonts; it assumes a wide one. */
double svg_text_width(const char *text, double font_size);

#endif
