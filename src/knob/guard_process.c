/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's side: remembers what was turned, and puts it back when its session ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "device/open/backends.h"
#include "knob/cgroup_leave.h"
#include "knob/guard.h"
#include "knob/guard_private.h"
#include "knob/journal.h"

enum { ARGUMENTS = 8, GUARD_TURNS_MAX = DEVICES_MAX * TURNS_MAX };
enum { LOOK_MS = 100, TRIES = 100, TRY_NS = 100000000, OPEN_LOOKS = 8 };
static const double patience_s = 10; /* to keep trying */

struct told {
    char uuid[DEVICE_TEXT_MAX];
    struct turn turn;
    int looks; /* how many more times to check whether the knob stays where it was put back */
};

/* Large; there is only one. */
struct guarding {
    struct device_list list;
    const char *nvml_path, *amdsmi_path;
    struct site site;
    const char *directory;
    pid_t session;
    int session_fd; /* readable when the session has ended; -1: unavailable */
    int locks[DEVICES_MAX];
    size_t lock_count;
    struct told told[GUARD_TURNS_MAX]; /* in the order in which the knobs were first turned */
    size_t told_count;
};

/* Leaves the process that started it, which must not have the guard among its children. */
static void detach(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGUSR1, SIGUSR2};
    sigset_t none;

    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_close_range, GUARD_SOCKET + 1, ~0U, 0);
    if (fork() != 0)
        _exit(0); /* without a child, the session gets no answer and reports that */
}

/*
 * Asks the kernel to spare this process when memory runs out, even if it kills a whole group.
 * Root may ask.
 */
static void resist_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    (void)!write(fd, "-1000", strlen("-1000"));
    close(fd);
}

int guard_open_devices(const char *nvml_path, const char *amdsmi_path, const char *pci,
                       struct device_list *list, struct fly_error *out_error)
{
    struct device_options options = {.nvml_path = nvml_path[0] != '\0' ? nvml_path : NULL,
                                     .amdsmi_path = amdsmi_path[0] != '\0' ? amdsmi_path : NULL,
                                     .only_pci = pci[0] != '\0' ? pci : NULL};
    size_t before = list->count;
    int code = FLY_EUNSUPPORTED;

    error_set(out_error, code, "no driver is there through which something can be set; see 'flyball doctor'");
    for (size_t i = 0; device_backends[i] != NULL; i++) {
        if (options.only_pci != NULL && list->count > before)
            break; /* a GPU has one driver */
        if (device_backends[i]->set != NULL && device_backends[i]->open(&options, list, out_error) == 0)
            code = 0;
    }
    return code;
}

static void answer(enum guard_word word, const char *uuid, const struct fly_error *error)
{
    struct guard_message message;
    ssize_t sent;

    memset(&message, 0, sizeof message);
    message.word = word;
    message.pid = getpid();
    snprintf(message.uuid, sizeof message.uuid, "%s", uuid);
    message.error = *error;
    do
        sent = send(GUARD_SOCKET, &message, sizeof message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
}

static const struct device *device_of(const struct guarding *guarding, const char *uuid)
{
    size_t place = device_list_find(&guarding->list, DEVICE_GPU, uuid);

    return place < guarding->list.count ? &guarding->list.devices[place] : NULL;
}

/* Opens the GPU, unless it is open. */
static void open_device(struct guarding *guarding, const char *uuid, const char *pci,
                        struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    int code = 0;

    if (device_of(guarding, uuid) == NULL)
        code = guard_open_devices(guarding->nvml_path, guarding->amdsmi_path, pci, &guarding->list, &error);
    if (device_of(guarding, uuid) == NULL && code < 0)
        error_set(out_error, code, "the guard, which turns knobs back, cannot: %.400s", error.text);
}

static void hold(struct guarding *guarding, const char *uuid, const char *pci, int lock)
{
    struct fly_error error = {.code = 0};

    open_device(guarding, uuid, pci, &error);
    if (device_of(guarding, uuid) == NULL && error.code == 0)
        error_set(
            &error, FLY_EUNSUPPORTED,
            "the guard, which turns knobs back, does not see the GPU '%s'; see whether 'flyball doctor' does",
            uuid);
    else if (error.code == 0 && lock >= 0 && guarding->lock_count < DEVICES_MAX)
        guarding->locks[guarding->lock_count++] = lock;
    (void)!chdir("/"); /* only now: paths of the environment may be relative */
    answer(GUARD_HELD, uuid, &error);
}

static size_t place_of(const struct guarding *guarding, const char *uuid, enum quantity quantity)
{
    size_t i = 0;

    while (i < guarding->told_count &&
           (guarding->told[i].turn.quantity != quantity || strcmp(guarding->told[i].uuid, uuid) != 0))
        i++;
    return i;
}

static void remember(struct guarding *guarding, const struct guard_message *message)
{
    size_t place = place_of(guarding, message->uuid, message->turn.quantity);

    if (place == GUARD_TURNS_MAX)
        return;
    if (place == guarding->told_count) {
        snprintf(guarding->told[place].uuid, sizeof guarding->told[place].uuid, "%s", message->uuid);
        guarding->told_count++;
    }
    guarding->told[place].turn = message->turn;
    guarding->told[place].looks = turn_is_open(&message->turn) ? OPEN_LOOKS : 0;
}

static void forget(struct guarding *guarding, size_t place)
{
    if (place >= guarding->told_count)
        return;
    guarding->told_count--;
    memmove(&guarding->told[place], &guarding->told[place + 1],
            (guarding->told_count - place) * sizeof guarding->told[0]);
}

/* Takes the next message; false at the session's end and, without `wait`, if there is none now. */
static bool take_message(struct guarding *guarding, bool wait)
{
    struct guard_message message = {.word = GUARD_READY};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr whole = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const struct cmsghdr *header;
    int lock = -1;
    ssize_t length;

    do
        length = recvmsg(GUARD_SOCKET, &whole, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof message)
        return false;
    header = CMSG_FIRSTHDR(&whole);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS)
        memcpy(&lock, CMSG_DATA(header), sizeof lock);
    message.uuid[sizeof message.uuid - 1] = '\0';
    message.pci[sizeof message.pci - 1] = '\0';
    if (message.word == GUARD_HOLD)
        hold(guarding, message.uuid, message.pci, lock);
    else if (message.word == GUARD_TELL)
        remember(guarding, &message);
    else if (message.word == GUARD_FORGET)
        forget(guarding, place_of(guarding, message.uuid, message.turn.quantity));
    return true;
}

