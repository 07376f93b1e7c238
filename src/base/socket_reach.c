/* SPDX-License-Identifier: Apache-2.0 */
#include "base/socket_reach.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

/* Connecting waits as long as a send may: until the listener has room for one more. */
static void set_patience(int fd, double timeout_s)
{
    struct timeval patience = {.tv_sec = (time_t)timeout_s};

    patience.tv_usec = (suseconds_t)((timeout_s - (double)patience.tv_sec) * 1e6);
    if (patience.tv_sec == 0 && patience.tv_usec == 0)
        patience.tv_usec = 1; /* 0 would mean for ever */
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static int unreachable(const char *path, int cause, struct fly_error *out_error)
{
    if (cause == EACCES || cause == EPERM)
        return error_set(out_error, FLY_EPERM, "'%.200s' may not be connected to: %s; ask for access to it",
                         path, strerror(cause));
    return error_set(out_error, FLY_ENOTFOUND, "nobody answers at '%.200s': %s; see whether the server runs",
                     path, cause == EAGAIN ? "it takes no connection in time" : strerror(cause));
}

static int connect_to(const char *path, double timeout_s, int *out_fd, struct fly_error *out_error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof address.sun_path)
        return error_set(out_error, FLY_EUSAGE,
                         "'%.200s' is longer than a socket's path can be; name a shorter one", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return unreachable(path, errno, out_error);
    set_patience(fd, timeout_s);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int cause = errno;

        close(fd);
        return unreachable(path, cause, out_error);
    }
    *out_fd = fd;
    return 0;
}

static bool is_trusted(const struct socket_trust *trust, uid_t user)
{
    for (size_t i = 0; i < trust->user_count; i++) {
        if (trust->users[i] == user)
            return true;
    }
    return false;
}

/* A new connection has room for these few bytes, so nothing waits. */
static int pass_files(int fd, const char *path, const struct socket_trust *trust, const char *carrier,
                      struct fly_error *out_error)
{
    union {
        char bytes[CMSG_SPACE(SOCKET_FILES_MAX * sizeof(int))];
        struct cmsghdr aligned;
    } control = {.bytes = {0}};
    char first[SOCKET_CARRIER_MAX];
    size_t bytes = trust->file_count * sizeof(int), length = strnlen(carrier, sizeof first);
    struct iovec piece = {.iov_base = first, .iov_len = length};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(bytes)};

    memcpy(first, carrier, length);
    control.aligned.cmsg_level = SOL_SOCKET;
    control.aligned.cmsg_type = SCM_RIGHTS;
    control.aligned.cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(&control.aligned), trust->files, bytes);
    if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length)
        return 0;
    return error_set(out_error, FLY_EREAD, "'%.200s' takes no open files: %s; see whether the server is well",
                     path, strerror(errno));
}

int socket_greet(int fd, const char *path, const struct socket_trust *trust, const char *carrier,
                 struct fly_error *out_error)
{
    struct ucred listener = {.uid = (uid_t)-1};
    socklen_t size = sizeof listener;
    bool trusted =
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 && is_trusted(trust, listener.uid);

    if (!trusted && trust->required)
        return error_set(out_error, FLY_EPERM,
                         "user %lld listens at '%.200s', who is not trusted, so nothing was sent%s%s",
                         (long long)(int)listener.uid, path, trust->remedy != NULL ? "; " : "",
                         trust->remedy != NULL ? trust->remedy : "");
    if (trust->file_count > SOCKET_FILES_MAX)
        return error_set(out_error, FLY_ELIMIT, "%zu open files are too many for '%.200s'", trust->file_count,
                         path);
    return trusted && trust->file_count > 0 ? pass_files(fd, path, trust, carrier, out_error) : 0;
}

int socket_reach(const char *path, double timeout_s, const struct socket_trust *trust, const char *carrier,
                 int *out_fd, struct fly_error *out_error)
{
    int fd = -1, code = connect_to(path, timeout_s, &fd, out_error);

    if (code < 0)
        return code;
    code = socket_greet(fd, path, trust, carrier, out_error);
    if (code == 0)
        *out_fd = fd;
    else
        close(fd);
    return code;
}
