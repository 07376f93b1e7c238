/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front: one thread that passes bytes between clients and the server. What a client could make
 * last is done between mark_busy and mark_free, so that the porter sees where it hangs.
 */
#include "http/front.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/wait.h"

/* ---- messages ---- */

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

bool front_message_send(int socket, const void *bytes, size_t length, int fd, bool wait)
{
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_len = length};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    ssize_t sent;

    memcpy(&piece.iov_base, &bytes, sizeof bytes); /* which takes it as it is, though not as const */

    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.aligned.cmsg_level = SOL_SOCKET;
        control.aligned.cmsg_type = SCM_RIGHTS;
        control.aligned.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.aligned), &fd, sizeof fd);
    }
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length;
}

ssize_t front_message_receive(int socket, void *bytes, size_t length, int *out_fd)
{
    union control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const struct cmsghdr *part;
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *out_fd = -1;
    part = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (part != NULL && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
        memcpy(out_fd, CMSG_DATA(part), sizeof *out_fd);
    return got;
}

/* ---- connections ---- */

enum { EVENTS_AT_ONCE = 64, PASS_BYTES = 65536, LOOK_MS = 500 };
static const double leave_wait_s = 1.0;

struct call;

/* One end of a connection. */
struct side {
    struct call *call;
    struct side *other;
    int fd;
    char *unsent; /* bytes that came from here and that the other side has not taken; owned, or NULL */
    size_t from, until;
    bool ended;       /* it sends no more */
    bool gone;        /* it takes no more, either */
    unsigned watched; /* events of epoll; 0: it is not in the set */
};

/* One connection. */
struct call {
    struct side client, server; /* the server's has no socket before the first byte */
    struct front_visit visit;
    struct mono_time deadline; /* INT64_MAX: none */
    bool over;
    struct call *next;
};

struct front {
    const struct front_place *place;
    double patience_s;
    struct peer_rules rules;
    struct call *calls;
    int incoming; /* a socket whose words have not come yet; -1: none */
    int epoll;
    bool leaves; /* the porter has ended */
    char bytes[PASS_BYTES];
};

/* ---- what may last ---- */

static void mark_busy(const struct front *front)
{
    atomic_store(&front->place->desk->busy_since_ns, mono_now().ns);
}

static void mark_free(const struct front *front)
{
    atomic_store(&front->place->desk->busy_since_ns, 0);
}

static ssize_t receive_from_client(struct front *front, struct call *call, char *bytes, size_t maximum,
                                   struct serve_peer *peer, bool *out_odd)
{
    ssize_t got;

    mark_busy(front);
    got = peer_receive(call->client.fd, bytes, maximum, &front->rules, peer, out_odd);
    mark_free(front);
    return got;
}

/*
 * A close takes a socket out of the set only if no other process has it, and a child of the porter or of the
 * server may have it for a moment.
 */
static void forget(const struct front *front, const struct side *side)
{
    if (side->watched != 0)
        epoll_ctl(front->epoll, EPOLL_CTL_DEL, side->fd, NULL);
}

/* The server's end first, so that the server hears of it however long the client's end takes. */
static void end_call(struct front *front, struct call *call)
{
    forget(front, &call->client);
    forget(front, &call->server);
    if (call->server.fd >= 0)
        close(call->server.fd);
    shutdown(call->client.fd, SHUT_RDWR);
    mark_busy(front);
    close(call->client.fd);
    mark_free(front);
    atomic_fetch_sub(front_count_of(front->place->desk, &call->visit), 1);
    free(call->client.unsent);
    free(call->server.unsent);
    free(call);
}

/* ---- passing bytes on ---- */

static bool holds_bytes(const struct side *side)
{
    return side->unsent != NULL;
}

static void watch(struct front *front, struct side *side)
{
    unsigned events =
        (!side->ended && !holds_bytes(side) ? EPOLLIN : 0U) | (holds_bytes(side->other) ? EPOLLOUT : 0U);
    struct epoll_event event = {.events = events, .data.ptr = side};

    if (side->fd < 0 || events == side->watched)
        return;
    /* A set reports that a side is gone even if nothing is waited for. */
    epoll_ctl(front->epoll,
              events == 0          ? EPOLL_CTL_DEL
              : side->watched == 0 ? EPOLL_CTL_ADD
                                   : EPOLL_CTL_MOD,
              side->fd, &event);
    side->watched = events;
}

/* Returns how many bytes the side took, or -1 if it is gone. */
static ssize_t give(const struct side *side, const char *bytes, size_t length)
{
    ssize_t sent = send(side->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

/* Gives bytes of a side to the other, and keeps what that does not take. Returns false if it is gone. */
static bool give_or_keep(struct side *from, const char *bytes, size_t length)
{
    ssize_t sent = give(from->other, bytes, length);

    if (sent < 0)
        return false;
    if ((size_t)sent == length)
        return true;
    from->from = 0;
    from->until = length - (size_t)sent;
    from->unsent = malloc(from->until);
    if (from->unsent == NULL)
        return false;
    memcpy(from->unsent, bytes + sent, from->until);
    return true;
}

static bool give_kept(struct side *from)
{
    ssize_t sent = give(from->other, from->unsent + from->from, from->until - from->from);

    if (sent < 0)
        return false;
    from->from += (size_t)sent;
    if (from->from < from->until)
        return true;
    free(from->unsent);
    from->unsent = NULL;
    if (from->ended)
        shutdown(from->other->fd, SHUT_WR);
    return true;
}

/* Descriptors that come later than the first byte prove nothing. */
static ssize_t take(struct front *front, const struct side *side)
{
    bool odd;

    return side == &side->call->client
               ? receive_from_client(front, side->call, front->bytes, PASS_BYTES, NULL, &odd)
               : recv(side->fd, front->bytes, PASS_BYTES, MSG_DONTWAIT);
}

static bool take_and_give(struct front *front, struct side *from)
{
    ssize_t got = take(front, from);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got > 0)
        return give_or_keep(from, front->bytes, (size_t)got);
    from->ended = true;
    shutdown(from->other->fd, SHUT_WR);
    return true;
}

/* The server closes when all is said; a client that closed may have left its last request. */
static bool is_over(const struct call *call)
{
    return (call->server.ended && !holds_bytes(&call->server)) ||
           (call->client.gone && call->client.ended && !holds_bytes(&call->client));
}

static void pass_on(struct front *front, struct side *side, unsigned events)
{
    struct call *call = side->call;
    bool good = true;

    if ((events & EPOLLOUT) != 0 && holds_bytes(side->other))
        good = give_kept(side->other);
    if (good && !side->ended && !holds_bytes(side))
        good = take_and_give(front, side);
    side->gone = side->gone || (events & (EPOLLHUP | EPOLLERR)) != 0;
    call->over = !good || is_over(call);
    if (call->over)
        return;
    if (call->server.ended && call->deadline.ns == INT64_MAX)
        call->deadline = mono_after_s(mono_now(), front->patience_s);
    watch(front, &call->client);
    watch(front, &call->server);
}

/* ---- the first byte ---- */

/* Gives the server its end, with what has come so far in it, so that the server reads it at once. */
static bool introduce(struct front *front, struct call *call, size_t length)
{
    struct front_guest guest = {
        .front = front->place->number, .door = call->visit.door, .peer = call->visit.peer};
    int ends[2];
    bool good;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return false;
    call->server.fd = ends[0];
    call->deadline.ns = INT64_MAX;
    good = give_or_keep(&call->client, front->bytes, length) &&
           front_message_send(front->place->intake, &guest, sizeof guest, ends[1], true);
    close(ends[1]);
    return good;
}

/* What came with the first byte alone is a proof, so that this byte is read alone. */
static void hear_first(struct front *front, struct call *call)
{
    bool odd;
    ssize_t got = receive_from_client(front, call, front->bytes, 1, &call->visit.peer, &odd);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    call->over = got <= 0 || odd;
    if (call->over)
        return;
    got = receive_from_client(front, call, front->bytes + 1, PASS_BYTES - 1, NULL, &odd);
    call->client.ended = got == 0;
    call->over = !introduce(front, call, 1 + (got > 0 ? (size_t)got : 0));
    if (call->over)
        return;
    if (call->client.ended && !holds_bytes(&call->client))
        shutdown(call->server.fd, SHUT_WR);
    watch(front, &call->client);
    watch(front, &call->server);
}

/* ---- connections that come and end ---- */

static void add_call(struct front *front, int fd, const struct front_visit *visit)
{
    struct call *call = calloc(1, sizeof *call);

    if (call == NULL) {
        mark_busy(front);
        close(fd);
        mark_free(front);
        atomic_fetch_sub(front_count_of(front->place->desk, visit), 1);
        return;
    }
    call->client = (struct side){.call = call, .other = &call->server, .fd = fd};
    call->server = (struct side){.call = call, .other = &call->client, .fd = -1};
    call->visit = *visit;
    call->over = visit->refused;
    call->deadline = mono_after_s(mono_now(), front->patience_s);
    call->next = front->calls;
    front->calls = call;
    watch(front, &call->client);
}

static void hear_porter(struct front *front)
{
    struct front_visit visit;
    ssize_t got;
    int fd;

    while ((got = front_message_receive(front->place->channel, &visit, sizeof visit, &fd)) > 0) {
        if (fd >= 0) {
            front->incoming = fd;
        } else if (front->incoming >= 0) {
            add_call(front, front->incoming, &visit);
            front->incoming = -1;
        }
    }
    if (got == 0) {
        front->leaves = true;
        epoll_ctl(front->epoll, EPOLL_CTL_DEL, front->place->channel, NULL);
    }
}

/* Ends what is over or late. */
static void end_calls(struct front *front)
{
    struct mono_time now = mono_now();

    for (struct call **at = &front->calls; *at != NULL;) {
        struct call *call = *at;

        if (!call->over && call->deadline.ns > now.ns) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        end_call(front, call);
    }
}

static void handle(struct front *front, const struct epoll_event *event)
{
    struct side *side = event->data.ptr;

    if (side == NULL)
        hear_porter(front);
    else if (side->call->over)
        return;
    else if (side->call->server.fd < 0)
        hear_first(front, side->call);
    else
        pass_on(front, side, event->events);
}

/* A front needs no right, so that whoever gets it to obey gains none. */
static void drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    syscall(SYS_capset, &header, none);
}

/* Answers that the server has given are delivered when the porter ends, as far as clients take them. */
static void work(struct front *front)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    struct mono_time last = {INT64_MAX};

    while (!front->leaves || (front->calls != NULL && mono_now().ns < last.ns)) {
        int count = mono_epoll(front->epoll, events, EVENTS_AT_ONCE,
                               front->calls != NULL ? mono_after_s(mono_now(), LOOK_MS * 1e-3) : MONO_NEVER);

        for (int i = 0; i < count; i++)
            handle(front, &events[i]);
        end_calls(front);
        if (front->leaves && last.ns == INT64_MAX)
            last = mono_after_s(mono_now(), leave_wait_s);
    }
}

void front_run(const struct front_place *place, const struct front_rules *rules)
{
    static struct front front;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    prctl(PR_SET_NAME, "flyball-front", 0, 0, 0);
    drop_rights();
    front = (struct front){.place = place,
                           .patience_s = rules->patience_s,
                           .rules = {rules->device_major, rules->device_directory},
                           .incoming = -1,
                           .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (front.epoll >= 0 && epoll_ctl(front.epoll, EPOLL_CTL_ADD, place->channel, &event) == 0)
        work(&front);
    /* What is still open is closed by the end of the process, which lingers at no socket. */
    _exit(0);
}
