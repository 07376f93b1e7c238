/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out who else uses a GPU. Each question is a row of one table. */
#include "knob/turnable.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/harmless.h"
#include "knob/unseen.h"

enum { PROCESSES_MAX = 256, DEPTH_MAX = 256, PROC_PATH_MAX = 300, PROC_TEXT_MAX = 512 };

static int check_readonly(const struct turnable_options *options, const struct device *device,
                          struct fly_error *out_error)
{
    struct stat status;

    if (lstat(options->readonly_path, &status) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    return error_set(
        out_error, FLY_EPERM,
        "GPU %u is only measured: the operator keeps knobs from being turned by '%s'; ask for it to be "
        "removed",
        device->info.index, options->readonly_path);
}

/* Where no limit can be set, there may be clocks. */
static bool offers_clocks(const struct device *device)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;

    return device_clocks(device, clocks_mhz, DEVICE_CLOCKS_MAX, &count, NULL) == 0 && count > 1;
}

static int check_offer(const struct turnable_options *options, const struct device *device,
                       struct fly_error *out_error)
{
    struct device_reading reading;
    const struct reading *limit = &reading.values[QUANTITY_POWER_LIMIT];

    (void)options;
    device_read(device, &clock_real, QUANTITY_BIT(QUANTITY_POWER_LIMIT), &reading);
    if (device->backend->set != NULL &&
        (limit->state == READING_OK || (limit->state == READING_UNSUPPORTED && offers_clocks(device))))
        return 0;
    if (device->backend->set == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "%s %u is only measured: through '%s' nothing can be set; NVML and AMD SMI can",
                         device_kind_name(device->info.kind), device->info.index, device->backend->name);
    return error_set(out_error, limit->state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED : FLY_EREAD,
                     "GPU %u is only measured: its power limit is not known: %s; see 'flyball doctor'",
                     device->info.index, reading_state_clause(limit->state));
}

static int check_mig(const struct turnable_options *options, const struct device *device,
                     struct fly_error *out_error)
{
    struct device_reading reading;
    const struct reading *mig = &reading.values[QUANTITY_MIG];

    (void)options;
    device_read(device, &clock_real, QUANTITY_BIT(QUANTITY_MIG), &reading);
    if (!device->info.mig && !(mig->state == READING_OK && mig->value != 0))
        return 0;
    return error_set(out_error, FLY_ESTATE,
                     "GPU %u is only measured: MIG shares it, and its limit is that of all its instances; "
                     "'nvidia-smi -i %s -mig 0' as root ends that",
                     device->info.index, device->info.uuid);
}

