/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: ticks, positions, escaping, and whole small pictures. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/kit/chart.h"
#include "cli/kit/picture.h"

enum { PICTURE_MAX = 1 << 20 };

static void join_ticks(const struct axis_ticks *ticks, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < ticks->count; i++) {
        char label[AXIS_LABEL_MAX];

        axis_label(ticks, i, label);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? " " : "", label);
        assert_true(length < size);
    }
}

static void test_ticks(void **state)
{
    static const double sizes[] = {8, 16, 24, 32, 48, 56, 64, 128};
    static const struct {
        struct chart_axis axis;
        double least, greatest, length_px, apart_px;
        const char *labels;
    } rows[] = {
        {{.tight = true}, 0, 10, 100, 20, "0 2 4 6 8 10"},
        {{.tight = true}, 0, 1, 100, 20, "0.0 0.2 0.4 0.6 0.8 1.0"},
        {{.tight = true}, -0.03, 0.05, 100, 20, "-0.02 0.00 0.02 0.04"},
        {{.tight = true}, 3, 7, 100, 30, "4 6"},
        {{.from_zero = true, .tight = true}, 3, 7, 100, 30, "0 5"},
        {{.tight = true}, 1e12, 3e12, 100, 25, "1e+12 1.5e+12 2e+12 2.5e+12 3e+12"},
        {{.tight = true}, 1e-12, 3e-12, 100, 50, "1e-12 2e-12 3e-12"},
        {{.logarithmic = true, .tight = true}, 1, 1000, 300, 20, "1 2 5 10 20 50 100 200 500 1000"},
        {{.logarithmic = true, .tight = true}, 1, 1000, 100, 20, "1 10 100 1000"},
        {{.logarithmic = true, .tight = true}, 1e-3, 1e5, 80, 20, "0.001 0.1 10 1000 100000"},
        {{.logarithmic = true, .tight = true}, 3, 4.5, 100, 30, "3.0 3.5 4.0 4.5"},
        {{.logarithmic = true, .tight = true, .ticks = sizes, .tick_count = 8},
         8,
         128,
         100,
         14,
         "8 16 24 48 128"},
        {{.ticks = sizes, .tick_count = 8}, 20, 60, 400, 14, "24 32 48 56"},
        /* One value, and none. */
        {{0}, 10, 10, 100, 30, "5 10 15"},
        {{0}, 0, 0, 100, 50, "-1 0 1"},
        {{.logarithmic = true}, 100, 100, 100, 50, "100 200"},
        {{0}, INFINITY, -INFINITY, 100, 50, "0.0 0.5 1.0"},
        /* Differences that no picture can show count as none. */
        {{.tight = true}, 1e6, 1e6 + 1e-6, 100, 50, "500000 1000000 1500000"},
        {{.tight = true}, 0, 1e-300, 100, 50, "-1 0 1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct axis_range range =
            axis_range_of(&rows[i].axis, rows[i].least, rows[i].greatest, 0, rows[i].length_px);
        struct axis_ticks ticks;
        char labels[512];

        axis_choose_ticks(&rows[i].axis, &range, rows[i].apart_px, &ticks);
        join_ticks(&ticks, labels, sizeof labels);
        if (strcmp(labels, rows[i].labels) != 0)
            fail_msg("row %zu: ticks '%s', expected '%s'", i, labels, rows[i].labels);
    }
}

/* Whatever the range: few ticks, ascending, inside, far enough apart, and values in their order. */
static void test_axis_properties(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct chart_axis axis = {
            .logarithmic = round % 3 == 0, .from_zero = round % 5 == 0, .tight = round % 2 == 0};
        double size = exp((test_uniform(&random) - 0.5) * (round % 7 ? 20 : 600));
        double least =
            size * (axis.logarithmic ? 0.001 + test_uniform(&random) : test_uniform(&random) - 0.5);
        double greatest = least + size * test_uniform(&random) * (round % 11 ? 1.0 : 1e-12);
        struct axis_range range = axis_range_of(&axis, least, greatest, 300, 100);
        struct axis_ticks ticks;

        assert_true(axis_shows(&axis, least) && axis_shows(&axis, greatest));
        assert_true(range.low < range.high);
        axis_choose_ticks(&axis, &range, 30, &ticks);
        assert_true(ticks.count <= 8);
        for (size_t i = 0; i < ticks.count; i++) {
            double at = axis_position(&range, ticks.values[i]);

            assert_true(at >= 100 - 1e-3 && at <= 300 + 1e-3);
            assert_true(i == 0 || ticks.values[i] > ticks.values[i - 1]);
        }
        assert_true(axis_position(&range, greatest) <= axis_position(&range, least));
        assert_true(axis_position(&range, greatest) >= 100 - 1e-6);
        assert_true(axis_position(&range, least) <= 300 + 1e-6);
    }
}

