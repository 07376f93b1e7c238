/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of a process that root starts and that becomes another user before it opens the
 * driver, because a driver may remember who opened it. Root starts the program before the process
 * becomes the user, so that user need not be able to reach the program's file.
 */
#include "knob/behalf.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/harmless.h"
#include "base/number.h"
#include "base/wait.h"
#include "knob/guard.h"
#include "knob/guard_private.h"

/* ---- a program, run for a limited time ---- */

enum { LOOK_MS = 10, CHUNK = 1024, OUTPUT_MAX = 1024 };
static const double kill_s = 1; /* time for a killed process to be gone */

struct program_end {
    int spawn_errno; /* it could not be started */
    bool ended;      /* within the time */
    int status;      /* exit status, or 128 plus its signal */
    char output[OUTPUT_MAX];
};

struct running {
    pid_t pid;
    int process; /* readable when the program ends; -1: unavailable */
    int output;
    struct program_end *end;
    size_t length;
};

static int spawn_with(char *const *words, int output, posix_spawn_file_actions_t *files,
                      posix_spawnattr_t *attributes, pid_t *out_pid)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(files, output, STDERR_FILENO);
#ifdef __GLIBC__
    posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    return posix_spawnp(out_pid, words[0], files, attributes, words, environ);
}

/* Returns 0 or errno. */
static int spawn(char *const *words, int output, pid_t *out_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int cause = posix_spawn_file_actions_init(&files);

    if (cause != 0)
        return cause;
    cause = posix_spawnattr_init(&attributes);
    if (cause == 0) {
        cause = spawn_with(words, output, &files, &attributes, out_pid);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return cause;
}

/* Reads what is available now; drops what does not fit. */
static void take_output(struct running *running)
{
    char chunk[CHUNK];
    ssize_t more;

    while (running->output >= 0 && (more = read(running->output, chunk, sizeof chunk)) != 0) {
        size_t room = OUTPUT_MAX - 1 - running->length;

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return;
        memcpy(running->end->output + running->length, chunk, (size_t)more < room ? (size_t)more : room);
        running->length += (size_t)more < room ? (size_t)more : room;
    }
    if (running->output >= 0)
        close(running->output);
    running->output = -1;
}

/*
 * Returns whether it has ended. A status that another part of the process took is unknown; the
 * caller checks the knob in any case.
 */
static bool has_ended(struct running *running)
{
    int status = 0;
    pid_t waited = waitpid(running->pid, &status, WNOHANG);

    if (waited == 0 || (waited < 0 && errno == EINTR))
        return false;
    running->end->ended = true;
    if (waited == running->pid)
        running->end->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

/* Listens until the program ends, without waiting for children that hold its output. */
static bool attend(struct running *running, double time_s)
{
    struct mono_time until = mono_after_s(mono_now(), time_s);

    while (!has_ended(running)) {
        struct pollfd wanted[] = {{.fd = running->process, .events = POLLIN},
                                  {.fd = running->output, .events = POLLIN}};
        struct mono_time look = mono_after_s(mono_now(), LOOK_MS * 1e-3);

        if (mono_now().ns >= until.ns)
            return false;
        (void)mono_poll(wanted, 2, running->process < 0 || until.ns < look.ns ? look : until);
        take_output(running);
    }
    take_output(running);
    return true;
}

/*
 * Runs a program in a session of its own, with no input and no file of this process, and keeps both of its
 * outputs, up to a length. If another part of this process waits for all children, the status is lost: 0 is
 * assumed then. A program that takes longer is killed with its session.
 */
static void run_program(char *const *words, double timeout_s, struct program_end *out_end)
{
    struct running running = {.process = -1, .end = out_end};
    int ends[2];

    memset(out_end, 0, sizeof *out_end);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        out_end->spawn_errno = errno;
        return;
    }
    out_end->spawn_errno = spawn(words, ends[1], &running.pid);
    close(ends[1]);
    running.output = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (out_end->spawn_errno == 0) {
        running.process = (int)syscall(SYS_pidfd_open, running.pid, 0);
        if (!attend(&running, timeout_s)) {
            kill(-running.pid, SIGKILL);
            attend(&running, kill_s);
            out_end->ended = false;
        }
    }
    if (running.process >= 0)
        close(running.process);
    if (running.output >= 0)
        close(running.output);
}

/* ---- root's side ---- */

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
    struct program_end end;

    guard_program(behalf->guard_path, path);
    snprintf(uid, sizeof uid, "%lld", (long long)behalf->uid);
    snprintf(pci, sizeof pci, "%s", behalf->pci != NULL ? behalf->pci : "");
    journal_format(entry, text);
    run_program(words, atomic_load(&was_silent) ? short_patience_s : patience_s, &end);
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

/* ---- the user's side ---- */

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

static int put_back(struct journal_entry *entry, const struct device *device, const struct site *site,
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
static int ask(const struct device *device, const struct site *site, struct fly_error *out_error)
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
    site_init(entry.daemon[0] != '\0' ? entry.daemon : NULL, &site);
    code = strcmp(task, "ask") == 0 ? ask(&list.devices[place], &site, out_error)
                                    : put_back(&entry, &list.devices[place], &site, out_error);
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
