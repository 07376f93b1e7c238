/* SPDX-License-Identifier: Apache-2.0 */
#include "http/peers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/pool.h"

/* One connection. */
struct guest {
    bool taken; /* claimed: it has a number */
    int fd;
    uint64_t front;
    struct serve_peer peer;
    struct guest *previous, *next;
};

struct peers {
    struct peers_options options;
    void *doors[FRONT_DOORS_MAX];
    unsigned door_count, next_probe;
    pthread_mutex_t lock; /* of the list */
    struct guest *first;
    int bell;         /* ends the thread */
    struct pool pool; /* of its thread */
};

/* ---- the list ---- */

static bool add_guest(struct peers *peers, int fd, const struct front_guest *came)
{
    struct guest *guest = calloc(1, sizeof *guest);

    if (guest == NULL)
        return false;
    *guest = (struct guest){.fd = fd, .front = came->front, .peer = came->peer};
    pthread_mutex_lock(&peers->lock);
    guest->next = peers->first;
    if (guest->next != NULL)
        guest->next->previous = guest;
    peers->first = guest;
    pthread_mutex_unlock(&peers->lock);
    return true;
}

/* Call it with the lock. */
static void remove_guest(struct peers *peers, struct guest *guest)
{
    if (guest->previous != NULL)
        guest->previous->next = guest->next;
    else
        peers->first = guest->next;
    if (guest->next != NULL)
        guest->next->previous = guest->previous;
    free(guest);
}

void peers_claim(struct peers *peers, int fd, uint64_t number, struct serve_peer *out_peer)
{
    struct serve_peer peer = SERVE_PEER_UNKNOWN;

    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = guest->next) {
        if (guest->taken || guest->fd != fd)
            continue;
        guest->taken = true;
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
        if (!guest->taken || guest->peer.connection != number)
            continue;
        remove_guest(peers, guest);
        break;
    }
    pthread_mutex_unlock(&peers->lock);
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
        if (!guest->taken && guest->fd == fd)
            remove_guest(peers, guest);
    }
    pthread_mutex_unlock(&peers->lock);
}

/* A guest's socket stays open while it is in the list. */
static void end_guests_of(struct peers *peers, uint64_t front)
{
    pthread_mutex_lock(&peers->lock);
    for (struct guest *guest = peers->first; guest != NULL; guest = guest->next)
        if (guest->front == front)
            shutdown(guest->fd, SHUT_RDWR);
    pthread_mutex_unlock(&peers->lock);
}

/* ---- what comes ---- */

static void hear_fronts(struct peers *peers)
{
    struct front_guest came;
    int fd;

    while (front_message_receive(peers->options.porter->intake, &came, sizeof came, &fd) > 0) {
        if (fd < 0)
            continue;
        remove_unclaimed(peers, fd);
        if (came.door >= peers->door_count || !add_guest(peers, fd, &came))
            close(fd);
        else if (!peers->options.take(peers->doors[came.door], fd))
            remove_unclaimed(peers, fd);
    }
}

