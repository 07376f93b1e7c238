/* SPDX-License-Identifier: Apache-2.0 */
#include "http/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Of Linux 6.5 and 6.16, which headers may lack. Older kernels refuse them. */
enum { OPTION_PEERPIDFD = 77, OPTION_PASSRIGHTS = 83 };
enum { PATH_BYTES = 256, NAMES = 2 };

/* More than a socket holds. */
enum { LOOK_BYTES = 16384, LOOKS_MAX = 256 };

static bool same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool shares_namespaces(pid_t pid)
{
    static const char *const names[NAMES] = {"pid", "user"};
    struct stat own, theirs;
    char path[PATH_BYTES];

    for (size_t i = 0; i < NAMES; i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        if (stat(path, &own) != 0)
            return false;
        snprintf(path, sizeof path, "/proc/%ld/ns/%s", (long)pid, names[i]);
        if (stat(path, &theirs) != 0 || !same_file(&own, &theirs))
            return false;
    }
    return true;
}

/*
 * A process that has ended may have left its number to another by now. Returns false only if it is
 * known to have ended.
 */
static bool still_runs(int socket)
{
    struct pollfd polled = {.fd = -1, .events = POLLIN};
    socklen_t length = sizeof polled.fd;
    bool runs;

    if (getsockopt(socket, SOL_SOCKET, OPTION_PEERPIDFD, &polled.fd, &length) != 0)
        return errno == ENOPROTOOPT;
    runs = poll(&polled, 1, 0) == 0;
    close(polled.fd);
    return runs;
}

void peer_look(int socket, struct serve_peer *out_peer)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;

    *out_peer = SERVE_PEER_UNKNOWN;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
        return;
    out_peer->local = true;
    out_peer->pid = credentials.pid;
    out_peer->uid = credentials.uid;
    out_peer->gid = credentials.gid;
    out_peer->same_namespaces =
        credentials.pid > 0 && shares_namespaces(credentials.pid) && still_runs(socket);
}

enum sent {
    SENT_STRANGER, /* may stand for anything */
    SENT_NODE,     /* a device of the driver, but no proof of a GPU */
    SENT_GPU,
};

/*
 * Says what was sent. AT_STATX_DONT_SYNC keeps a stranger's file system from being asked. A
 * descriptor that only names a file (O_PATH) proves nothing, since anybody can open one.
 */
static enum sent what_is(int fd, const struct peer_rules *rules, int *out_minor)
{
    char path[PATH_BYTES];
    struct statx sent;
    struct stat known;
    int flags = fcntl(fd, F_GETFL);

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &sent) != 0 ||
        !S_ISCHR(sent.stx_mode) || sent.stx_rdev_major != rules->device_major)
        return SENT_STRANGER;
    if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) != O_RDWR)
        return SENT_NODE;
    /* The driver has devices of that major that are no GPUs. */
    snprintf(path, sizeof path, "%s/nvidia%u", rules->device_directory, sent.stx_rdev_minor);
    if (stat(path, &known) != 0 || !S_ISCHR(known.st_mode) ||
        known.st_rdev != makedev(sent.stx_rdev_major, sent.stx_rdev_minor))
        return SENT_NODE;
    *out_minor = (int)sent.stx_rdev_minor;
    return SENT_GPU;
}

static void add_minor(struct serve_peer *peer, int minor)
{
    for (size_t i = 0; i < peer->minor_count; i++)
        if (peer->minors[i] == minor)
            return;
    if (peer->minor_count < SERVE_MINORS_MAX)
        peer->minors[peer->minor_count++] = minor;
}

/* Takes the descriptors: devices are closed, and GPUs among them count; all others are strangers. */
static void take_descriptors(const struct cmsghdr *part, const struct peer_rules *rules,
                             struct serve_peer *peer, struct peer_strangers *strangers)
{
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < count; i++) {
        enum sent sent;
        int fd, minor;

        memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
        sent = what_is(fd, rules, &minor);
        if (sent == SENT_STRANGER) {
            strangers->fds[strangers->count++] = fd;
            continue;
        }
        if (sent == SENT_GPU)
            add_minor(peer, minor);
        close(fd);
    }
}

/* What came with the bytes, from good to bad. */
enum shown { SHOWN_NOTHING, SHOWN_DEVICES, SHOWN_STRANGERS };

/*
 * Looks at what is in the socket and leaves it there. Returns the number of bytes, or as recv.
 * Raises `shown`; descriptors that do not fit count as strangers.
 */
static ssize_t look_at(int socket, char *bytes, size_t maximum, const struct peer_rules *rules,
                       struct serve_peer *peer, struct peer_strangers *strangers, enum shown *shown)
{
    union {
        char bytes[CMSG_SPACE(SERVE_MINORS_MAX * sizeof(int))];
        struct cmsghdr aligned;
    } control = {.bytes = {0}};
    struct iovec piece = {.iov_base = bytes, .iov_len = maximum};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got < 0)
        return got;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        take_descriptors(part, rules, peer, strangers);
        *shown = *shown > SHOWN_DEVICES ? *shown : SHOWN_DEVICES;
    }
    if (strangers->count > 0 || (message.msg_flags & MSG_CTRUNC) != 0)
        *shown = SHOWN_STRANGERS;
    return got;
}

/*
 * Whoever reads the socket drops the descriptors in it, and must not wait for strangers. So the
 * kernel is told to let no more be sent, and those that are there already are looked at. Older
 * kernels cannot refuse them.
 */
static void shut_out_strangers(int socket, const struct peer_rules *rules, struct peer_strangers *strangers,
                               enum shown *shown)
{
    struct serve_peer ignored = SERVE_PEER_UNKNOWN;
    char bytes[LOOK_BYTES];
    int off = 0, begin = 0, never = -1;

    if (setsockopt(socket, SOL_SOCKET, OPTION_PASSRIGHTS, &off, sizeof off) != 0 ||
        setsockopt(socket, SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof begin) != 0)
        return;
    for (int i = 0; i < LOOKS_MAX && *shown < SHOWN_STRANGERS; i++)
        if (look_at(socket, bytes, sizeof bytes, rules, &ignored, strangers, shown) <= 0)
            break;
    setsockopt(socket, SOL_SOCKET, SO_PEEK_OFF, &never, sizeof never);
}

enum peer_word peer_listen(int socket, const struct peer_rules *rules, struct serve_peer *peer,
                           struct peer_strangers *out_strangers)
{
    static const enum peer_word words[] = {PEER_SPOKE, PEER_SHOWED, PEER_ODD};
    enum shown shown = SHOWN_NOTHING;
    ssize_t got;
    char byte;

    out_strangers->count = 0;
    got = look_at(socket, &byte, 1, rules, peer, out_strangers, &shown);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? PEER_SILENT : PEER_LEFT;
    if (got == 0)
        return PEER_LEFT;
    if (shown < SHOWN_STRANGERS)
        shut_out_strangers(socket, rules, out_strangers, &shown);
    return words[shown];
}

bool peer_nudge(int socket)
{
    int unread = 0, bytes;
    socklen_t length = sizeof bytes;

    if (ioctl(socket, SIOCINQ, &unread) != 0 || unread <= 0)
        return false;
    /* The kernel wakes who waits to write when the buffer's size is set; it reports twice of what is set. */
    if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &length) == 0) {
        bytes /= 2;
        setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
    return true;
}
