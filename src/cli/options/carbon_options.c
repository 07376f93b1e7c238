/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/carbon_options.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "base/text/iso_time.h"
#include "cli/options/knob_options.h"

enum { HOUR_TEXT = 5, HOURS = 24, MINUTES = 60 };

static int two_digits(const char *text)
{
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]))
        return -1;
    return 10 * (text[0] - '0') + (text[1] - '0');
}

/* Finds the next moment at which the clock shows "07:30". */
static bool next_at(const char *text, int64_t now_s, int64_t *out_s)
{
    int hour = two_digits(text), minute = two_digits(text + 3);
    time_t now = (time_t)now_s, then = now;
    struct tm today;

    if (text[2] != ':' || hour < 0 || hour >= HOURS || minute < 0 || minute >= MINUTES ||
        localtime_r(&now, &today) == NULL)
        return false;
    for (int day = today.tm_mday, end = day + 2; day < end && then <= now; day++) {
        today.tm_mday = day;
        today.tm_hour = hour;
        today.tm_min = minute;
        today.tm_sec = 0;
        today.tm_isdst = -1;
        then = mktime(&today);
        if (then == (time_t)-1)
            return false;
    }
    *out_s = then;
    return true;
}

/* Converts what a wall clock shows to a time, if that time exists in this machine's zone. */
static bool local_time(int64_t shown_s, int64_t *out_s)
{
    time_t shown = (time_t)shown_s, then;
    struct tm parts;

    if (gmtime_r(&shown, &parts) == NULL)
        return false;
    parts.tm_isdst = -1;
    then = mktime(&parts);
    if (then == (time_t)-1)
        return false;
    *out_s = then;
    return true;
}

bool finish_time_parse(const char *text, int64_t now_s, int64_t *out_s)
{
    struct iso_time time;

    if (strlen(text) == HOUR_TEXT)
        return next_at(text, now_s, out_s);
    if (!iso_time_parse(text, &time) || !time.timed)
        return false;
    if (!time.zoned)
        return local_time(time.s, out_s);
    *out_s = time.s;
    return true;
}

/* clang-format off */
static const struct cli_option pause_row[] = {
    {.name = "pause", .type = CLI_TEXT, .placeholder = "HOW",
     .help = "It can be paused: idle=25,checkpoint=2min,on=1h,off=30min says what it draws then in W, how "
             "long saving and restoring take, and how long it runs and pauses at least."}
};
/* clang-format on */
const struct cli_options carbon_pause_option = CLI_OPTIONS(pause_row);

/* clang-format off */
static const struct cli_option bound_rows[] = {
    {.name = "max-slowdown", .type = CLI_TEXT, .placeholder = "BOUND", .default_text = "3%",
     .help = "It takes at most so much more time than at the fastest limit: 3% or 1.03x."},
    {.name = "deadline", .type = CLI_TEXT, .placeholder = "TIME",
     .help = "It ends at most so long after its start, as 100h; in place of --max-slowdown."}
};
/* clang-format on */
const struct cli_options carbon_bound_options = CLI_OPTIONS(bound_rows);

/* clang-format off */
static const struct cli_option profile_row[] = {
    {.name = "profile", .type = CLI_TEXT, .placeholder = "PROFILE",
     .help = "Power and speed under each limit: a file of 'flyball profile', a CSV file of windows or "
             "rows, or traces:DIR,gpu,workload,batch."}
};
/* clang-format on */
const struct cli_options carbon_profile_option = CLI_OPTIONS(profile_row);

enum { WORD_MAX = 64 };

static const double day_s = 86400.0, duration_most_s = 366 * 86400.0, power_most_w = 1e9;

bool carbon_parse_duration(const char *text, double *out_s)
{
    size_t length = strlen(text);
    char number[WORD_MAX];
    double value;

    if (*text == 'P') {
        if (!iso_duration_parse(text, &value) || !(value > 0.0) || value > duration_most_s)
            return false;
    } else if (length > 1 && length < sizeof number && text[length - 1] == 'd') {
        memcpy(number, text, length - 1);
        number[length - 1] = '\0';
        if (!number_parse_double(number, &value))
            return false;
        value *= day_s;
        if (!(value > 0.0) || value > duration_most_s)
            return false;
    } else if (!span_parse(text, &value)) {
        return false;
    }
    *out_s = value;
    return true;
}