static bool session_lives(const struct guarding *guarding)
{
    struct pollfd wanted = {.fd = guarding->session_fd, .events = POLLIN};

    if (guarding->session_fd >= 0)
        return poll(&wanted, 1, 0) == 0;
    return kill(guarding->session, 0) == 0 || errno == EPERM;
}

/*
 * Works until the session ends: until its end of the socket closes, or until its process ends
 * although a child still has the socket.
 */
static void attend(struct guarding *guarding)
{
    for (;;) {
        struct pollfd wanted[] = {{.fd = GUARD_SOCKET, .events = POLLIN},
                                  {.fd = guarding->session_fd, .events = POLLIN}};
        int ready = poll(wanted, 2, guarding->session_fd >= 0 ? -1 : LOOK_MS);

        if (ready > 0 && wanted[0].revents != 0) {
            if (!take_message(guarding, true))
                return;
        } else if (!session_lives(guarding)) {
            while (take_message(guarding, false)) {
            }
            return;
        }
    }
}

/* Returns whether a turn is left that is in that file of the GPU. */
static bool is_told_of(const struct guarding *guarding, const char *uuid, enum journal_kind kind)
{
    for (size_t i = 0; i < guarding->told_count; i++) {
        const struct told *told = &guarding->told[i];

        if (strcmp(told->uuid, uuid) == 0 && journal_kind_of(JOURNAL_TURNED, told->turn.quantity) == kind)
            return true;
    }
    return false;
}

/*
 * Puts back what was turned last first. Tries again what fails. A command that the session was
 * waiting for when it ended may still be running: its knob is checked again.
 */
static void put_back(struct guarding *guarding)
{
    for (size_t i = guarding->told_count; i > 0; i--) {
        struct told told = guarding->told[i - 1];
        enum journal_kind kind = journal_kind_of(JOURNAL_TURNED, told.turn.quantity);
        bool insists = told.looks == OPEN_LOOKS;
        const struct device *device = device_of(guarding, told.uuid);
        struct setting found;

        if (device == NULL ||
            turn_back(&guarding->site, device, &told.turn, insists, &found, NULL) == TURN_FAILED)
            continue;
        if (guarding->told[i - 1].looks-- > 0)
            continue;
        forget(guarding, i - 1);
        if (!is_told_of(guarding, told.uuid, kind))
            journal_remove(guarding->directory, kind, told.uuid, NULL);
    }
}

int guard_main(int argc, char **argv)
{
    static struct guarding guarding;
    const struct timespec pause = {.tv_nsec = TRY_NS};
    struct fly_error error = {.code = 0};
    struct mono_time end;
    uint64_t session;

    if (argc != ARGUMENTS || strcmp(argv[1], GUARD_PROTOCOL) != 0 ||
        !number_parse_u64(argv[2], INT32_MAX, &session) || session == 0)
        return fly_error_exit_status(FLY_EUSAGE);
    guarding.session = (pid_t)session;
    guarding.directory = argv[3];
    site_init(&(struct site_options){.commands = argv[6], .daemon = argv[7]}, &guarding.site);
    detach();
    cgroup_leave("/proc");
    resist_oom();
    guarding.session_fd = (int)syscall(SYS_pidfd_open, guarding.session, 0);
    guarding.nvml_path = argv[4];
    guarding.amdsmi_path = argv[5];
    answer(GUARD_READY, "", &error);
    attend(&guarding);
    end = mono_after_s(mono_now(), patience_s);
    put_back(&guarding);
    for (int i = 0; i < TRIES && guarding.told_count > 0 && mono_elapsed_s(mono_now(), end) > 0; i++) {
        nanosleep(&pause, NULL);
        put_back(&guarding);
    }
    site_deinit(&guarding.site);
    device_list_close(&guarding.list);
    return 0;
}
