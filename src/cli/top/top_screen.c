/* SPDX-License-Identifier: Apache-2.0 */
/* What the live screen of `flyball top` shows. */
#include <curses.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/harmless.h"
#include "cli/kit/amount.h"
#include "cli/kit/live_screen.h"
#include "cli/top/top.h"

enum { TEXT_BYTES = 512, TEXT_MAX = 160, ROWS_LEAST = 4 };

static const double bytes_per_mib = 1 << 20;
static const char keys[] = "b by, s sort, a all, q quits";

struct screen {
    struct top *top;
    struct fly_error fault; /* of the last reading; code 0: none */
};

/* ---- cells; each leaves "-" where nothing is known ---- */

static void put_who(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    char who[TOP_WHO_MAX];
    const char *reason;

    if (top_who(group, top->wish.by, who, &reason) != NULL)
        snprintf(text, TEXT_MAX, "%s", who);
}

static void put_gpus(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    char gpus[TOP_GPUS_TEXT_MAX];

    (void)top;
    snprintf(text, TEXT_MAX, "%.150s", top_gpus_text(group, gpus));
}

static void put_power(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->power_w))
        amount_power(group->power_w, text);
}

static void put_energy(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->energy_j))
        amount_energy(group->energy_j, NAN, "", text);
}

static void put_bound(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->half_width_j) && group->energy_j > 0)
        amount_share(group->half_width_j / group->energy_j, text);
}

static void put_time(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->time_s))
        amount_time(round(group->time_s), text);
}

static void put_memory(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->memory_bytes))
        snprintf(text, TEXT_MAX, "%.0f MiB", group->memory_bytes / bytes_per_mib);
}

static void put_pid(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->pid))
        snprintf(text, TEXT_MAX, "%.0f", group->pid);
}

static void put_text(const struct top_group *group, enum top_text which, char text[TEXT_MAX])
{
    if (group->texts[which] != NULL)
        snprintf(text, TEXT_MAX, "%s", group->texts[which]);
}

static void put_user(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    (void)top;
    if (!isnan(group->uid) && group->texts[TOP_TEXT_USER] == NULL)
        snprintf(text, TEXT_MAX, "%.0f", group->uid);
    put_text(group, TOP_TEXT_USER, text);
}

/* What of the rest is known, the most telling first. */
static void put_place(const struct top *top, const struct top_group *group, char text[TEXT_MAX])
{
    static const enum top_text which[] = {TOP_TEXT_TRAINING_JOB, TOP_TEXT_POD, TOP_TEXT_SLURM_JOB,
                                          TOP_TEXT_RUNTIME};

    (void)top;
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++)
        if (group->texts[which[i]] != NULL) {
            snprintf(text, TEXT_MAX, "%s%s", which[i] == TOP_TEXT_SLURM_JOB ? "job " : "",
                     group->texts[which[i]]);
            return;
        }
}

static const struct figure {
    struct live_column column;
    bool by_process; /* shown only by process */
    void (*put)(const struct top *top, const struct top_group *group, char text[TEXT_MAX]);
} figures[] = {
    {{"who", -24, 1}, false, put_who},      {{"GPU", -6, 2}, false, put_gpus},
    {{"power", 8, 3}, false, put_power},    {{"energy", 10, 4}, false, put_energy},
    {{"+/-", 7, 6}, false, put_bound},      {{"PID", 8, 7}, true, put_pid},
    {{"user", -10, 5}, true, put_user},     {{"GPU time", 15, 9}, false, put_time},
    {{"memory", 11, 8}, false, put_memory}, {{"job, pod", -24, 10}, true, put_place},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static void draw_row(const struct top *top, const struct top_group *group, int line)
{
    int rank = live_columns_rank(&figures[0].column, FIGURES, sizeof figures[0]);

    move(line, 0);
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure *figure = &figures[i];
        char text[TEXT_MAX] = "-";

        if (figure->column.rank > rank || (figure->by_process && top->wish.by != TOP_BY_PROCESS))
            continue;
        if (group != NULL) {
            figure->put(top, group, text);
            harmless_make_ascii(text);
        }
        live_column_put(&figure->column, group != NULL ? text : NULL);
    }
}

/* ---- the GPUs ---- */

static void add_amount(char *text, double value, const char *format)
{
    size_t length = strlen(text);

    if (!isnan(value))
        snprintf(text + length, TEXT_BYTES - length, format, value);
}