/* Takes the next pair of "KEY=VALUE,KEY=VALUE" and moves on. Returns false at a fault. */
static bool take_pair(const char **text, char key[WORD_MAX], char value[WORD_MAX])
{
    size_t key_length = strcspn(*text, "=,"), value_length;

    if ((*text)[key_length] != '=' || key_length >= WORD_MAX)
        return false;
    memcpy(key, *text, key_length);
    key[key_length] = '\0';
    *text += key_length + 1;
    value_length = strcspn(*text, ",");
    if (value_length == 0 || value_length >= WORD_MAX)
        return false;
    memcpy(value, *text, value_length);
    value[value_length] = '\0';
    *text += value_length;
    if (**text == ',')
        (*text)++;
    else
        return **text == '\0';
    return **text != '\0';
}

bool carbon_parse_objective(const char *text, struct carbon_objective *out_objective)
{
    static const char *const words[] = {"carbon", "money", "energy"};
    struct carbon_objective objective = {0};
    double *const weights[] = {&objective.per_g, &objective.per_money, &objective.per_kwh};
    char key[WORD_MAX], value[WORD_MAX];
    bool given[3] = {false};
    size_t i;

    for (i = 0; i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            *weights[i] = 1.0;
            *out_objective = objective;
            return true;
        }
    }
    while (*text != '\0') {
        double weight;

        if (!take_pair(&text, key, value) || !number_parse_double(value, &weight) || weight < 0.0 ||
            weight > 1e9)
            return false;
        for (i = 0; i < 3 && strcmp(key, words[i]) != 0; i++)
            continue;
        if (i == 3 || given[i])
            return false;
        *weights[i] = weight;
        given[i] = true;
    }
    if (objective.per_g + objective.per_money + objective.per_kwh <= 0.0)
        return false;
    *out_objective = objective;
    return true;
}

bool carbon_parse_pause(const char *text, struct carbon_pause *out_pause)
{
    static const char *const words[] = {"checkpoint", "on", "off"};
    struct carbon_pause pause = {.allowed = true, .idle_w = NAN};
    double *const times[] = {&pause.checkpoint_s, &pause.least_on_s, &pause.least_off_s};
    char key[WORD_MAX], value[WORD_MAX];
    bool given[3] = {false};

    while (*text != '\0') {
        size_t i;

        if (!take_pair(&text, key, value))
            return false;
        if (strcmp(key, "idle") == 0) {
            if (!isnan(pause.idle_w) || !number_parse_double(value, &pause.idle_w) || pause.idle_w < 0.0 ||
                pause.idle_w > power_most_w)
                return false;
            continue;
        }
        for (i = 0; i < 3 && strcmp(key, words[i]) != 0; i++)
            continue;
        if (i == 3 || given[i] || (strcmp(value, "0") != 0 && !carbon_parse_duration(value, times[i])))
            return false;
        given[i] = true;
    }
    if (isnan(pause.idle_w))
        return false;
    *out_pause = pause;
    return true;
}

int carbon_read_duration(const struct cli_call *call, const char *option, double *out_s,
                         struct fly_error *out_error)
{
    const char *text = cli_text(call, option);

    if (text == NULL || carbon_parse_duration(text, out_s))
        return 0;
    return cli_value_error(call, option, text, "a time above 0 as 96h, 4d, 90min or PT96H", out_error);
}

int carbon_read_objective(const struct cli_call *call, const char *text,
                          struct carbon_objective *out_objective, struct fly_error *out_error)
{
    if (carbon_parse_objective(text, out_objective))
        return 0;
    return cli_value_error(call, "objective", text,
                           "carbon, money, energy, or weights from 0 as carbon=0.0001,money=1", out_error);
}

int carbon_read_pause(const struct cli_call *call, struct carbon_pause *out_pause,
                      struct fly_error *out_error)
{
    const char *text = cli_text(call, "pause");

    if (text == NULL || carbon_parse_pause(text, out_pause))
        return 0;
    return cli_value_error(call, "pause", text,
                           "idle=WATTS and, where they are not 0, checkpoint=TIME,on=TIME,off=TIME",
                           out_error);
}

int carbon_read_profile(const struct cli_call *call, struct profile_source *source,
                        struct carbon_profile *profile, struct carbon_surroundings *out_surroundings,
                        struct fly_error *out_error)
{
    int code;

    *out_surroundings = (struct carbon_surroundings){cli_real(call, "host-power"), cli_real(call, "pue")};
    if (cli_text(call, "profile") == NULL)
        return cli_usage(call, out_error, "no power profile given; name one with --profile");
    code = profile_source_read(cli_text(call, "profile"), source, out_error);
    return code == 0
               ? carbon_profile_init(profile, source->points, source->count, out_surroundings, out_error)
               : code;
}
