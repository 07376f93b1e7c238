/* SPDX-License-Identifier: Apache-2.0 */
#include "http/peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread/quiet_thread.h"
#include "http/closer.h"

/*
 * ACCEPTS_AT_ONCE: of one socket, before others have their turn. CLOSES_MAX: connections above the
 * limit of a user that wait to be closed at the same time.
 */
enum { EVENTS_AT_ONCE = 32, ACCEPTS_AT_ONCE = 16, LOOK_MS = 100, NUDGE_MS = 2, CLOSES_MAX = 64 };

enum guest_stage {
    GUEST_SILENT, /* has not sent its first byte; this thread's */
    GUEST_HANDED, /* given to `take`, not claimed yet */
    GUEST_TAKEN,  /* claimed: it has a number */
    GUEST_LEAVES, /* being closed */
};

struct peers_door;

/* One connection. Only the thread that accepts adds guests, and removes those of its own. */
struct guest {
    enum guest_stage stage;
    struct peers_door *door;
    int fd;
    bool showed; /* its first bytes came with descriptors, and may not all be read yet (peer_nudge) */
    struct serve_peer peer;
    struct mono_time deadline; /* to say something, and then to be read whole */
    struct closer_job job;
    struct guest *previous, *next;
};

struct peers_door {
    int fd; /* borrowed */
    void *owner;
    bool paused;
    unsigned count; /* guests; under the lock */
};

struct peers {
    struct peers_options options;
    struct peers_door doors[PEERS_DOORS_MAX];
    size_t door_count;
    pthread_mutex_t lock; /* of the list, the stages and the counts */
    struct guest *first;
    struct closer *closer;
    int epoll, bell; /* the bell ends the thread */
    pthread_t thread;
    bool runs;
};

/* ---- the list ---- */

static struct guest *add_guest(struct peers *peers, struct peers_door *door, int fd,
                               const struct serve_peer *peer)
{
    struct guest *guest = calloc(1, sizeof *guest);

    if (guest == NULL)
        return NULL;
    guest->door = door;
    guest->fd = fd;
    guest->peer = *peer;
    guest->deadline = mono_after_s(mono_now(), peers->options.first_byte_s);
    pthread_mutex_lock(&peers->lock);
    guest->next = peers->first;
    if (guest->next != NULL)
        guest->next->previous = guest;
    peers->first = guest;
    door->count++;
    pthread_mutex_unlock(&peers->lock);
    return guest;
}

/* Call it with the lock. */
static void remove_guest(struct peers *peers, struct guest *guest)
{
    guest->door->count--;
    if (guest->previous != NULL)
        guest->previous->next = guest->next;
    else
        peers->first = guest->next;
    if (guest->next != NULL)
        guest->next->previous = guest->previous;
    free(guest);
}

/* Users of a container may have the numbers of other users; their connections count apart. */
static bool same_user(const struct serve_peer *one, const struct serve_peer *other)
{
    return one->uid == other->uid && one->same_namespaces == other->same_namespaces;
}

static bool user_is_full(struct peers *peers, const struct serve_peer *peer)
{
    unsigned count = 0;

    if (peers->options.connections_per_user == 0)
        return false;
    pthread_mutex_lock(&peers->lock);
    for (const struct guest *guest = peers->first; guest != NULL; guest = guest->next)
        count += same_user(&guest->peer, peer);
    pthread_mutex_unlock(&peers->lock);
    return count >= peers->options.connections_per_user;
}

static bool door_has(struct peers *peers, const struct peers_door *door, unsigned connections)
{
    bool has;

    pthread_mutex_lock(&peers->lock);
    has = door->count >= connections;
    pthread_mutex_unlock(&peers->lock);
    return has;
}

/* Nobody is accepted then, root neither. */
static bool door_is_full(struct peers *peers, const struct peers_door *door)
{
    return door_has(peers, door, peers->options.connections + peers->options.root_connections);
}

/* Who connects is known only once the connection is accepted. */
static bool is_too_many(struct peers *peers, const struct peers_door *door, const struct serve_peer *peer)
{
    bool root = peer->local && peer->same_namespaces && peer->uid == 0;

    if (peers->options.root_connections > 0 && root)
        return false;
    return door_has(peers, door, peers->options.connections) || user_is_full(peers, peer);
}

void peers_claim(struct peers *peers, int fd, uint64_t number, struct serve_peer *out_peer)
{
    struct serve_peer peer = SERVE_PEER_UNKNOWN;

    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = guest->next) {
        if (guest->stage != GUEST_HANDED || guest->fd != fd)
            continue;
        guest->stage = GUEST_TAKEN;
        guest->peer.connection = number;
        peer = guest->peer;
        break;
    }
    pthread_mutex_unlock(&peers->lock);
    peer.connection = number;
    *out_peer = peer;
}