static void test_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"},     {-0.0, "0"},     {0.04, "0"},     {-0.04, "0"},    {0.05, "0.1"},
                {12, "12"},   {-3.14, "-3.1"}, {9.96, "10"},    {719.95, "720"}, {NAN, "0"},
                {1e300, "0"}, {-0.96, "-1"},   {100.2, "100.2"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buffer out;

        buffer_init(&out, PICTURE_MAX);
        svg_number(&out, rows[i].value);
        assert_string_equal(out.data, rows[i].text);
        buffer_deinit(&out);
    }
}

static void test_escaping(void **state)
{
    static const struct {
        const char *text, *escaped;
    } rows[] = {
        {"plain", "plain"},
        {"a<b>&\"c\"", "a&lt;b&gt;&amp;&quot;c&quot;"},
        {"]]>", "]]&gt;"},
        {"\xce\xb7 = 0.5 \xe2\x80\x93 \xf0\x9f\x94\x8b", "\xce\xb7 = 0.5 \xe2\x80\x93 \xf0\x9f\x94\x8b"},
        {"tab\tbell\ax", "tab?bell?x"},
        {"\xff\xfe", "??"},
        {"cut\xe2\x80", "cut??"},
        {"long\xc0\xaf", "long??"},
        {"half\xed\xa0\x80", "half???"},
        {"none\xef\xbf\xbf", "none?"},
        {"turned\xe2\x80\xaeround\xc2\x9b", "turned?round?"},
        {"far\xf4\x90\x80\x80", "far????"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buffer out;

        buffer_init(&out, PICTURE_MAX);
        svg_escape(&out, rows[i].text);
        assert_string_equal(out.data, rows[i].escaped);
        buffer_deinit(&out);
    }
}

static void draw(const struct chart *chart, struct buffer *out)
{
    struct fly_error error;

    buffer_init(out, PICTURE_MAX);
    if (chart_draw(chart, out, &error) < 0)
        fail_msg("%s", error.text);
}

/* The document behind its head of title, description and style. */
static const char *body(const struct buffer *picture)
{
    const char *end = strstr(picture->data, "</style>\n");

    assert_non_null(end);
    return end + strlen("</style>\n");
}

/* What the picture of the next test is made of; look at it in a browser before changing it. */
// clang-format off
static const char golden[] =
    "<text class=\"ink\" fill=\"currentColor\" x=\"12\" y=\"25\" font-size=\"15\" font-weight=\"600\">Small &amp; golden</text>\n"
    "<path class=\"blue\" fill=\"none\" stroke=\"currentColor\" stroke-linejoin=\"round\" stroke-width=\"2\" stroke-dasharray=\"6 3\" d=\"M12,43 36,43\"/>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"42\" y=\"47\" font-size=\"12\">steps</text>\n"
    "<line class=\"faint\" stroke=\"currentColor\" x1=\"43.4\" y1=\"138\" x2=\"176\" y2=\"138\" stroke-width=\"0.3\"/>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"39.4\" y=\"142\" font-size=\"12\" text-anchor=\"end\">1</text>\n"
    "<line class=\"faint\" stroke=\"currentColor\" x1=\"43.4\" y1=\"78\" x2=\"176\" y2=\"78\" stroke-width=\"0.3\"/>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"39.4\" y=\"82\" font-size=\"12\" text-anchor=\"end\">100</text>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"12\" y=\"70\" font-size=\"12\">y (J), logarithmic from 1</text>\n"
    "<line class=\"faint\" stroke=\"currentColor\" x1=\"111.7\" y1=\"138\" x2=\"111.7\" y2=\"142\" stroke-width=\"1\"/>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"111.7\" y=\"156\" font-size=\"12\" text-anchor=\"middle\">2</text>\n"
    "<line class=\"faint\" stroke=\"currentColor\" x1=\"47.4\" y1=\"138\" x2=\"176\" y2=\"138\" stroke-width=\"1\"/>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"111.7\" y=\"174\" font-size=\"12\" text-anchor=\"middle\">x (s), from 1</text>\n"
    "<path class=\"blue\" fill=\"none\" stroke=\"currentColor\" stroke-linejoin=\"round\" stroke-width=\"2\" stroke-dasharray=\"6 3\" d=\"M47.4,138 111.7,138 111.7,108 176,108 176,78\"/>\n"
    "<path class=\"orange\" fill=\"currentColor\" d=\"M44.3,134.9 50.6,134.9 50.6,141.2 44.3,141.2z\"><title>a</title></path>\n"
    "<path class=\"orange\" fill=\"currentColor\" d=\"M108.6,104.9 114.9,104.9 114.9,111.2 108.6,111.2z\"><title>b&lt;c</title></path>\n"
    "<path class=\"orange\" fill=\"currentColor\" d=\"M172.9,74.9 179.2,74.9 179.2,81.2 172.9,81.2z\"><title>d</title></path>\n"
    "<line class=\"ink\" stroke=\"currentColor\" x1=\"115.2\" y1=\"111.5\" x2=\"120.1\" y2=\"116.4\" stroke-width=\"1\"/>\n"
    "<text class=\"ink\" fill=\"currentColor\" x=\"123.1\" y=\"125.9\" font-size=\"12\">middle</text>\n"
    "</svg>\n";
// clang-format on

static void test_golden_picture(void **state)
{
    static const double x[] = {1, 2, 3}, y[] = {1, 10, 100};
    static const char *const tips[] = {"a", "b<c", "d"};
    static const struct chart_series series[] = {
        {.name = "steps",
         .kind = CHART_STEPS,
         .color = SVG_BLUE,
         .dash = SVG_DASHED,
         .x = x,
         .y = y,
         .count = 3},
        {.kind = CHART_POINTS,
         .color = SVG_ORANGE,
         .shape = SVG_SQUARE,
         .x = x,
         .y = y,
         .tips = tips,
         .count = 3},
    };
    static const struct chart_note notes[] = {{2, 10, "middle"}};
    static const struct chart_panel panel = {.height = 60,
                                             .x = {.label = "x (s)", .tight = true},
                                             .y = {.label = "y (J)", .logarithmic = true, .tight = true},
                                             .series = series,
                                             .series_count = 2,
                                             .notes = notes,
                                             .note_count = 1};
    static const struct chart chart = {"Small & golden", "Words.", 200, &panel, 1};
    struct buffer picture;

    (void)state;
    draw(&chart, &picture);
    check_contains(picture.data, "<title>Small &amp; golden</title>\n<desc>Words.</desc>\n");
    check_contains(picture.data, "@media (prefers-color-scheme:dark){");
    assert_string_equal(body(&picture), golden);
    buffer_deinit(&picture);
}

static void test_degenerate_pictures(void **state)
{
    static const double one[] = {5}, same[] = {7, 7, 7}, at[] = {1, 2, 3};
    static const double gaps[] = {1, NAN, 3, INFINITY, 5, -1, 0}, along[] = {1, 2, 3, 4, 5, 6, 7};
    static const double absurd[] = {1e300, -1e300, 1e-320};
    static const struct {
        const double *x, *y;
        size_t count;
        bool known;
    } rows[] = {
        {one, one, 0, false},  {one, one, 1, true},    {at, same, 3, true},
        {same, same, 3, true}, {along, gaps, 7, true}, {at, absurd, 3, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows) * 8; i++) {
        enum chart_kind kind = (enum chart_kind)(i % 4);
        const double *x = rows[i / 8].x, *y = rows[i / 8].y;
        struct chart_series series = {.name = "s",
                                      .kind = kind,
                                      .shape = SVG_STAR,
                                      .x = x,
                                      .y = y,
                                      .y_high = y,
                                      .count = rows[i / 8].count};
        struct chart_panel panel = {
            .height = 100, .x = {.label = "x"}, .y = {.label = "y"}, .series = &series, .series_count = 1};
        struct chart chart = {.title = "t", .description = "d", .panels = &panel, .panel_count = 1};
        struct buffer picture;

        panel.y.logarithmic = i % 8 >= 4;
        draw(&chart, &picture);
        assert_null(strstr(body(&picture), "nan"));
        assert_null(strstr(body(&picture), "inf"));
        if (!rows[i / 8].known)
            check_contains(picture.data, "nothing to show");
        buffer_deinit(&picture);
    }
}

static void test_unknown_values_break_lines(void **state)
{
    static const double x[] = {1, 2, 3, 4, 5}, y[] = {1, 2, NAN, 4, 5};
    struct chart_series series = {.kind = CHART_LINE, .color = SVG_GREEN, .x = x, .y = y, .count = 5};
    struct chart_panel panel = {
        .height = 100, .x = {.label = "x"}, .y = {.label = "y"}, .series = &series, .series_count = 1};
    struct chart chart = {.title = "t", .description = "d", .panels = &panel, .panel_count = 1};
    struct buffer picture;
    size_t lines = 0;

    (void)state;
    draw(&chart, &picture);
    for (const char *at = picture.data; (at = strstr(at, "<path class=\"green\"")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 2);
    buffer_deinit(&picture);
}

static void test_limits(void **state)
{
    static const struct chart_note notes[CHART_NOTES_MAX + 1];
    struct chart_panel panel = {.height = 100,
                                .x = {.label = "x"},
                                .y = {.label = "y"},
                                .notes = notes,
                                .note_count = CHART_NOTES_MAX + 1};
    struct chart chart = {.title = "t", .description = "d", .panels = &panel, .panel_count = 1};
    struct buffer picture;
    struct fly_error error;

    (void)state;
    buffer_init(&picture, PICTURE_MAX);
    assert_int_equal(chart_draw(&chart, &picture, &error), FLY_ELIMIT);
    panel.note_count = 0;
    buffer_deinit(&picture);
    buffer_init(&picture, 100);
    assert_int_equal(chart_draw(&chart, &picture, &error), FLY_ELIMIT);
    check_contains(error.text, "larger than 100 bytes");
    buffer_deinit(&picture);
}

/* Rows without points are left out; what there is no memory for is an error at the end, and no file. */
static void test_pictures(void **state)
{
    static const size_t memories[] = {1 << 20, 1 << 10};
    char path[] = "/tmp/flyball-picture-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < COUNT(memories); i++) {
        struct picture picture;
        struct picture_panel *panel;
        struct picture_row *row;
        struct fly_error error;
        int code;

        picture_begin(&picture, memories[i]);
        panel = picture_panel(&picture,
                              &(struct chart_panel){.height = 100, .x = {.label = "x"}, .y = {.label = "y"}});
        (void)picture_row(&picture, panel, &(struct chart_series){.name = "nothing", .kind = CHART_LINE});
        row = picture_row(&picture, panel, &(struct chart_series){.name = "much", .kind = CHART_LINE});
        for (int x = 0; x < 1000; x++)
            picture_point(&picture, row, x, x, NULL);
        picture_note(panel, 999, 999, picture_text(&picture, "the %s", "last"));
        assert_int_equal(row->series.count, i == 0 ? 1000 : 0);
        code = picture_save(&picture, path, "t", "d", &error);
        assert_int_equal(code, i == 0 ? 0 : FLY_ENOMEM);
        if (i == 0) {
            char text[1 << 16];
            FILE *file = fopen(path, "r");

            assert_non_null(file);
            text[fread(text, 1, sizeof text - 1, file)] = '\0';
            fclose(file);
            check_contains(text, ">much</text>");
            check_contains(text, ">the last</text>");
            assert_null(strstr(text, "nothing"));
        }
    }
    unlink(path);
}

/* The attribute of an element, as a number. */
static double number_of(const char *element, const char *name)
{
    char text[32];
    const char *at;

    snprintf(text, sizeof text, " %s=\"", name);
    at = strstr(element, text);
    assert_non_null(at);
    return strtod(at + strlen(text), NULL);
}

/* Every text of a picture lies within it, by the width of its characters. */
static void check_extents(const struct buffer *picture, double width)
{
    for (const char *at = picture->data; (at = strstr(at, "<text ")) != NULL; at++) {
        char text[1024];
        const char *from = strchr(at, '>') + 1, *to = strstr(at, "</text>"), *tip = strstr(from, "</title>");
        double size = number_of(at, "font-size"), x = number_of(at, "x"), before = 0.0, length;

        if (tip != NULL && tip < to)
            from = tip + strlen("</title>");
        assert_true((size_t)(to - from) < sizeof text);
        snprintf(text, (size_t)(to - from) + 1, "%s", from);
        length = svg_text_width(text, size);
        if (strstr(at, "text-anchor=\"end\"") != NULL && strstr(at, "text-anchor=\"end\"") < from)
            before = length;
        if (strstr(at, "text-anchor=\"middle\"") != NULL && strstr(at, "text-anchor=\"middle\"") < from)
            before = length / 2.0;
        if (x - before < -0.1 || x - before + length > width + 0.1)
            fail_msg("'%s' from %g to %g of %g px", text, x - before, x - before + length, width);
    }
}

/* However long and wide they are. */
static void test_texts_stay_within_the_picture(void **state)
{
    static const char *const texts[] = {
        "a", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
        "/home/ada/experiments/2026-11-22/resnet50/with/a/very/long/path/to/a/profile/of/many/limits/"
        "profile.json",
        "\xE7\x94\xB5\xE5\x8A\x9B\xE7\x94\xB5\xE5\x8A\x9B\xE7\x94\xB5\xE5\x8A\x9B\xE7\x94\xB5\xE5\x8A\x9B\xE7"
        "\x94\xB5\xE5\x8A\x9B",
        "\xC3\xA4\xC3\xB6\xC3\xBC broken \xFF\xC3 \x80\x80\x80\x80\x80\x80\x80\x80 bytes and a long tail "
        "that goes on, and on, and on, to the "
        "end"};
    static const double x[] = {1, 1e6}, y[] = {1e-9, 1e9};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        for (double width = 160; width <= 720; width += 80) {
            const struct chart_series series[] = {
                {.name = texts[i], .kind = CHART_LINE, .x = x, .y = y, .count = 2},
                {.name = texts[i], .kind = CHART_POINTS, .shape = SVG_STAR, .x = x, .y = y, .count = 2}};
            const struct chart_note notes[] = {{1, 1e-9, texts[i]}, {1e6, 1e9, texts[i]}};
            const struct chart_panel panel = {.title = texts[i],
                                              .height = 80,
                                              .x = {.label = texts[i]},
                                              .y = {.label = texts[i]},
                                              .series = series,
                                              .series_count = 2,
                                              .notes = notes,
                                              .note_count = 2};
            const struct chart chart = {texts[i], "Words.", width, &panel, 1};
            struct buffer picture;

            draw(&chart, &picture);
            check_extents(&picture, width);
            buffer_deinit(&picture);
        }
    }
}

