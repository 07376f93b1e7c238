/* SPDX-License-Identifier: Apache-2.0 */
#include "http/fronts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/porter.h"

/*
 * ROOT_FRONTS: for root alone. HUNG_LOOKS, IDLE_LOOKS: looks at which a front was busy with the same
 * thing, or had no connection, before it is given up. Looks are counted and not seconds, so that a
 * machine that stands still for a while makes no front look as if it hung.
 */
enum {
    ROOT_FRONTS = 2,
    HUNG_OF_A_USER = 2,
    HUNG_LOOKS = 12,
    IDLE_LOOKS = 40,
    BINS_AT_ONCE = 16,
    WAIT_MS = 5
};
static const double last_wait_s = 1.5;

/* ---- to the server ---- */

/* What the server does not read in time is not said again. */
static void tell(const struct fronts *fronts, uint64_t lost_front, const char *line, uid_t uid)
{
    struct porter_news news = {.lost_front = lost_front};

    snprintf(news.line, sizeof news.line, line, (unsigned long)uid);
    front_message_send(fronts->control, &news, sizeof news, -1, false);
}

/* ---- what cannot be handed on ---- */

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* In a new process, which must keep none of these; they stay open in this one. */
static void close_own(struct fronts *fronts)
{
    for (size_t i = 0; i < FRONTS_MAX; i++)
        if (fronts->rows[i].pid != 0)
            close_one(&fronts->rows[i].channel);
    close_one(&fronts->control);
    fronts->close_others(fronts->others);
}

/*
 * Closing it may take for ever, but the end of a process lingers at no socket, and closes no file that a
 * client sent, since nobody has received it. So a process that ends is the last to close it.
 */
static void empty_bin(struct fronts *fronts)
{
    int gate[2];
    char byte;
    pid_t pid;

    if (fronts->bin_count == 0 || fronts->bins == BINS_AT_ONCE || pipe2(gate, O_CLOEXEC) != 0)
        return;
    pid = fork();
    if (pid == 0) {
        close_own(fronts);
        close(gate[1]);
        /* Until this process's parent has closed them. */
        while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
            continue;
        _exit(0);
    }
    close(gate[0]);
    if (pid > 0) {
        for (size_t i = 0; i < fronts->bin_count; i++)
            close(fronts->bin[i]);
        fronts->bin_count = 0;
        fronts->bins++;
    }
    close(gate[1]);
}

/* ---- fronts ---- */

static struct front_desk *desk_of(const struct fronts *fronts, const struct front_row *row)
{
    return &fronts->desks[row - fronts->rows];
}

static unsigned connections_of(const struct fronts *fronts, const struct front_row *row)
{
    unsigned count = 0;

    for (size_t i = 0; i < FRONT_DOORS_MAX; i++)
        count += atomic_load(&desk_of(fronts, row)->connections[i]);
    return count;
}

/* Users of a container may have the numbers of other users; their connections count apart. */
static bool is_of(const struct front_row *row, const struct serve_peer *peer)
{
    return row->pid != 0 && row->uid == peer->uid && row->same_namespaces == peer->same_namespaces;
}

static void clear_row(struct fronts *fronts, struct front_row *row)
{
    close_one(&row->channel);
    *row = (struct front_row){.channel = -1};
    memset(desk_of(fronts, row), 0, sizeof *fronts->desks);
}

/* Processes that have ended, as they should or by a fault. */
static void bury(struct fronts *fronts)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        struct front_row *row = fronts->rows;

        while (row < fronts->rows + FRONTS_MAX && row->pid != pid)
            row++;
        if (row == fronts->rows + FRONTS_MAX) {
            fronts->bins--;
            continue;
        }
        if (row->channel >= 0)
            tell(fronts, row->number, "the process for user %lu's connections has died; they are ended",
                 row->uid);
        clear_row(fronts, row);
    }
}

/* Its client sees the end at once. */
static void throw_away(struct fronts *fronts, int fd)
{
    shutdown(fd, SHUT_RDWR);
    fronts->bin[fronts->bin_count++] = fd;
    if (fronts->bin_count < FRONTS_BIN_MAX)
        return;
    bury(fronts);
    empty_bin(fronts);
}

static size_t hung_of(const struct fronts *fronts, const struct serve_peer *peer)
{
    size_t count = 0;

    for (size_t i = 0; i < FRONTS_MAX; i++)
        count += is_of(&fronts->rows[i], peer) && fronts->rows[i].lost;
    return count;
}

/* Its row stays until the process has ended, which it may not do even now. */
static void lose(struct fronts *fronts, struct front_row *row, const char *line)
{
    close_one(&row->channel);
    row->lost = true;
    kill(row->pid, SIGKILL);
    tell(fronts, row->number, line, row->uid);
}

static void lose_hung(struct fronts *fronts, struct front_row *row)
{
    const struct serve_peer peer = {.uid = row->uid, .same_namespaces = row->same_namespaces};

    lose(
        fronts, row,
        hung_of(fronts, &peer) + 1 < HUNG_OF_A_USER
            ? "user %lu has sent a descriptor whose close does not return; that user's connections are ended"
            : "user %lu has again sent a descriptor whose close does not return; that user's connections are "
              "ended, and refused until one has been closed");
}

static struct front_row *find_row(struct fronts *fronts, const struct serve_peer *peer)
{
    struct front_row *free_row = NULL;
    size_t free_count = 0;
    bool root = peer->same_namespaces && peer->uid == 0;