void peers_forget(struct peers *peers, uint64_t number)
{
    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = guest->next) {
        if (guest->stage != GUEST_TAKEN || guest->peer.connection != number)
            continue;
        remove_guest(peers, guest);
        break;
    }
    pthread_mutex_unlock(&peers->lock);
}

/* ---- guests that have said nothing yet ---- */

/* Closes the guest elsewhere; it counts until that is done. */
static void send_away(struct peers *peers, struct guest *guest, const struct peer_strangers *strangers)
{
    epoll_ctl(peers->epoll, EPOLL_CTL_DEL, guest->fd, NULL);
    guest->job.socket = guest->fd;
    if (strangers != NULL)
        guest->job.strangers = *strangers;
    pthread_mutex_lock(&peers->lock);
    guest->stage = GUEST_LEAVES;
    pthread_mutex_unlock(&peers->lock);
    closer_put(peers->closer, &guest->job);
}

/*
 * A guest whose reader closed it without claiming it leaves its row behind. The next socket with
 * that descriptor shows it.
 */
static void remove_unclaimed(struct peers *peers, int fd)
{
    struct guest *next;

    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = next) {
        next = guest->next;
        if (guest->stage == GUEST_HANDED && guest->fd == fd)
            remove_guest(peers, guest);
    }
    pthread_mutex_unlock(&peers->lock);
}

static void hand_over(struct peers *peers, struct guest *guest)
{
    int fd = guest->fd;
    void *owner = guest->door->owner;

    epoll_ctl(peers->epoll, EPOLL_CTL_DEL, fd, NULL);
    pthread_mutex_lock(&peers->lock);
    guest->stage = GUEST_HANDED;
    guest->deadline = mono_after_s(mono_now(), peers->options.first_byte_s);
    pthread_mutex_unlock(&peers->lock);
    /* From here on another thread may claim and forget the guest. */
    if (!peers->options.take(owner, fd))
        remove_unclaimed(peers, fd);
}

static void listen_to(struct peers *peers, struct guest *guest)
{
    struct peer_strangers strangers;
    enum peer_word word = peer_listen(guest->fd, &peers->options.rules, &guest->peer, &strangers);

    guest->showed = word == PEER_SHOWED;
    switch (word) {
    case PEER_SILENT:
        break;
    case PEER_SPOKE:
    case PEER_SHOWED:
        hand_over(peers, guest);
        break;
    case PEER_LEFT:
    case PEER_ODD:
        send_away(peers, guest, &strangers);
        break;
    }
}

static struct guest *find_late(struct peers *peers, struct mono_time now)
{
    struct guest *guest;

    pthread_mutex_lock(&peers->lock);
    for (guest = peers->first; guest != NULL; guest = guest->next)
        if (guest->stage == GUEST_SILENT && guest->deadline.ns <= now.ns)
            break;
    pthread_mutex_unlock(&peers->lock);
    return guest;
}

static void send_late_away(struct peers *peers, struct mono_time now)
{
    struct guest *late;

    while ((late = find_late(peers, now)) != NULL)
        send_away(peers, late, NULL);
}

/* Returns whether there is something to look after soon. */
static bool look_after_guests(struct peers *peers)
{
    struct guest *next;
    bool busy = false;

    send_late_away(peers, mono_now());

    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = next) {
        next = guest->next;
        busy = busy || guest->stage == GUEST_SILENT || guest->stage == GUEST_LEAVES;
        if (guest->stage == GUEST_LEAVES && atomic_load(&guest->job.done))
            remove_guest(peers, guest);
    }
    pthread_mutex_unlock(&peers->lock);
    return busy;
}

/* A guest's socket stays open while it is in the list. Returns whether any may need it again. */
static bool nudge_guests(struct peers *peers)
{
    struct mono_time now = mono_now();
    bool any = false;

    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = guest->next) {
        if (!guest->showed || (guest->stage != GUEST_HANDED && guest->stage != GUEST_TAKEN))
            continue;
        if (guest->stage == GUEST_TAKEN)
            guest->showed = peer_nudge(guest->fd) && guest->deadline.ns > now.ns;
        any = any || guest->showed;
    }
    pthread_mutex_unlock(&peers->lock);
    return any;
}

/* ---- sockets that listen ---- */

static void watch_door(struct peers *peers, struct peers_door *door, bool paused)
{
    struct epoll_event event = {.events = paused ? 0 : EPOLLIN, .data.ptr = door};

    door->paused = paused;
    epoll_ctl(peers->epoll, EPOLL_CTL_MOD, door->fd, &event);
}

