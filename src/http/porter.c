/* SPDX-License-Identifier: Apache-2.0 */
#include "http/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wait.h"
#include "http/fronts.h"
#include "http/listener.h"

enum { EVENTS_AT_ONCE = 32, ACCEPTS_AT_ONCE = 16, WAIT_MS = 5 };
static const double porter_wait_s = 2.0;

struct porter_door {
    int fd; /* -1: none */
    bool inherited, paused;
};

/* The process. */
struct hall {
    struct porter_rules rules;
    struct porter_door doors[FRONT_DOORS_MAX];
    struct fronts fronts;
    int control, epoll;
};

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- sockets that listen ---- */

/* Nobody is accepted then, root neither. */
static bool is_full(const struct hall *hall, unsigned door)
{
    return hall->fronts.bin_count == FRONTS_BIN_MAX ||
           fronts_connections(&hall->fronts, door) >= hall->rules.connections + hall->rules.root_connections;
}

/* Who connects is known only once the connection is accepted. */
static bool is_too_many(const struct hall *hall, unsigned door, const struct serve_peer *peer)
{
    bool root = peer->local && peer->same_namespaces && peer->uid == 0;

    if (hall->rules.root_connections > 0 && root)
        return false;
    return fronts_connections(&hall->fronts, door) >= hall->rules.connections ||
           (hall->rules.connections_per_user != 0 &&
            fronts_connections_of(&hall->fronts, peer) >= hall->rules.connections_per_user);
}

static void watch_door(struct hall *hall, unsigned door, bool paused)
{
    struct epoll_event event = {.events = paused ? 0 : EPOLLIN, .data.u32 = door};

    hall->doors[door].paused = paused;
    epoll_ctl(hall->epoll, EPOLL_CTL_MOD, hall->doors[door].fd, &event);
}

static void receive(struct hall *hall, unsigned door, int fd)
{
    struct front_visit visit = {.door = door};

    peer_look(fd, &visit.peer);
    visit.refused = is_too_many(hall, door, &visit.peer);
    fronts_hand_on(&hall->fronts, fd, &visit);
}

