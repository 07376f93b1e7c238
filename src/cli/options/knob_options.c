/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/knob_options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"
#include "knob/repair.h"
#include "knob/turnable.h"

enum { NUMBER_MAX = 32, YEAR_S = 31536000 };

/*
 * Takes the number at the beginning of the text: digits and one point, so that no unit is read as
 * part of it.
 */
static bool take_number(const char **text, double *out_value)
{
    size_t length = strspn(*text, "0123456789.");
    char number[NUMBER_MAX];

    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, *text, length);
    number[length] = '\0';
    *text += length;
    return number_parse_double(number, out_value);
}

bool power_wish_parse(const char *text, struct power_wish *out_wish)
{
    static const char *const units[] = {"", "W", "w", " W", " w"};
    double value;

    if (!take_number(&text, &value))
        return false;
    if (strcmp(text, "%") == 0) {
        if (value <= 0 || value > 100)
            return false;
        *out_wish = (struct power_wish){.share = value / 100};
        return true;
    }
    if (word_index(text, units, sizeof units / sizeof units[0]) < 0)
        return false;
    if (value < 1 || value > POWER_WISH_MAX_W)
        return false;
    *out_wish = (struct power_wish){.power_w = value};
    return true;
}

int64_t power_wish_limit_mw(const struct power_wish *wish, int64_t highest_mw)
{
    if (wish->share > 0)
        return llround(wish->share * (double)highest_mw / 1e3) * 1000;
    return llround(wish->power_w * 1e3);
}

/*
 * Takes the unit at the beginning of the text and returns it in seconds; 0 for none. Longer units
 * are tried first.
 */
static double take_unit(const char **text)
{
    static const struct {
        const char *word;
        double unit_s;
    } units[] = {{"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"s", 1}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t length = strlen(units[i].word);

        if (strncmp(*text, units[i].word, length) == 0) {
            *text += length;
            return units[i].unit_s;
        }
    }
    return 0;
}

bool span_parse(const char *text, double *out_time_s)
{
    double total_s = 0;
    double last_s = INFINITY;
    double value;

    do {
        double unit_s;

        if (!take_number(&text, &value))
            return false;
        /* Only seconds alone may lack a unit; after another unit none is guessed. */
        unit_s = *text == '\0' && total_s <= 0 && isinf(last_s) ? 1 : take_unit(&text);
        if (unit_s <= 0 || unit_s >= last_s)
            return false;
        last_s = unit_s;
        total_s += value * unit_s;
    } while (*text != '\0');
    if (total_s <= 0 || total_s > YEAR_S)
        return false;
    *out_time_s = total_s;
    return true;
}

enum { PROGRAM_MAX = 64, NAMES_MAX = 512 };

/* Prints the GPUs on which something could not be restored, once per process. */
static void say_failures(const struct cli_call *call, const struct device_list *list,
                         const struct repair *repairs, size_t count)
{
    static bool said;
    char names[NAMES_MAX] = "";
    const char *between = "GPU ", *text = "";
    size_t length = 0;

    for (size_t i = 0; i < count && length < sizeof names; i++) {
        size_t place = device_list_find(list, DEVICE_GPU, repairs[i].uuid);

        if (repairs[i].end != REPAIR_FAILED || place >= list->count)
            continue;
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%u", between,
                                   list->devices[place].info.index);
        between = ", ";
        text = repairs[i].text;
    }
    if (length == 0 || said)
        return;
    said = true;
    if (geteuid() != 0)
        cli_warn(call,
                 "what a killed program set on %s could not be put back by this user; run 'sudo flyball "
                 "power restore'",
                 names);
    else
        cli_warn(call,
                 "what a killed program set on %s could not be put back: %s; 'flyball power restore' "
                 "tries again",
                 names, text);
}

/*
 * Prints nothing about a GPU that needed nothing, or that a live process holds, and after a session nothing
 * of what it owes, which it has said itself.
 */
static void say(const struct cli_call *call, const struct device_list *list, const struct repair *repairs,
                size_t count, enum leftovers_wait wait)
{
    for (size_t i = 0; i < count; i++) {
        if (repairs[i].end == REPAIR_RESTORED || repairs[i].end == REPAIR_FOREIGN)
            cli_note(call, "%s", repairs[i].text);
        else if (repairs[i].end == REPAIR_CORRUPT || repairs[i].end == REPAIR_DISBELIEVED ||
                 (repairs[i].end == REPAIR_OWED && wait == LEFTOVERS_AT_ONCE))
            cli_warn(call, "%s", repairs[i].text);
    }
    say_failures(call, list, repairs, count);
}

