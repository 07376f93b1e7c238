/* SPDX-License-Identifier: Apache-2.0 */
#include "http/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Of Linux 6.5, which headers may lack. Older kernels refuse it. */
enum { OPTION_PEERPIDFD = 77 };

/* RIGHTS_MAX: the most descriptors that come at once (SCM_MAX_FD). */
enum { PATH_BYTES = 256, NAMES = 2, RIGHTS_MAX = 253 };

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

/* Closes the descriptors; GPUs among them count. Returns whether all are devices, and no more than may be. */
static bool take_descriptors(const struct cmsghdr *part, const struct peer_rules *rules,
                             struct serve_peer *peer)
{
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    bool all = count <= SERVE_MINORS_MAX;

    for (size_t i = 0; i < count; i++) {
        enum sent sent;
        int fd, minor;

        memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
        sent = what_is(fd, rules, &minor);
        all = all && sent != SENT_STRANGER;
        if (sent == SENT_GPU && peer != NULL)
            add_minor(peer, minor);
        close(fd);
    }
    return all;
}

ssize_t peer_receive(int socket, char *bytes, size_t maximum, const struct peer_rules *rules,
                     struct serve_peer *peer, bool *out_odd)
{
    union {
        char bytes[CMSG_SPACE(RIGHTS_MAX * sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct iovec piece = {.iov_base = bytes, .iov_len = maximum};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *out_odd = got >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
    if (got < 0)
        return got;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
            *out_odd = !take_descriptors(part, rules, peer) || *out_odd;
    return got;
}
