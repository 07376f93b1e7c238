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
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/wait.h"
#include "knob/cgroup_leave.h"
#include "knob/debt.h"
#include "knob/guard.h"
#include "knob/guard_private.h"
#include "knob/journal.h"

enum { ARGUMENTS = 7 };
enum { LOOK_MS = 100, TRIES = 100, TRY_NS = 100000000, OPEN_LOOKS = 8 };
/* For how long it tries under the lock: longer while a daemon may still do what it was asked. */
static const double patience_s = 2, open_patience_s = 10;

/* Leaves the process that started it, which must not have the guard among its children. */
static void detach(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
                                  SIGTSTP, SIGUSR1, SIGUSR2, SIGXFSZ};
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

const struct device *guarding_device(const struct guarding *guarding, const char *uuid)
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

    if (guarding_device(guarding, uuid) == NULL)
        code = guard_open_devices(guarding->nvml_path, guarding->amdsmi_path, pci, &guarding->list, &error);
    if (guarding_device(guarding, uuid) == NULL && code < 0)
        error_set(out_error, code, "the guard, which turns knobs back, cannot: %.400s", error.text);
}

static void hold(struct guarding *guarding, const char *uuid, const char *pci, int lock)
{
    struct fly_error error = {.code = 0};

    open_device(guarding, uuid, pci, &error);
    if (guarding_device(guarding, uuid) == NULL && error.code == 0)
        error_set(
            &error, FLY_EUNSUPPORTED,
            "the guard, which turns knobs back, does not see the GPU '%s'; see whether 'flyball doctor' does",
            uuid);
    else if (error.code == 0 && lock >= 0 && guarding->lock_count < DEVICES_MAX) {
        snprintf(guarding->held[guarding->lock_count].uuid, DEVICE_TEXT_MAX, "%s", uuid);
        snprintf(guarding->held[guarding->lock_count].pci, DEVICE_PCI_MAX, "%s", pci);
        guarding->locks[guarding->lock_count++] = lock;
    }
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
        int ready = mono_poll(
            wanted, 2, guarding->session_fd >= 0 ? MONO_NEVER : mono_after_s(mono_now(), LOOK_MS * 1e-3));

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

bool guarding_is_told_of(const struct guarding *guarding, const char *uuid, enum journal_kind kind)
{
    for (size_t i = 0; i < guarding->told_count; i++) {
        const struct told *told = &guarding->told[i];

        if (strcmp(told->uuid, uuid) == 0 && journal_kind_of(JOURNAL_TURNED, told->turn.quantity) == kind)
            return true;
    }
    return false;
}

/* Writes a debt down while a knob is put back. */
struct debtor {
    const struct guarding *guarding;
    struct journal_entry entry; /* in which the turn is */
    int code;
};

static void note_debt(void *state, const struct turn *turn)
{
    struct debtor *debtor = state;

    debtor->code = debt_keep(debtor->guarding->directory, &debtor->entry, turn, NULL);
}

/* Puts one knob back; false if that is to be tried again, or it is to be looked at again. */
static bool put_back_one(struct guarding *guarding, struct told *told)
{
    enum journal_kind kind = journal_kind_of(JOURNAL_TURNED, told->turn.quantity);
    const struct device *device = guarding_device(guarding, told->uuid);
    bool insists = told->looks == OPEN_LOOKS;
    struct debtor debtor = {.guarding = guarding};
    const struct turn_note note = {.note = note_debt, .state = &debtor};
    struct fly_error error = {.code = 0};
    struct setting found;
    enum turn_end end;

    if (device == NULL)
        return false;
    if (journal_read(guarding->directory, kind, told->uuid, &debtor.entry, NULL) < 0)
        journal_begin(told->uuid, "flyball", &debtor.entry);
    end = turn_back(&guarding->site, device, &told->turn, insists, &note, &found, &error);
    told->denied = end == TURN_FAILED && error.code == FLY_EPERM;
    if (end == TURN_FAILED || (end == TURN_SHORT && debtor.code < 0))
        return false;
    return told->looks-- <= 0;
}

void guarding_put_back(struct guarding *guarding, const char *only_uuid)
{
    for (size_t i = guarding->told_count; i > 0; i--) {
        struct told told = guarding->told[i - 1];
        enum journal_kind kind = journal_kind_of(JOURNAL_TURNED, told.turn.quantity);

        if ((only_uuid != NULL && strcmp(only_uuid, told.uuid) != 0) ||
            !put_back_one(guarding, &guarding->told[i - 1]))
            continue;
        forget(guarding, i - 1);
        if (!guarding_is_told_of(guarding, told.uuid, kind))
            journal_remove(guarding->directory, kind, told.uuid, NULL);
    }
}

static bool is_any_open(const struct guarding *guarding)
{
    for (size_t i = 0; i < guarding->told_count; i++) {
        if (turn_is_open(&guarding->told[i].turn))
            return true;
    }
    return false;
}

/* Makes a debt of a turn as the guard knows it. */
static void owe(struct guarding *guarding, const struct told *told)
{
    enum journal_kind kind = journal_kind_of(JOURNAL_TURNED, told->turn.quantity);
    struct journal_entry entry;

    if (journal_read(guarding->directory, kind, told->uuid, &entry, NULL) == 0 &&
        debt_keep(guarding->directory, &entry, &told->turn, NULL) == 0)
        (void)debt_keep_entry(guarding->directory, told->uuid, kind, NULL);
}

/*
 * Lets others turn the GPUs: what could not be put back is owed from now on. What this user may not put back
 * stays as it is, for root.
 */
static void let_go(struct guarding *guarding)
{
    for (size_t i = 0; i < guarding->told_count; i++) {
        const struct told *told = &guarding->told[i];

        if (!told->denied)
            owe(guarding, told);
    }
    for (size_t i = 0; i < guarding->lock_count; i++)
        close(guarding->locks[i]);
    close(GUARD_SOCKET); /* whoever waits for the guard waits no longer */
}

int guarding_begin(int argc, char **argv, struct guarding *out_guarding)
{
    struct fly_error error = {.code = 0};
    uint64_t session;

    if (argc != ARGUMENTS || strcmp(argv[1], GUARD_PROTOCOL) != 0 ||
        !number_parse_u64(argv[2], INT32_MAX, &session) || session == 0)
        return FLY_EUSAGE;
    out_guarding->session = (pid_t)session;
    out_guarding->directory = argv[3];
    site_init(argv[6], &out_guarding->site);
    detach();
    cgroup_leave("/proc");
    resist_oom();
    out_guarding->session_fd = (int)syscall(SYS_pidfd_open, out_guarding->session, 0);
    out_guarding->nvml_path = argv[4];
    out_guarding->amdsmi_path = argv[5];
    answer(GUARD_READY, "", &error);
    return 0;
}

void guarding_attend(struct guarding *guarding)
{
    struct mono_time begin;

    attend(guarding);
    begin = mono_now();
    guarding_put_back(guarding, NULL);
    for (int i = 0;
         i < TRIES && guarding->told_count > 0 &&
         mono_elapsed_s(begin, mono_now()) < (is_any_open(guarding) ? open_patience_s : patience_s);
         i++) {
        mono_sleep_s(TRY_NS * 1e-9);
        guarding_put_back(guarding, NULL);
    }
    let_go(guarding);
}
