/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"

enum { BACKLOG = 128, LOCK_PATH_MAX = 128, GROUP_BYTES = 16384, LOCK_LOOKS = 10 };

static int code_of(int number)
{
    switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
        return FLY_EPERM;
    case EADDRINUSE:
        return FLY_EBUSY;
    case EADDRNOTAVAIL:
    case ENOENT:
    case ENOTDIR:
        return FLY_ENOTFOUND;
    case ENOMEM:
        return FLY_ENOMEM;
    default:
        return FLY_EUNSUPPORTED;
    }
}

static int refuse(const struct listen_address *address, int number, struct fly_error *out_error)
{
    char text[LISTEN_TEXT_MAX];
    const char *next = number == EADDRINUSE      ? "; stop who listens there, or choose another with --listen"
                       : number == EADDRNOTAVAIL ? "; this machine has no such address"
                                                 : "";

    return error_set(out_error, code_of(number), "cannot listen on '%s': %s%s",
                     listen_address_show(address, text), strerror(number), next);
}

/*
 * Takes the lock of a Unix socket's path. Its holder removes the lock's file, so the file that
 * was locked may no longer be the one at the path: then it tries again.
 */
static int take_lock(const struct listen_address *address, struct listener *listener,
                     struct fly_error *out_error)
{
    char path[LOCK_PATH_MAX];
    struct stat held, named;

    snprintf(path, sizeof path, "%s.lock", ((const struct sockaddr_un *)&address->at)->sun_path);
    for (int i = 0; i < LOCK_LOOKS; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
            return refuse(address, errno, out_error);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
            held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
            listener->lock_fd = fd;
            return 0;
        }
        close(fd);
    }
    return refuse(address, EADDRINUSE, out_error);
}

static void drop_lock(struct listener *listener)
{
    char path[LOCK_PATH_MAX];

    snprintf(path, sizeof path, "%s.lock", ((struct sockaddr_un *)&listener->bound.at)->sun_path);
    unlink(path);
    close(listener->lock_fd);
    listener->lock_fd = -1;
}

/* Removes a socket at the path on which nobody listens. A process that dies leaves one behind. */
static int clear_path(const struct listen_address *address, struct fly_error *out_error)
{
    const char *path = ((const struct sockaddr_un *)&address->at)->sun_path;
    struct stat there;
    bool answered;
    int fd;

    if (lstat(path, &there) != 0)
        return 0;
    if (!S_ISSOCK(there.st_mode))
        return error_set(out_error, FLY_EUSAGE,
                         "cannot listen on 'unix:%s': it is there, and no socket; give another path", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    answered = fd >= 0 &&
               (connect(fd, (const struct sockaddr *)&address->at, address->length) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    if (answered)
        return refuse(address, EADDRINUSE, out_error);
    return unlink(path) == 0 || errno == ENOENT ? 0 : refuse(address, errno, out_error);
}

static int find_group(const char *name, gid_t *out_group, struct fly_error *out_error)
{
    char *bytes = malloc(GROUP_BYTES);
    struct group group, *found = NULL;
    uint64_t number;

    if (bytes == NULL)
        return error_no_memory(out_error);
    if (getgrnam_r(name, &group, bytes, GROUP_BYTES, &found) == 0 && found != NULL)
        *out_group = found->gr_gid;
    else if (number_parse_u64(name, UINT32_MAX - 1, &number))
        *out_group = (gid_t)number;
    else {
        free(bytes);
        return error_set(out_error, FLY_ENOTFOUND, "no group '%.100s' on this machine", name);
    }
    free(bytes);
    return 0;
}

/* Nobody can connect before listen, so the mode is set in time. */
static int set_mode(const struct listen_address *address, const char *group, struct fly_error *out_error)
{
    const char *path = ((const struct sockaddr_un *)&address->at)->sun_path;
    gid_t gid = 0;
    int code = group != NULL ? find_group(group, &gid, out_error) : 0;

    if (code < 0)
        return code;
    if (group != NULL && chown(path, (uid_t)-1, gid) != 0)
        return error_set(out_error, code_of(errno), "cannot give the socket '%s' to the group '%.100s': %s",
                         path, group, strerror(errno));
    if (chmod(path, group != NULL ? 0660 : 0600) != 0)
        return refuse(address, errno, out_error);
    return 0;
}

static int bind_it(struct listener *listener, const char *group, struct fly_error *out_error)
{
    const struct listen_address *wanted = &listener->bound;
    bool local = wanted->at.ss_family == AF_UNIX;
    int on = 1;
    int code = 0;

    listener->fd = socket(wanted->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0)
        return refuse(wanted, errno, out_error);
    if (!local)
        setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (wanted->at.ss_family == AF_INET6)
        setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(listener->fd, (const struct sockaddr *)&wanted->at, wanted->length) != 0)
        return refuse(wanted, errno, out_error);
    if (local)
        code = set_mode(wanted, group, out_error);
    if (code == 0 && listen(listener->fd, BACKLOG) != 0)
        code = refuse(wanted, errno, out_error);
    if (code == 0 && !local) {
        socklen_t length = sizeof listener->bound.at;

        getsockname(listener->fd, (struct sockaddr *)&listener->bound.at, &length);
    }
    return code;
}

int listener_open(const struct listen_address *address, const char *group, struct listener *out_listener,
                  struct fly_error *out_error)
{
    struct listener listener = {.bound = *address, .fd = -1, .lock_fd = -1};
    int code = 0;

    if (address->at.ss_family == AF_UNIX) {
        code = take_lock(address, &listener, out_error);
        if (code < 0)
            return code;
        code = clear_path(address, out_error);
        if (code < 0) {
            drop_lock(&listener);
            return code;
        }
    }
    code = bind_it(&listener, group, out_error);
    if (code < 0)
        listener_close(&listener);
    else
        *out_listener = listener;
    return code;
}

void listener_refuse(struct listener *listener)
{
    if (listener->fd >= 0)
        shutdown(listener->fd, SHUT_RDWR);
    if (listener->lock_fd < 0)
        return;
    /* While the lock is held, the path belongs to this listener. */
    unlink(((struct sockaddr_un *)&listener->bound.at)->sun_path);
    drop_lock(listener);
}

void listener_close(struct listener *listener)
{
    listener_refuse(listener);
    if (listener->fd >= 0)
        close(listener->fd);
    listener->fd = -1;
}