/* Without memory or descriptors, and with as many connections as may be, the others wait. */
static void accept_some(struct hall *hall, unsigned door)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE && hall->doors[door].fd >= 0; i++) {
        bool full = is_full(hall, door);
        int fd = full ? -1 : accept4(hall->doors[door].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            receive(hall, door, fd);
        } else if (full || (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)) {
            watch_door(hall, door, true);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static bool look_after_doors(struct hall *hall)
{
    bool paused = false;

    for (unsigned i = 0; i < FRONT_DOORS_MAX; i++) {
        if (hall->doors[i].fd < 0)
            continue;
        if (hall->doors[i].paused && !is_full(hall, i))
            watch_door(hall, i, false);
        paused = paused || hall->doors[i].paused;
    }
    return paused;
}

/* Lets nobody connect any more. The sockets stay open: connections may wait in them that nobody must close.
 */
static void stop(struct hall *hall)
{
    for (size_t i = 0; i < FRONT_DOORS_MAX; i++) {
        if (hall->doors[i].fd < 0)
            continue;
        epoll_ctl(hall->epoll, EPOLL_CTL_DEL, hall->doors[i].fd, NULL);
        if (!hall->doors[i].inherited)
            shutdown(hall->doors[i].fd, SHUT_RDWR);
        hall->doors[i].paused = false;
    }
}

/* ---- the server's orders ---- */

static void take_rules(struct hall *hall, const struct porter_rules *rules)
{
    hall->rules = *rules;
    hall->fronts.rules = rules->front;
}

static void listen_at(struct hall *hall, const struct porter_order *order, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = order->door};

    hall->doors[order->door] = (struct porter_door){.fd = fd, .inherited = order->inherited};
    epoll_ctl(hall->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* The server's own connection goes the way of all, and counts for nothing. */
static void probe(struct hall *hall, unsigned door, int fd)
{
    struct front_visit visit = {.door = door, .uncounted = true};

    peer_look(fd, &visit.peer);
    fronts_hand_on(&hall->fronts, fd, &visit);
}

/* Returns false when the server has ended. */
static bool obey(struct hall *hall)
{
    struct porter_order order;
    ssize_t got;
    int fd;

    while ((got = front_message_receive(hall->control, &order, sizeof order, &fd)) > 0) {
        if (order.what == PORTER_RULES)
            take_rules(hall, &order.rules);
        else if (order.what == PORTER_LISTEN && fd >= 0)
            listen_at(hall, &order, fd);
        else if (order.what == PORTER_PROBE && fd >= 0 && hall->fronts.bin_count < FRONTS_BIN_MAX)
            probe(hall, order.door, fd);
        else if (order.what == PORTER_STOP)
            stop(hall);
        else
            close_one(&fd);
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static void work(struct hall *hall)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    struct mono_time next_look = mono_now();
    bool busy = false, paused = false;

    for (;;) {
        int count = mono_epoll(hall->epoll, events, EVENTS_AT_ONCE,
                               busy || paused ? mono_after_s(mono_now(), FRONTS_LOOK_MS * 1e-3) : MONO_NEVER);

        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 < FRONT_DOORS_MAX)
                accept_some(hall, events[i].data.u32);
            else if (!obey(hall))
                return;
        }
        busy = busy || count > 0;
        if (mono_now().ns >= next_look.ns) {
            busy = fronts_look(&hall->fronts);
            next_look = mono_after_s(mono_now(), 1e-3 * FRONTS_LOOK_MS);
        }
        paused = look_after_doors(hall);
    }
}

/* Signals of a terminal, and of who stops the service, are for the server: it ends the porter. */
static void leave_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static void close_from(int first, int last)
{
#ifdef SYS_close_range
    if (first <= last)
        syscall(SYS_close_range, first, last, 0);
#else
    (void)first;
    (void)last;
#endif
}

/*
 * A front that hangs must keep open nothing of which others wait for the end. Before Linux 5.9, it keeps the
 * sockets with which systemd started the program, which does no harm.
 */
static void leave_descriptors(int control, int intake)
{
    int nothing, lower = control < intake ? control : intake, upper = control < intake ? intake : control;

    close_from(STDERR_FILENO + 1, lower - 1);
    close_from(lower + 1, upper - 1);
    close_from(upper + 1, INT_MAX);
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    if (nothing > STDERR_FILENO)
        close(nothing);
}

/* In a process that was forked; this one has them still. */
static void close_sockets(void *others)
{
    struct hall *hall = others;

    for (size_t i = 0; i < FRONT_DOORS_MAX; i++)
        close_one(&hall->doors[i].fd);
    close_one(&hall->epoll);
}

_Noreturn static void run(int control, int intake)
{
    static struct hall hall;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = FRONT_DOORS_MAX};

    prctl(PR_SET_NAME, "flyball-porter", 0, 0, 0);
    leave_signals();
    leave_descriptors(control, intake);
    hall = (struct hall){
        .control = control,
        .epoll = epoll_create1(EPOLL_CLOEXEC),
        .fronts = {.control = control, .intake = intake, .close_others = close_sockets, .others = &hall}};
    for (size_t i = 0; i < FRONT_DOORS_MAX; i++)
        hall.doors[i].fd = -1;
    if (!fronts_open(&hall.fronts) || hall.epoll < 0 ||
        epoll_ctl(hall.epoll, EPOLL_CTL_ADD, control, &event) != 0)
        _exit(1);
    work(&hall);
    stop(&hall);
    fronts_dismiss(&hall.fronts);
    /* The end of a process lingers at no socket. */
    _exit(0);
}

/* ---- in the program ---- */

static int refuse(struct fly_error *out_error)
{
    return error_set(out_error, FLY_ELIMIT, "cannot start the process that accepts connections: %s",
                     strerror(errno));
}

/* Addresses that cannot be read are refused by who opens them. */
static bool is_wanted(const char *const *listen, size_t count)
{
    struct listen_address address;

    for (size_t i = 0; i < count; i++)
        if (listen_address_parse(listen[i], &address, NULL) == 0 && listener_look(&address, NULL) == 0 &&
            address.at.ss_family == AF_UNIX)
            return true;
    return false;
}

int porter_start(const char *const *listen, size_t count, struct porter *out_porter,
                 struct fly_error *out_error)
{
    struct porter porter = PORTER_NONE;
    int control[2], intake[2];

    *out_porter = porter;
    if (!is_wanted(listen, count))
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
        return refuse(out_error);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, intake) != 0) {
        close(control[0]);
        close(control[1]);
        return refuse(out_error);
    }
    porter.pid = fork();
    if (porter.pid == 0) {
        close(control[0]);
        close(intake[0]);
        run(control[1], intake[1]);
    }
    close(control[1]);
    close(intake[1]);
    porter.control = control[0];
    porter.intake = intake[0];
    if (porter.pid < 0) {
        porter.pid = 0;
        porter_end(&porter);
        return refuse(out_error);
    }
    *out_porter = porter;
    return 0;
}

bool porter_lives(struct porter *porter)
{
    if (porter->pid != 0 && waitpid(porter->pid, NULL, WNOHANG) != 0)
        porter->pid = 0;
    return porter->pid != 0;
}

void porter_end(struct porter *porter)
{
    struct mono_time until = mono_after_s(mono_now(), porter_wait_s);

    close_one(&porter->intake);
    close_one(&porter->control);
    while (porter_lives(porter) && mono_now().ns < until.ns)
        clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), 1e-3 * WAIT_MS));
    porter->pid = 0;
}
