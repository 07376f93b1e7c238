/* SPDX-License-Identifier: Apache-2.0 */
#include "http/door_shares.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/tcp_user.h"

enum { PREFIX_BYTES = 8 };

/* Who has connections: compared as bytes. */
struct share_key {
    unsigned char family; /* 0: a user of this machine */
    unsigned char bytes[16];
};

struct door_share {
    struct share_key key;
    size_t count;
    struct connection *oldest, *newest; /* of those that wait for their client, linked by `newer` */
    struct door_share *next;
};

void door_shares_init(struct door_shares *shares, unsigned most, unsigned most_each)
{
    size_t others = most / 4;

    *shares = (struct door_shares){.most = most,
                                   .most_each = most_each < most - others ? most_each : most - others};
}

void door_shares_deinit(struct door_shares *shares)
{
    for (size_t i = 0; i < DOOR_SHARES_BUCKETS; i++) {
        while (shares->buckets[i] != NULL) {
            struct door_share *share = shares->buckets[i];

            shares->buckets[i] = share->next;
            free(share);
        }
    }
}

/* ---- who ---- */

static struct share_key key_of(int fd)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC}, own = {.ss_family = AF_UNSPEC};
    socklen_t peer_length = sizeof peer, own_length = sizeof own;
    struct share_key key = {.family = AF_UNSPEC};
    uid_t uid;

    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_length) != 0)
        peer.ss_family = AF_UNSPEC; /* it has gone already */
    if (tcp_user_find(&peer, &own, &uid)) {
        memcpy(key.bytes, &uid, sizeof uid);
        return key;
    }
    tcp_user_unmap(&peer);
    key.family = (unsigned char)peer.ss_family;
    if (peer.ss_family == AF_INET)
        memcpy(key.bytes, &((const struct sockaddr_in *)&peer)->sin_addr, sizeof(struct in_addr));
    else if (peer.ss_family == AF_INET6)
        memcpy(key.bytes, &((const struct sockaddr_in6 *)&peer)->sin6_addr, PREFIX_BYTES);
    else
        key.bytes[sizeof key.bytes - 1] = 1; /* no user's */
    return key;
}

static size_t bucket_of(const struct share_key *key)
{
    const unsigned char *bytes = (const unsigned char *)key;
    uint32_t sum = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < sizeof *key; i++)
        sum = (sum ^ bytes[i]) * 16777619U;
    return (sum ^ sum >> 16) % DOOR_SHARES_BUCKETS;
}

static struct door_share *find_share(struct door_shares *shares, const struct share_key *key)
{
    struct door_share **bucket = &shares->buckets[bucket_of(key)], *share = *bucket;

    while (share != NULL && memcmp(&share->key, key, sizeof *key) != 0)
        share = share->next;
    if (share != NULL)
        return share;
    share = calloc(1, sizeof *share);
    if (share == NULL)
        return NULL;
    share->key = *key;
    share->next = *bucket;
    *bucket = share;
    return share;
}

static void drop_if_empty(struct door_shares *shares, struct door_share *share)
{
    struct door_share **at = &shares->buckets[bucket_of(&share->key)];

    if (share->count > 0)
        return;
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    free(share);
}

/* ---- how many ---- */

void door_shares_busy(struct door_shares *shares, struct connection *row)
{
    struct door_share *share = row->share;

    (void)shares;
    if (share == NULL || !row->waits)
        return;
    *(row->older != NULL ? &row->older->newer : &share->oldest) = row->newer;
    *(row->newer != NULL ? &row->newer->older : &share->newest) = row->older;
    row->older = row->newer = NULL;
    row->waits = false;
}

void door_shares_wait(struct door_shares *shares, struct connection *row)
{
    struct door_share *share = row->share;

    door_shares_busy(shares, row);
    if (share == NULL)
        return;
    row->waits = true;
    row->waits_since = mono_now();
    row->older = share->newest;
    *(row->older != NULL ? &row->older->newer : &share->oldest) = row;
    share->newest = row;
}

void door_shares_remove(struct door_shares *shares, struct connection *row)
{
    struct door_share *share = row->share;

    if (share == NULL)
        return;
    door_shares_busy(shares, row);
    row->share = NULL;
    share->count--;
    shares->count--;
    drop_if_empty(shares, share);
}

/* Ends one that waits; its share goes with the last. Whoever reads the socket then closes it. */
static bool end_oldest(struct door_shares *shares, struct door_share *share)
{
    struct connection *row = share != NULL ? share->oldest : NULL;

    if (row == NULL)
        return false;
    shutdown(row->fd, SHUT_RDWR);
    door_shares_remove(shares, row);
    return true;
}

/* Of those of whom one waits, who has most; of two with as many, whose has waited longer. */
static struct door_share *find_greatest(const struct door_shares *shares)
{
    struct door_share *found = NULL;

    for (size_t i = 0; i < DOOR_SHARES_BUCKETS; i++) {
        for (struct door_share *at = shares->buckets[i]; at != NULL; at = at->next) {
            if (at->oldest == NULL)
                continue;
            if (found == NULL || at->count > found->count ||
                (at->count == found->count && at->oldest->waits_since.ns < found->oldest->waits_since.ns))
                found = at;
        }
    }
    return found;
}

bool door_shares_add(struct door_shares *shares, struct connection *row)
{
    struct share_key key = key_of(row->fd);
    struct door_share *share = find_share(shares, &key);
    bool room;

    if (share == NULL)
        return false;
    /* It counts at once, so that its share stays though the last other one of it may go. */
    row->share = share;
    share->count++;
    shares->count++;
    room = share->count <= shares->most_each || end_oldest(shares, share);
    if (room && shares->count > shares->most)
        room = end_oldest(shares, find_greatest(shares));
    if (!room) {
        door_shares_remove(shares, row);
        return false;
    }
    door_shares_wait(shares, row);
    return true;
}