/* Returns false when the porter has ended. */
static bool hear_porter(struct peers *peers)
{
    struct porter_news news;
    ssize_t got;
    int fd;

    while ((got = front_message_receive(peers->options.porter->control, &news, sizeof news, &fd)) > 0) {
        if (news.lost_front != 0)
            end_guests_of(peers, news.lost_front);
        if (news.line[0] != '\0' && peers->options.tell != NULL)
            peers->options.tell(peers->options.tell_state, news.line);
        if (fd >= 0)
            close(fd);
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static void *run(void *state)
{
    struct peers *peers = state;
    struct pollfd polled[] = {{.fd = peers->bell, .events = POLLIN},
                              {.fd = peers->options.porter->intake, .events = POLLIN},
                              {.fd = peers->options.porter->control, .events = POLLIN}};

    for (;;) {
        if (poll(polled, sizeof polled / sizeof polled[0], -1) < 0 && errno != EINTR)
            return NULL;
        if (polled[0].revents != 0)
            return NULL;
        if (polled[1].revents != 0)
            hear_fronts(peers);
        if (polled[2].revents != 0 && !hear_porter(peers))
            polled[2].fd = -1;
    }
}

/* ---- from opening to closing ---- */

static int refuse(struct fly_error *out_error)
{
    return error_set(out_error, FLY_ELIMIT, "cannot wait for connections: %s", strerror(errno));
}

static bool order(struct peers *peers, const struct porter_order *order, int fd, bool wait)
{
    return front_message_send(peers->options.porter->control, order, sizeof *order, fd, wait);
}

static bool send_rules(struct peers *peers)
{
    const struct peers_options *options = &peers->options;
    struct porter_order rules = {
        .what = PORTER_RULES,
        .rules = {.front = {.device_major = options->rules.device_major, .patience_s = options->first_byte_s},
                  .connections = options->connections,
                  .connections_per_user = options->connections_per_user,
                  .root_connections = options->root_connections}};

    snprintf(rules.rules.front.device_directory, FRONT_PATH_MAX, "%s", options->rules.device_directory);
    return order(peers, &rules, -1, true);
}

int peers_open(const struct peers_options *options, struct peers **out_peers, struct fly_error *out_error)
{
    struct peers *peers = calloc(1, sizeof *peers);

    if (peers == NULL)
        return error_no_memory(out_error);
    peers->options = *options;
    pthread_mutex_init(&peers->lock, NULL);
    peers->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (peers->bell < 0 || !send_rules(peers)) {
        int code = refuse(out_error);

        peers_close(peers);
        return code;
    }
    *out_peers = peers;
    return 0;
}

int peers_add(struct peers *peers, int *fd, bool inherited, void *door, struct fly_error *out_error)
{
    const struct porter_order listen = {
        .what = PORTER_LISTEN, .door = peers->door_count, .inherited = inherited};

    if (peers->door_count == FRONT_DOORS_MAX || !order(peers, &listen, *fd, true))
        return error_set(out_error, FLY_ELIMIT, "cannot wait for connections of another socket");
    peers->doors[peers->door_count++] = door;
    /* The porter has it, so that this close is not the last one, which may not return (porter.h). */
    close(*fd);
    *fd = -1;
    return 0;
}

int peers_start(struct peers *peers, struct fly_error *out_error)
{
    if (pool_add(&peers->pool, 0, run, peers) == 0)
        return 0;
    return error_set(out_error, FLY_ENOMEM, "cannot start the thread that gets connections");
}

/* The question is sent before anybody reads it, so that it fits. */
int peers_probe(struct peers *peers)
{
    static const char question[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct porter_order probe = {.what = PORTER_PROBE};
    int ends[2];
    bool sent;

    if (peers->door_count == 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return -1;
    probe.door = peers->next_probe++ % peers->door_count;
    sent = send(ends[0], question, sizeof question - 1, MSG_NOSIGNAL) > 0 &&
           order(peers, &probe, ends[1], false);
    close(ends[1]);
    if (!sent)
        shutdown(ends[0], SHUT_RDWR);
    return ends[0];
}

bool peers_come(struct peers *peers)
{
    return porter_lives(peers->options.porter);
}

void peers_stop(struct peers *peers)
{
    const struct porter_order stop = {.what = PORTER_STOP};

    if (peers->pool.count == 0)
        return;
    order(peers, &stop, -1, false);
    eventfd_write(peers->bell, 1);
    pool_join(&peers->pool);
    /* Who is introduced from here on is refused. */
    shutdown(peers->options.porter->intake, SHUT_RDWR);
}

void peers_close(struct peers *peers)
{
    struct guest *next;

    if (peers == NULL)
        return;
    peers_stop(peers);
    porter_end(peers->options.porter);
    for (struct guest *guest = peers->first; guest != NULL; guest = next) {
        next = guest->next;
        free(guest);
    }
    if (peers->bell >= 0)
        close(peers->bell);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}
