/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of a process that root starts and that becomes another user before it opens the
 * driver, because a driver may remember who opened it. Root starts the program before the process
 * becomes the user, so that user need not be able to reach the program's file.
 */
#include "knob/behalf.h"

#include <grp.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/harmless.h"
#include "base/number.h"
#include "knob/guard.h"
#include "knob/guard_private.h"
#include "knob/way/command_run.h"

enum { ARGUMENTS = 8, NUMBER_MAX = 24, JOIN_SESSION_KEYRING = 1, NO_GROUP = 65534, PASSWD_BYTES = 8192 };
static const double patience_s = 10, short_patience_s = 1;

/* A process did not answer in time: from now on root waits only briefly. */
static atomic_bool was_silent;

/* All that stays of root's environment: where the emulator's GPUs are. */
static const char emulator_variable[] = "FLYBALL_EMULATOR_STATE";

/* Makes a message of the user's process fit to be shown. */
static void tidy(char *text)
{
    text[strcspn(text, "\n")] = '\0';
    harmless_make_ascii(text);
}

/*
 * Returns the code with that exit status. Codes share statuses; of those, FLY_EPERM is the one
 * that matters.
 */
static int code_of(int status)
{
    return status == fly_error_exit_status(FLY_EPERM) ? FLY_EPERM : FLY_EREAD;
}

int behalf_run(const struct behalf *behalf, enum behalf_task task, const struct journal_entry *entry,
               struct fly_error *out_error)
{
    char path[GUARD_PATH_MAX], text[JOURNAL_TEXT_MAX], uid[NUMBER_MAX], role[] = BEHALF_ROLE;
    char put_back[] = "back", ask[] = "ask", none[] = "", pci[DEVICE_PCI_MAX];
    char *nvml_path = behalf->nvml_path != NULL ? strdup(behalf->nvml_path) : NULL;
    char *amdsmi_path = behalf->amdsmi_path != NULL ? strdup(behalf->amdsmi_path) : NULL;
    char *words[] = {path,
                     role,
                     uid,
                     task == BEHALF_ASK ? ask : put_back,
                     nvml_path != NULL ? nvml_path : none,
                     amdsmi_path != NULL ? amdsmi_path : none,
                     pci,
                     text,
                     NULL};
    struct command_end end;

    guard_program(behalf->guard_path, path);
    snprintf(uid, sizeof uid, "%lld", (long long)behalf->uid);
    snprintf(pci, sizeof pci, "%s", behalf->pci != NULL ? behalf->pci : "");
    journal_format(entry, text);
    command_run(words, atomic_load(&was_silent) ? short_patience_s : patience_s, &end);
    free(nvml_path);
    free(amdsmi_path);
    tidy(end.output);
    if (end.spawn_errno != 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "'%s' cannot be started: %s", path,
                         strerror(end.spawn_errno));
    if (!end.ended)
        atomic_store(&was_silent, true);
    if (!end.ended || end.status > 128)
        return error_set(out_error, FLY_EUNSUPPORTED, "no answer came from a process of user %s", uid);
    if (end.status == 0)
        return 0;
    return error_set(out_error, code_of(end.status), "%.300s",
                     end.output[0] != '\0' ? end.output : "a process of that user failed without a word");
}

/* Takes the groups that the user has when logging in; an unknown user has none. */
static int take_groups(uid_t uid)
{
    char text[PASSWD_BYTES];
    struct passwd found, *user = NULL;

    if (getpwuid_r(uid, &found, text, sizeof text, &user) != 0 || user == NULL)
        return setgroups(0, NULL) < 0 || setresgid(NO_GROUP, NO_GROUP, NO_GROUP) < 0 ? -1 : 0;
    return initgroups(user->pw_name, user->pw_gid) < 0 ||
                   setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0
               ? -1
               : 0;
}

/* Becomes the user for good, and keeps nothing of the user who started it. */
static int become(uid_t uid, struct fly_error *out_error)
{
    const char *state = getenv(emulator_variable);
    char *kept = state != NULL ? strdup(state) : NULL;

    clearenv();
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    if (kept != NULL)
        setenv(emulator_variable, kept, 1);
    free(kept);
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
    syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL);
    if (uid == 0 || chdir("/") < 0 || take_groups(uid) < 0 || setresuid(uid, uid, uid) < 0 ||
        getuid() != uid || geteuid() != uid)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "this process cannot become user %lld, who is to be asked", (long long)uid);
    return 0;
}

static void site_of(const struct journal_entry *entry, struct site *out_site)
{
    const struct site_options places = {
        .commands = entry->places[WAY_COMMANDS][0] != '\0' ? entry->places[WAY_COMMANDS] : NULL,
        .daemon = entry->places[WAY_DAEMON][0] != '\0' ? entry->places[WAY_DAEMON] : NULL,
    };

    site_init(&places, out_site);
}

static int put_back(struct journal_entry *entry, const struct device *device, struct site *site,
                    struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = entry->turn_count; i > 0; i--) {
        struct fly_error error = {.code = 0};
        struct setting found;

        if (turn_back(site, device, &entry->turns[i - 1], false, NULL, &found, &error) != TURN_FAILED ||
            code < 0)
            continue;
        code = error_set(out_error, error.code, "%s", error.text);
    }
    return code;
}

/* Sets the limit that is in force, by the first way that accepts it. */
static int ask(const struct device *device, struct site *site, struct fly_error *out_error)
{
    struct setting limit;
    struct way_result result;
    int code = FLY_EREAD;

    if (setting_read(device, QUANTITY_POWER_LIMIT, &limit) != READING_OK)
        return error_set(out_error, FLY_EREAD, "the power limit cannot be read");
    for (int way = 0; way < WAY_COUNT && code < 0; way++) {
        if (site_offers(site, (enum way)way, device))
            code = site_set(site, (enum way)way, device, QUANTITY_POWER_LIMIT, &limit, &result, out_error);
    }
    return code;
}

static int act(const char *task, const char *nvml_path, const char *amdsmi_path, const char *pci,
               const char *text, struct fly_error *out_error)
{
    static struct device_list list; /* static, because it is large */
    struct journal_entry entry;
    struct site site;
    size_t place;
    int code = journal_parse(text, &entry, out_error);

    if (code == 0)
        code = guard_open_devices(nvml_path, amdsmi_path, pci, &list, out_error);
    if (code < 0)
        return code;
    place = device_list_find(&list, DEVICE_GPU, entry.uuid);
    if (place >= list.count)
        return error_set(out_error, FLY_EUNSUPPORTED, "that user does not see the GPU '%s'", entry.uuid);
    site_of(&entry, &site);
    code = strcmp(task, "ask") == 0 ? ask(&list.devices[place], &site, out_error)
                                    : put_back(&entry, &list.devices[place], &site, out_error);
    site_deinit(&site);
    device_list_close(&list);
    return code;
}

int behalf_main(int argc, char **argv)
{
    struct fly_error error = {.code = 0};
    uint64_t uid;
    int code;

    if (argc != ARGUMENTS || !number_parse_u64(argv[2], UINT32_MAX - 1, &uid))
        return fly_error_exit_status(FLY_EUSAGE);
    code = become((uid_t)uid, &error);
    if (code == 0)
        code = act(argv[3], argv[4], argv[5], argv[6], argv[7], &error);
    if (code < 0)
        dprintf(STDOUT_FILENO, "%s\n", error.text);
    return code < 0 ? fly_error_exit_status(code) : 0;
}