    for (size_t i = 0; i < FRONTS_MAX; i++) {
        struct front_row *row = &fronts->rows[i];

        if (is_of(row, peer) && row->channel >= 0)
            return row;
        free_count += row->pid == 0;
        free_row = row->pid == 0 ? row : free_row;
    }
    return hung_of(fronts, peer) >= HUNG_OF_A_USER || (!root && free_count <= ROOT_FRONTS) ? NULL : free_row;
}

_Noreturn static void be_front(struct fronts *fronts, const struct front_row *row, int channel)
{
    const struct front_place place = {
        .channel = channel, .intake = fronts->intake, .number = row->number, .desk = desk_of(fronts, row)};
    int arriving = fronts->arriving;

    close_own(fronts);
    /* The porter has it still, or has sent it here. */
    close_one(&arriving);
    front_run(&place, &fronts->rules);
}

/* What waits to be thrown away comes into the front, too, and stays there untouched until it ends. */
static bool start_front(struct fronts *fronts, struct front_row *row, const struct serve_peer *peer)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    *row = (struct front_row){.number = ++fronts->numbers,
                              .channel = -1,
                              .uid = peer->uid,
                              .same_namespaces = peer->same_namespaces};
    row->pid = fork();
    if (row->pid == 0) {
        close(ends[0]);
        be_front(fronts, row, ends[1]);
    }
    close(ends[1]);
    row->channel = ends[0];
    if (row->pid > 0)
        return true;
    row->pid = 0;
    clear_row(fronts, row);
    return false;
}

/* The socket goes first and its words second, when this process has closed it (struct front_visit). */
void fronts_hand_on(struct fronts *fronts, int fd, const struct front_visit *visit)
{
    static const char deaf[] = "the process for user %lu's connections takes no more; they are ended";
    struct front_row *row = find_row(fronts, &visit->peer);

    fronts->arriving = fd;
    if (row == NULL || (row->pid == 0 && !start_front(fronts, row, &visit->peer))) {
        throw_away(fronts, fd);
    } else if (!front_message_send(row->channel, "", 1, fd, false)) {
        throw_away(fronts, fd);
        lose(fronts, row, deaf);
    } else {
        atomic_fetch_add(front_count_of(desk_of(fronts, row), visit), 1);
        close(fd);
        if (!front_message_send(row->channel, visit, sizeof *visit, -1, false))
            lose(fronts, row, deaf);
    }
    fronts->arriving = -1;
}

static void look_at(struct fronts *fronts, struct front_row *row)
{
    int64_t busy_ns = atomic_load(&desk_of(fronts, row)->busy_since_ns);
    bool idle =
        connections_of(fronts, row) + atomic_load(&desk_of(fronts, row)->connections[FRONT_UNCOUNTED]) == 0;

    row->busy_looks = busy_ns != 0 && busy_ns == row->busy_since_ns ? row->busy_looks + 1 : 0;
    row->busy_since_ns = busy_ns;
    row->idle_looks = idle ? row->idle_looks + 1 : 0;
    if (row->busy_looks >= HUNG_LOOKS)
        lose_hung(fronts, row);
    else if (row->idle_looks >= IDLE_LOOKS)
        close_one(&row->channel);
}

bool fronts_look(struct fronts *fronts)
{
    bool any = false;

    bury(fronts);
    empty_bin(fronts);
    for (size_t i = 0; i < FRONTS_MAX; i++) {
        any = any || fronts->rows[i].pid != 0;
        if (fronts->rows[i].pid != 0 && fronts->rows[i].channel >= 0)
            look_at(fronts, &fronts->rows[i]);
    }
    return any || fronts->bin_count > 0 || fronts->bins > 0;
}

unsigned fronts_connections(const struct fronts *fronts, unsigned door)
{
    unsigned count = 0;

    for (size_t i = 0; i < FRONTS_MAX; i++)
        if (fronts->rows[i].pid != 0 && !fronts->rows[i].lost)
            count += atomic_load(&fronts->desks[i].connections[door]);
    return count;
}

unsigned fronts_connections_of(const struct fronts *fronts, const struct serve_peer *peer)
{
    unsigned count = 0;

    for (size_t i = 0; i < FRONTS_MAX; i++)
        if (is_of(&fronts->rows[i], peer) && !fronts->rows[i].lost)
            count += connections_of(fronts, &fronts->rows[i]);
    return count;
}

void fronts_dismiss(struct fronts *fronts)
{
    struct mono_time until = mono_after_s(mono_now(), last_wait_s);
    bool any = true;

    for (size_t i = 0; i < FRONTS_MAX; i++)
        close_one(&fronts->rows[i].channel);
    while (any && mono_now().ns < until.ns) {
        any = false;
        bury(fronts);
        for (size_t i = 0; i < FRONTS_MAX; i++)
            any = any || (fronts->rows[i].pid != 0 && !fronts->rows[i].lost);
        if (any)
            clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), 1e-3 * WAIT_MS));
    }
}

bool fronts_open(struct fronts *fronts)
{
    const size_t size = FRONTS_MAX * sizeof *fronts->desks;

    /* cppcheck-suppress invalidFunctionArg ; -1 is what a mapping without a file wants */
    fronts->desks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fronts->arriving = -1;
    for (size_t i = 0; i < FRONTS_MAX; i++)
        fronts->rows[i].channel = -1;
    return fronts->desks != MAP_FAILED;
}