/* A title is there as a whole, on lines that fit; an axis that does not begin at 0 says where it does. */
static void test_titles_and_beginnings(void **state)
{
    static const double x[] = {2, 4}, y[] = {0, 1};
    const struct chart_series series = {.kind = CHART_LINE, .x = x, .y = y, .count = 2};
    const struct chart_panel panel = {.title = "a panel whose title is longer than one line of it can be",
                                      .height = 80,
                                      .x = {.label = "x", .tight = true},
                                      .y = {.label = "y", .from_zero = true},
                                      .series = &series,
                                      .series_count = 1};
    const struct chart chart = {"a picture whose title takes two lines", "Words.", 240, &panel, 1};
    struct buffer picture;

    (void)state;
    draw(&chart, &picture);
    check_extents(&picture, 240);
    check_contains(picture.data, ">a picture whose title</text>\n");
    check_contains(picture.data, ">takes two lines</text>\n");
    check_contains(picture.data, ">a panel whose ");
    check_contains(picture.data, " be</text>\n");
    assert_null(strstr(picture.data, "\xE2\x80\xA6"));
    check_contains(picture.data, ">x, from 2</text>\n");
    check_contains(picture.data, ">y</text>\n");
    buffer_deinit(&picture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_axis_properties),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_golden_picture),
        cmocka_unit_test(test_degenerate_pictures),
        cmocka_unit_test(test_unknown_values_break_lines),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_titles_and_beginnings),
        cmocka_unit_test(test_texts_stay_within_the_picture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