static void draw_gpu(const struct top_gpu *gpu, int line)
{
    char text[TEXT_BYTES];

    snprintf(text, sizeof text, "GPU %llu  ", (unsigned long long)gpu->index);
    if (isnan(gpu->figures.power_w))
        snprintf(text + strlen(text), sizeof text - strlen(text), "power -");
    add_amount(text, gpu->figures.power_w, "%.0f W");
    add_amount(text, gpu->figures.power_limit_w, " of %.0f W");
    add_amount(text, gpu->figures.utilization_percent, ", %.0f %%");
    add_amount(text, gpu->figures.temperature_c, ", %.0f C");
    if (gpu->name != NULL)
        snprintf(text + strlen(text), sizeof text - strlen(text), "  %.100s", gpu->name);
    harmless_make_ascii(text);
    attrset(A_DIM);
    mvaddnstr(line, 0, text, COLS);
    attrset(A_NORMAL);
}

/* Draws the answer, and the GPUs if that leaves most of the screen to the rows; returns the next line. */
static int draw_gpus(const struct top *top)
{
    size_t count = top->answer.gpu_count;
    char text[TOP_SENTENCE_MAX];

    mvaddnstr(1, 0, top_sentence(top, text), COLS);
    if (2 * count + ROWS_LEAST >= (size_t)LINES)
        return 2;
    for (size_t i = 0; i < count; i++)
        draw_gpu(&top->answer.gpus[i], 2 + (int)i);
    return 2 + (int)count;
}

/* ---- the screen ---- */

static void draw_rows(const struct top *top, int line, int end)
{
    size_t count = top->groups.count;
    size_t room = end > line ? (size_t)(end - line) : 0;
    size_t shown = count <= room ? count : room > 0 ? room - 1 : 0;

    for (size_t i = 0; i < shown; i++)
        draw_row(top, &top->groups.groups[i], line + (int)i);
    if (shown < count && room > 0)
        live_more_put(count - shown, "enlarge the window");
}

static void draw_fault(const struct fly_error *fault, bool color)
{
    char text[TEXT_BYTES];

    snprintf(text, sizeof text, "%s", fault->text);
    harmless_make_ascii(text);
    attrset(color ? (int)COLOR_PAIR(LIVE_HIGH) : A_BOLD);
    mvaddnstr(LINES - 1, 0, text, COLS);
    attrset(A_NORMAL);
}

static void draw(void *data, bool color)
{
    const struct screen *screen = data;
    const struct top *top = screen->top;
    char text[TEXT_BYTES];
    int line;

    snprintf(text, sizeof text, "flyball top: by %s, most %s first, every %g s%s", top_bys[top->wish.by],
             top_sorts[top->wish.sort], top->interval_s, top->wish.ended ? ", with what has ended" : "");
    live_heading_put(text, keys);
    line = draw_gpus(top);
    if (LINES > line) {
        attrset(A_BOLD);
        draw_row(top, NULL, line);
        attrset(A_NORMAL);
    }
    draw_rows(top, line + 1, screen->fault.code != 0 ? LINES - 1 : LINES);
    if (screen->fault.code != 0)
        draw_fault(&screen->fault, color);
}

static struct mono_time read_usage(void *data)
{
    struct screen *screen = data;

    screen->fault = (struct fly_error){.code = 0};
    screen->fault.code = top_read(screen->top, &screen->fault);
    return mono_after_s(mono_now(), screen->top->interval_s);
}

static bool take_key(void *data, int letter)
{
    struct top_wish *wish = &((struct screen *)data)->top->wish;

    switch (letter) {
    case 'b':
        wish->by = (enum top_by)((wish->by + 1) % TOP_BYS);
        return true;
    case 's':
        wish->sort = (enum top_sort)((wish->sort + 1) % TOP_SORTS);
        return true;
    case 'a':
        wish->ended = !wish->ended;
        return true;
    default:
        return false;
    }
}

int top_screen(struct top *top, struct fly_error *out_error)
{
    struct screen screen = {.top = top};
    const struct live_view view = {.color = cli_color(top->call),
                                   .read = read_usage,
                                   .draw = draw,
                                   .take_key = take_key,
                                   .data = &screen};

    return live_screen_show(&view, out_error);
}
