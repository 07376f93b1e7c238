/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/leftovers.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/options/knob_options.h"
#include "knob/repair.h"

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