/* Returns whether a GPU can be set at all: those that a recording plays are not those of the journal. */
static bool any_to_set(const struct device_list *list)
{
    bool found = false;

    for (size_t i = 0; i < list->count; i++)
        found = found || list->devices[i].backend->set != NULL;
    return found;
}

void leftovers_repair(const struct cli_call *call, const struct device_list *list, enum leftovers_wait wait)
{
    static struct repair repairs[DEVICES_MAX]; /* large */
    char readonly[CLI_READONLY_MAX], program[PROGRAM_MAX];
    struct knob_options options;
    struct fly_error error;
    int count;

    if (!any_to_set(list))
        return;
    snprintf(program, sizeof program, "flyball %s", cli_words(call));
    options = cli_knob_options(call, program, readonly);
    if (!knob_repair_is_due(&options))
        return;
    if (access(options.readonly_path, F_OK) == 0) {
        cli_note(call,
                 "a killed program left a GPU's knobs turned, and '%s' keeps them from being turned "
                 "here; 'flyball power restore' puts them back all the same",
                 options.readonly_path);
        return;
    }
    options.impatient = wait == LEFTOVERS_AT_ONCE;
    count = knob_repair(&options, list, false, repairs, DEVICES_MAX, &error);
    if (count < 0)
        cli_warn(call, "what a killed program left turned cannot be put back: %s", error.text);
    else if (count > 0)
        say(call, list, repairs, count < DEVICES_MAX ? (size_t)count : DEVICES_MAX, wait);
}

/* Asks locks and permissions, and whether there is a daemon that sets limits; sets nothing. */

/* A user who is not root needs another way. */
static void look_for_way(struct limit_outlook *outlook)
{
    struct site site;
    char text[SITE_TEXT_MAX];

    site_init(NULL, &site);
    outlook->may = site_offers_more(&site) ? MAY_LIKELY : MAY_UNLIKELY;
    if (outlook->may == MAY_LIKELY)
        error_set(&outlook->why_not, FLY_EPERM, "not through the driver, since this is not root, but by %s",
                  site_describe(&site, WAY_DAEMON, text));
    else
        error_set(&outlook->why_not, FLY_EPERM,
                  "NVIDIA's driver lets root alone set limits, and this is not root; run "
                  "'sudo flyball power set'");
}

void limit_outlook_find(const struct knob_options *options, const char *directory,
                        const struct fly_error *missing, const struct device *gpu,
                        struct limit_outlook *out_outlook)
{
    const struct turnable_options turnable = {
        .readonly_path = options->readonly_path != NULL ? options->readonly_path : KNOB_READONLY_PATH,
        .proc_root = "/proc",
        .mps_pipe_directory =
            options->mps_pipe_directory != NULL ? options->mps_pipe_directory : KNOB_MPS_DIRECTORY,
        .begins = true,
    };

    *out_outlook = (struct limit_outlook){.may = MAY_NOT, .held = missing->code, .lock = *missing};
    if (missing->code == 0)
        out_outlook->held =
            gpu_lock_holder(directory, gpu->info.uuid, out_outlook->holder, &out_outlook->lock);
    if (turnable_check(&turnable, gpu, &out_outlook->why_not) < 0)
        return;
    if (out_outlook->held == 1)
        error_set(&out_outlook->why_not, FLY_ESTATE, "its knobs are held by %s", out_outlook->holder);
    else if (out_outlook->held < 0)
        out_outlook->why_not = out_outlook->lock;
    else if (geteuid() != 0)
        look_for_way(out_outlook);
    else
        out_outlook->may = MAY;
}

struct knob_options cli_knob_options(const struct cli_call *call, const char *program,
                                     char readonly_path[CLI_READONLY_MAX])
{
    struct knob_options options = {
        .readonly_path = KNOB_READONLY_PATH,
        .program = program,
        .nvml_path = cli_text(call, "nvml"),
        .amdsmi_path = cli_text(call, "amdsmi"),
        .mps_pipe_directory = getenv("CUDA_MPS_PIPE_DIRECTORY"),
    };
    const char *root = cli_text(call, "sysfs-root");

    if (strcmp(root, "/") == 0)
        return options;
    snprintf(readonly_path, CLI_READONLY_MAX, "%.400s%s", root, KNOB_READONLY_PATH);
    if (access(readonly_path, F_OK) == 0)
        options.readonly_path = readonly_path;
    return options;
}
