/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this user may set power limits: by the driver, or because a daemon does it for him. */
#include <stdio.h>

#include "cli/machine/doctor.h"
#include "knob/way/daemon_permit.h"

static const char
    start_it[] = "sudo systemctl enable --now flyballd.service",
    allow_it[] = "printf '[rule %s]\\nfor = user:%s\\nallow = control\\n' \"$USER\" \"$USER\" | sudo tee "
                 "-a /etc/flyball/flyballd.ini && sudo systemctl reload flyballd.service";

static void take_permit(const struct daemon_permit *permit, struct doctor_daemon *daemon)
{
    daemon->answers |= permit->word != DAEMON_ABSENT;
    daemon->lets += permit->word == DAEMON_LETS;
    daemon->refuses += permit->word == DAEMON_REFUSES;
    daemon->unasked += permit->word == DAEMON_OTHER || permit->word == DAEMON_UNWELL;
    if (permit->why[0] != '\0' && (daemon->why[0] == '\0' || daemon->refuses == 1))
        snprintf(daemon->why, sizeof daemon->why, "%.*s", DOCTOR_WHY_MAX - 1, permit->why);
}

void doctor_ask_daemon(const struct device_list *list, const struct site *site, struct doctor_facts *facts)
{
    facts->daemon = (struct doctor_daemon){.place = site->daemon, .sought = true};
    for (size_t i = 0; i < list->count && !facts->machine.root; i++) {
        struct daemon_permit permit;

        if (list->devices[i].info.kind != DEVICE_GPU)
            continue;
        daemon_permit_ask(site, &list->devices[i], &permit);
        take_permit(&permit, &facts->daemon);
        if (permit.word == DAEMON_ABSENT)
            break; /* nobody is there for the others either */
    }
}

static const char *settable_by_daemon(const struct doctor_daemon *daemon, char text[DOCTOR_SETTABLE_MAX])
{
    size_t asked = daemon->lets + daemon->refuses + daemon->unasked;

    if (daemon->refuses == 0 && daemon->lets == asked) {
        snprintf(
            text, DOCTOR_SETTABLE_MAX,
            "power limits could be set: the driver lets root alone, and flyballd at '%.200s' does it for "
            "this user (nothing was set to find out)",
            daemon->place);
        return NULL;
    }
    if (daemon->lets + daemon->refuses == 0) {
        snprintf(
            text, DOCTOR_SETTABLE_MAX,
            "power limits need root; the daemon at '%.200s' would be asked to set them, and does not say "
            "beforehand whether it will%s%s",
            daemon->place, daemon->why[0] != '\0' ? ": " : "", daemon->why);
        return NULL;
    }
    snprintf(text, DOCTOR_SETTABLE_MAX,
             "power limits need root; flyballd at '%.200s' sets them for this user on %zu of %zu GPUs: %s",
             daemon->place, daemon->lets, asked, daemon->why);
    return allow_it;
}

const char *doctor_settable(const struct doctor_facts *facts, char text[DOCTOR_SETTABLE_MAX])
{
    const struct doctor_daemon *daemon = &facts->daemon;

    if (facts->gpus == 0)
        snprintf(text, DOCTOR_SETTABLE_MAX, "there is no GPU whose power limit could be set");
    else if (facts->machine.wsl)
        snprintf(text, DOCTOR_SETTABLE_MAX, "power limits cannot be set under WSL");
    else if (facts->machine.root)
        snprintf(text, DOCTOR_SETTABLE_MAX,
                 "power limits could be set: you are root (nothing was set to find out)");
    else if (daemon->answers)
        return settable_by_daemon(daemon, text);
    else if (!daemon->sought)
        snprintf(text, DOCTOR_SETTABLE_MAX,
                 "power limits need root, as 'sudo nvidia-smi -i 0 -pl WATTS' does (nothing was set to find "
                 "out)");
    else {
        snprintf(
            text, DOCTOR_SETTABLE_MAX,
            "power limits need root, as 'sudo nvidia-smi -i 0 -pl WATTS' does, or flyballd, which sets them "
            "for users and does not run here (nothing was set to find out)%s%s",
            daemon->why[0] != '\0' ? ": " : "", daemon->why);
        return start_it;
    }
    return NULL;
}

enum { FIRST_WORD_MAX = 128 };

static const char *measured(const struct doctor_facts *facts, char text[FIRST_WORD_MAX])
{
    if (facts->gpus > 0 && facts->gpus_silent == 0)
        return "yes";
    if (facts->gpus > facts->gpus_silent) {
        snprintf(text, FIRST_WORD_MAX, "%zu of %zu GPUs", facts->gpus - facts->gpus_silent, facts->gpus);
        return text;
    }
    if (!facts->anything)
        return "no";
    return facts->gpus > 0 ? "no GPU, but other devices" : "yes, but there is no GPU here";
}

static const char *set(const struct doctor_facts *facts, char text[FIRST_WORD_MAX])
{
    const struct doctor_daemon *daemon = &facts->daemon;
    size_t asked = daemon->lets + daemon->refuses + daemon->unasked;

    if (facts->gpus == 0)
        return "no, there is no GPU here";
    if (facts->machine.wsl)
        return "no, not under WSL";
    if (facts->machine.root)
        return "yes, as root";
    if (!daemon->sought)
        return "with root's rights or flyballd";
    if (!daemon->answers)
        return "no. Ask root for flyballd";
    if (daemon->lets + daemon->refuses == 0)
        return "not known; the daemon does not say beforehand";
    if (daemon->lets == asked)
        return "yes, through flyballd";
    snprintf(text, FIRST_WORD_MAX, "on %zu of %zu GPUs. Ask root for a rule of flyballd", daemon->lets,
             asked);
    return text;
}

void doctor_first(const struct doctor_facts *facts, char text[DOCTOR_SETTABLE_MAX])
{
    char which[FIRST_WORD_MAX], where[FIRST_WORD_MAX];

    snprintf(text, DOCTOR_SETTABLE_MAX, "Can measure: %s. Can set limits: %s.", measured(facts, which),
             set(facts, where));
}