static void receive(struct peers *peers, struct peers_door *door, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
    struct serve_peer peer;
    struct guest *guest;
    bool full;

    remove_unclaimed(peers, fd);
    peer_look(fd, &peer);
    full = is_too_many(peers, door, &peer);
    guest = full && closer_waiting(peers->closer) >= CLOSES_MAX ? NULL : add_guest(peers, door, fd, &peer);
    if (guest == NULL) {
        close(fd);
        return;
    }
    event.data.ptr = guest;
    if (full || epoll_ctl(peers->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        send_away(peers, guest, NULL);
}

/* Without memory or descriptors, and with as many connections as may be, the others wait. */
static void accept_some(struct peers *peers, struct peers_door *door)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        bool full = door_is_full(peers, door);
        int fd = full ? -1 : accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            receive(peers, door, fd);
        } else if (full || (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)) {
            watch_door(peers, door, true);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static bool look_after_doors(struct peers *peers)
{
    bool paused = false;

    for (size_t i = 0; i < peers->door_count; i++) {
        struct peers_door *door = &peers->doors[i];

        if (door->paused && !door_is_full(peers, door))
            watch_door(peers, door, false);
        paused = paused || door->paused;
    }
    return paused;
}

static bool is_door(const struct peers *peers, const void *pointer)
{
    for (size_t i = 0; i < peers->door_count; i++)
        if (pointer == &peers->doors[i])
            return true;
    return false;
}

static void *run(void *state)
{
    struct peers *peers = state;
    struct epoll_event events[EVENTS_AT_ONCE];
    int wait_ms = -1;

    for (;;) {
        int count = epoll_wait(peers->epoll, events, EVENTS_AT_ONCE, wait_ms);
        bool guests, doors;

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                return NULL;
            if (is_door(peers, events[i].data.ptr))
                accept_some(peers, events[i].data.ptr);
            else
                listen_to(peers, events[i].data.ptr);
        }
        guests = look_after_guests(peers);
        doors = look_after_doors(peers);
        wait_ms = guests || doors ? LOOK_MS : -1;
        if (nudge_guests(peers))
            wait_ms = NUDGE_MS;
    }
}

/* ---- from opening to closing ---- */

static void peers_free(struct peers *peers)
{
    if (peers->epoll >= 0)
        close(peers->epoll);
    if (peers->bell >= 0)
        close(peers->bell);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}

int peers_open(const struct peers_options *options, struct peers **out_peers, struct fly_error *out_error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    struct peers *peers = calloc(1, sizeof *peers);
    int code = 0;

    if (peers == NULL)
        return error_no_memory(out_error);
    peers->options = *options;
    pthread_mutex_init(&peers->lock, NULL);
    peers->epoll = epoll_create1(EPOLL_CLOEXEC);
    peers->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (peers->epoll < 0 || peers->bell < 0 ||
        epoll_ctl(peers->epoll, EPOLL_CTL_ADD, peers->bell, &event) != 0)
        code = error_set(out_error, FLY_ELIMIT, "cannot wait for connections: %s", strerror(errno));
    if (code == 0)
        code = closer_open(&peers->closer, out_error);
    if (code < 0)
        peers_free(peers);
    else
        *out_peers = peers;
    return code;
}

int peers_add(struct peers *peers, int fd, void *door, struct fly_error *out_error)
{
    struct peers_door *added = &peers->doors[peers->door_count];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = added};

    if (peers->door_count == PEERS_DOORS_MAX || epoll_ctl(peers->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return error_set(out_error, FLY_ELIMIT, "cannot wait for connections of another socket");
    *added = (struct peers_door){.fd = fd, .owner = door};
    peers->door_count++;
    return 0;
}

int peers_start(struct peers *peers, struct fly_error *out_error)
{
    peers->runs = quiet_thread_start(&peers->thread, run, peers);
    return peers->runs ? 0
                       : error_set(out_error, FLY_ENOMEM, "cannot start the thread that accepts connections");
}

void peers_stop(struct peers *peers)
{
    if (!peers->runs)
        return;
    eventfd_write(peers->bell, 1);
    pthread_join(peers->thread, NULL);
    peers->runs = false;
    for (size_t i = 0; i < peers->door_count; i++)
        epoll_ctl(peers->epoll, EPOLL_CTL_DEL, peers->doors[i].fd, NULL);
    send_late_away(peers, (struct mono_time){INT64_MAX});
}

void peers_close(struct peers *peers)
{
    struct guest *next;

    if (peers == NULL)
        return;
    peers_stop(peers);
    closer_close(peers->closer);
    for (struct guest *guest = peers->first; guest != NULL; guest = next) {
        next = guest->next;
        /* One that is still being closed is left to who closes it. */
        if (guest->stage != GUEST_LEAVES || atomic_load(&guest->job.done))
            free(guest);
    }
    peers_free(peers);
}