/* Reads the beginning of a process's file as text; false if there is none. */
static bool read_proc(const char *proc_root, long long pid, const char *file, char text[PROC_TEXT_MAX])
{
    char path[PROC_PATH_MAX];
    ssize_t length;
    int fd;

    snprintf(path, sizeof path, "%.200s/%lld/%s", proc_root, pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, text, PROC_TEXT_MAX - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Reads the name of a process's program; "an unknown program" if it cannot be seen. */
static void read_name(const char *proc_root, long long pid, char text[PROC_TEXT_MAX])
{
    if (!read_proc(proc_root, pid, "comm", text))
        snprintf(text, PROC_TEXT_MAX, "an unknown program");
    text[strcspn(text, "\n")] = '\0';
    harmless_hide_controls(text);
}

/* Returns the parent of a process; 0: it has none, or the process is gone. */
static pid_t parent_of(const char *proc_root, pid_t pid)
{
    char text[PROC_TEXT_MAX];
    const char *at;

    if (!read_proc(proc_root, pid, "stat", text))
        return 0;
    at = strrchr(text, ')'); /* after the name: " S 1234 ..." */
    return at != NULL && strlen(at) > 4 ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

/*
 * Returns whether `pid` is `ancestor` or one of its descendants. All descend from process 1, which says
 * nothing unless it is this one, as in a container.
 */
static bool descends(const char *proc_root, pid_t pid, pid_t ancestor)
{
    for (int depth = 0; depth < DEPTH_MAX && pid > 0; depth++) {
        if (pid == ancestor && (pid > 1 || getpid() == 1))
            return true;
        pid = parent_of(proc_root, pid);
    }
    return false;
}

static bool is_ours(const struct turnable_options *options, pid_t pid)
{
    pid_t self = getpid();

    if (descends(options->proc_root, pid, self) || descends(options->proc_root, self, pid))
        return true;
    for (size_t i = 0; i < options->allowed_count; i++) {
        if (descends(options->proc_root, pid, options->allowed[i]))
            return true;
    }
    return false;
}

static int check_processes(const struct turnable_options *options, const struct device *device,
                           struct fly_error *out_error)
{
    struct device_process processes[PROCESSES_MAX];
    char name[PROC_TEXT_MAX];
    size_t count = 0;
    int code = device_processes(device, DEVICE_PROCESSES_COMPUTING, processes, PROCESSES_MAX, &count);

    if (code < 0)
        return error_set(
            out_error, FLY_EREAD,
            "GPU %u is only measured: which processes use it cannot be found out (%s); see 'flyball "
            "doctor'",
            device->info.index, fly_error_sentence(code));
    for (size_t i = 0; i < count; i++) {
        if (is_ours(options, processes[i].pid))
            continue;
        read_name(options->proc_root, processes[i].pid, name);
        return error_set(
            out_error, FLY_ESTATE,
            "GPU %u is only measured: '%.60s', process %lld, computes on it; wait for it to end, or use "
            "another GPU",
            device->info.index, name, (long long)processes[i].pid);
    }
    return 0;
}

/* ---- MPS ---- */

/*
 * Anybody can give a process the name of MPS, and put a file where MPS has its pipes. So what counts is whose
 * they are: root's, this user's, or of whom the driver lists processes on the GPU.
 */
struct mps_look {
    const struct turnable_options *options;
    const struct device *device;
    struct device_process processes[PROCESSES_MAX]; /* of all kinds */
    size_t count;
};

/* Returns the user of a process that lives; a program with set-user-ID is still of whoever started it. */
static bool read_user(const char *proc_root, long long pid, uid_t *out_uid)
{
    char text[PROC_TEXT_MAX];
    const char *state = NULL, *uid = NULL;

    if (read_proc(proc_root, pid, "status", text)) {
        state = strstr(text, "\nState:\t");
        uid = strstr(text, "\nUid:\t");
    }
    if (state == NULL || uid == NULL || strchr("ZX", state[strlen("\nState:\t")]) != NULL)
        return false;
    *out_uid = (uid_t)strtoul(uid + strlen("\nUid:\t"), NULL, 10);
    return true;
}

static bool is_trusted(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* MPS of the machine shares no emulated GPU, so on those only a process that the emulator lists counts. */
static bool process_counts(const struct mps_look *look, long long pid)
{
    const char *proc_root = look->options->proc_root;
    bool emulated = look->device->info.emulated;
    uid_t uid, other;

    for (size_t i = 0; i < look->count; i++)
        if (look->processes[i].pid == pid)
            return true;
    if (emulated || !read_user(proc_root, pid, &uid))
        return false;
    for (size_t i = 0; i < look->count; i++)
        if (read_user(proc_root, look->processes[i].pid, &other) && other == uid)
            return true;
    return is_trusted(uid);
}

/* Returns the pid of a process of MPS, or 0. The kernel cuts names: all of them begin like this. */
static long long find_mps(const struct mps_look *look)
{
    static const char begin[] = "nvidia-cuda-mps";
    const char *proc_root = look->options->proc_root;
    DIR *directory = opendir(proc_root);
    const struct dirent *entry;
    char text[PROC_TEXT_MAX];
    long long found = 0;

    while (directory != NULL && found == 0 && (entry = readdir(directory)) != NULL) {
        long long pid = isdigit((unsigned char)entry->d_name[0]) ? strtoll(entry->d_name, NULL, 10) : 0;

        if (pid > 0 && read_proc(proc_root, pid, "comm", text) && strncmp(text, begin, strlen(begin)) == 0 &&
            process_counts(look, pid))
            found = pid;
    }
    if (directory != NULL)
        closedir(directory);
    for (size_t i = 0; i < look->count && found == 0; i++)
        found = look->processes[i].kind == DEVICE_PROCESS_MPS ? look->processes[i].pid : 0;
    return found;
}

/*
 * Returns whether MPS has its pipe there. From inside a container its processes may not be visible. A link,
 * a directory and a file all have to be of somebody who is trusted: a link of anybody's could lead to
 * a file of root's.
 */
static bool control_stands(const char *directory, char control[PROC_PATH_MAX])
{
    struct stat status;

    snprintf(control, PROC_PATH_MAX, "%.200s/control", directory);
    if (lstat(directory, &status) < 0 || !is_trusted(status.st_uid) || stat(directory, &status) < 0 ||
        !is_trusted(status.st_uid))
        return false;
    if (lstat(control, &status) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return is_trusted(status.st_uid);
}

static int check_mps(const struct turnable_options *options, const struct device *device,
                     struct fly_error *out_error)
{
    struct mps_look look = {.options = options, .device = device};
    char control[PROC_PATH_MAX];
    long long pid;

    if (strcmp(device->backend->name, "amdsmi") == 0)
        return 0; /* it shares NVIDIA's */
    /* If that fails, check_processes says so. */
    (void)device_processes(device, DEVICE_PROCESSES_ALL, look.processes, PROCESSES_MAX, &look.count);
    pid = find_mps(&look);
    if (pid != 0)
        return error_set(
            out_error, FLY_ESTATE,
            "GPU %u is only measured: MPS shares GPUs of this machine (process %lld); 'echo quit | "
            "nvidia-cuda-mps-control' ends it",
            device->info.index, pid);
    if (!control_stands(options->mps_pipe_directory, control))
        return 0;
    return error_set(
        out_error, FLY_ESTATE,
        "GPU %u is only measured: MPS shares GPUs of this machine, as '%s' is there; end MPS, or remove "
        "that if MPS has ended",
        device->info.index, control);
}

int turnable_check(const struct turnable_options *options, const struct device *device,
                   struct fly_error *out_error)
{
    static const struct {
        int (*check)(const struct turnable_options *, const struct device *, struct fly_error *);
        bool about_others;
    } checks[] = {
        {check_readonly, false}, {check_offer, false},    {check_mig, true},
        {check_mps, true},       {check_processes, true}, {unseen_check, true},
    };
    int code = 0;

    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && code == 0; i++) {
        if (!checks[i].about_others || !options->overrules)
            code = checks[i].check(options, device, out_error);
    }
    return code;
}
