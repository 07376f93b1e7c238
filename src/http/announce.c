/* SPDX-License-Identifier: Apache-2.0 */
#include "http/announce.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file/atomic_file.h"

void announce(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path != NULL ? strlen(path) : 0;
    int fd;

    if (length == 0 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    /* An abstract address begins with a 0 byte; only its length says where it ends. */
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}

int announce_in_file(const char *path, const char *text, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = atomic_file_open(path, &file, out_error);

    if (code < 0)
        return code;
    fputs(text, file.stream);
    return atomic_file_commit(&file, out_error);
}
