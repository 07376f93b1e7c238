/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/accounts.h"
#include "base/error.h"
#include "base/number.h"

/* Of Linux 6.16, which headers may lack. Older kernels refuse it. */
enum { OPTION_PASSRIGHTS = 83 };
enum { BACKLOG = 128, LOCK_PATH_MAX = 128, LOCK_LOOKS = 10, FIRST_INHERITED = 3 };

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
        int fd;

        /* Where all may write, another user can have made the lock, to keep us away; root removes that. */
        if (geteuid() == 0 && lstat(path, &named) == 0 && named.st_uid != 0)
            (void)unlink(path);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
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

/* Whether who began to listen at the other end is gone; its porter may be about to end (porter.h). */
static bool listener_is_dead(int fd)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 && credentials.pid > 0 &&
           kill(credentials.pid, 0) != 0 && errno == ESRCH;
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
    answered = fd >= 0 && (connect(fd, (const struct sockaddr *)&address->at, address->length) == 0
                               ? !listener_is_dead(fd)
                               : errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    if (answered)
        return refuse(address, EADDRINUSE, out_error);
    return unlink(path) == 0 || errno == ENOENT ? 0 : refuse(address, errno, out_error);
}

/* Finds the number of a user or a group. NULL: UINT32_MAX, as it is. */
static int find_number(const char *what, bool (*named)(const char *, uint32_t *), const char *name,
                       uint32_t *out_number, struct fly_error *out_error)
{
    *out_number = UINT32_MAX;
    if (name == NULL || named(name, out_number))
        return 0;
    return error_set(out_error, FLY_ENOTFOUND, "no %s '%.100s' on this machine", what, name);
}

static int give_away(const char *path, const struct listener_access *access, struct fly_error *out_error)
{
    const char *word = access->group != NULL ? "group" : "user";
    uint32_t user = UINT32_MAX, group = UINT32_MAX;
    int code = find_number("user", accounts_user, access->owner, &user, out_error);

    if (code == 0)
        code = find_number("group", accounts_group, access->group, &group, out_error);
    if (code == 0 && (user != UINT32_MAX || group != UINT32_MAX) && chown(path, user, group) != 0)
        code = error_set(out_error, code_of(errno), "cannot give the socket '%s' to the %s '%.100s': %s",
                         path, word, access->group != NULL ? access->group : access->owner, strerror(errno));
    return code;
}

/* Nobody can connect before listen, so the mode is set in time. */
static int set_access(const struct listen_address *address, const struct listener_access *access,
                      struct fly_error *out_error)
{
    const char *path = ((const struct sockaddr_un *)&address->at)->sun_path;
    int code = give_away(path, access, out_error);

    if (code < 0)
        return code;
    if (chmod(path, access->mode != 0 ? access->mode : access->group != NULL ? 0660 : 0600) != 0)
        return refuse(address, errno, out_error);
    return 0;
}

static int bind_it(struct listener *listener, const struct listener_access *access,
                   struct fly_error *out_error)
{
    const struct listen_address *wanted = &listener->bound;
    bool local = wanted->at.ss_family == AF_UNIX;
    int on = 1, off = 0;
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
        code = set_access(wanted, access, out_error);
    /* Connections have it from the socket at which they were made. */
    if (local && access->no_descriptors)
        setsockopt(listener->fd, SOL_SOCKET, OPTION_PASSRIGHTS, &off, sizeof off);
    if (code == 0 && listen(listener->fd, BACKLOG) != 0)
        code = refuse(wanted, errno, out_error);
    if (code == 0 && !local) {
        socklen_t length = sizeof listener->bound.at;

        getsockname(listener->fd, (struct sockaddr *)&listener->bound.at, &length);
    }
    return code;
}

static bool listens(int fd)
{
    int accepts = 0, type = 0;
    socklen_t length = sizeof accepts;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &length) != 0 || accepts == 0)
        return false;
    length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

int listener_look(struct listen_address *address, struct fly_error *out_error)
{
    socklen_t length = sizeof address->at;
    int family;

    if (address->fd < 0)
        return 0;
    if (!listens(address->fd) || getsockname(address->fd, (struct sockaddr *)&address->at, &length) != 0)
        return error_set(out_error, FLY_EUSAGE,
                         "cannot listen on 'fd:%d': the program was started without such a socket",
                         address->fd);
    family = address->at.ss_family;
    if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
        return error_set(out_error, FLY_EUSAGE, "cannot listen on 'fd:%d': it is no socket of TCP or Unix",
                         address->fd);
    address->length = length;
    address->here = listen_address_is_here(address);
    return 0;
}

static int adopt(struct listener *listener, struct fly_error *out_error)
{
    int fd = listener->bound.fd;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return refuse(&listener->bound, errno, out_error);
    listener->fd = fd;
    listener->inherited = true;
    return 0;
}

size_t listener_inherited(void)
{
    const char *process = getenv("LISTEN_PID"), *sockets = getenv("LISTEN_FDS");
    uint64_t pid = 0, count = 0;

    if (process == NULL || sockets == NULL || !number_parse_u64(process, INT32_MAX, &pid) ||
        pid != (uint64_t)getpid() || !number_parse_u64(sockets, INT16_MAX, &count))
        count = 0;
    for (int fd = FIRST_INHERITED; fd < FIRST_INHERITED + (int)count; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return (size_t)count;
}

int listener_open(const struct listen_address *address, const struct listener_access *access,
                  struct listener *out_listener, struct fly_error *out_error)
{
    struct listener listener = {.bound = *address, .fd = -1, .lock_fd = -1};
    int code = 0;

    if (address->fd >= 0) {
        code = adopt(&listener, out_error);
        if (code == 0)
            *out_listener = listener;
        return code;
    }

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
    code = bind_it(&listener, access, out_error);
    if (code < 0)
        listener_close(&listener);
    else
        *out_listener = listener;
    return code;
}

void listener_refuse(struct listener *listener)
{
    if (listener->fd >= 0 && !listener->inherited)
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
