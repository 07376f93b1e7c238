/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static bool was_closed[STDERR_FILENO + 1];
static struct sigaction file_size;
static bool taken;

void inherited_take(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        was_closed[fd] = fcntl(fd, F_GETFD) < 0 && errno == EBADF;
        if (was_closed[fd])
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
    sigaction(SIGXFSZ, &ignore, &file_size);
    taken = true;
}

void inherited_restore(void)
{
    if (!taken)
        return;
    sigaction(SIGXFSZ, &file_size, NULL);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (was_closed[fd])
            close(fd);
    }
}
