/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/leftover.h"

/*
 * The watcher's life. It is of no terminal and no process group of the owner's, and no signal that can be
 * caught ends it before the owner's end.
 */
static void wait_for_owner(const struct emulator *emulator, int fd)
{
    char nothing = '\0';

    setsid();
    if (write(fd, &nothing, 1) == 1) {
        while (read(fd, &nothing, 1) < 0 && errno == EINTR)
            ;
    }
    if (emulator->state->owned && state_is_named(AT_FDCWD, emulator->path, emulator->owner_fd))
        unlink(emulator->path);
    _exit(0);
}

void owner_watch(const struct emulator *emulator, struct owner_watcher *out_watcher)
{
    sigset_t all, before;
    int ends[2];
    char ready;

    *out_watcher = (struct owner_watcher){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    out_watcher->pid = fork();
    if (out_watcher->pid == 0) {
        close(ends[1]);
        wait_for_owner(emulator, ends[0]);
    }
    close(ends[0]);
    out_watcher->fd = ends[1];
    if (out_watcher->pid < 0)
        out_watcher->pid = 0;
    /* Before it has left this process group, a signal to the whole group would end it too. */
    while (out_watcher->pid > 0 && read(ends[1], &ready, 1) < 0 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void owner_unwatch(struct owner_watcher *watcher)
{
    if (watcher->fd >= 0)
        close(watcher->fd);
    while (watcher->pid > 0 && waitpid(watcher->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *watcher = (struct owner_watcher){.fd = -1};
}

void owner_leave(struct emulator *emulator)
{
    emulator->state->owned = false;
}

/* Whether the open file is a state whose owner has ended. */
static bool is_orphan(int fd)
{
    char magic[sizeof state_magic];
    bool owned = false;

    return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           memcmp(magic, state_magic, sizeof magic) == 0 &&
           pread(fd, &owned, sizeof owned, offsetof(struct emulator_state, owned)) == (ssize_t)sizeof owned &&
           owned && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void sweep_file(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return;
    if (is_orphan(fd) && state_is_named(directory, name, fd))
        unlinkat(directory, name, 0);
    close(fd);
}

/* Owned states are called as the default one, with their owner's number behind a full stop; an emulator in
 * another's run has two. */
void owner_sweep(const char *path)
{
    char usual[EMULATOR_PATH_MAX];
    char *slash = emulator_default_path(usual) ? strrchr(usual, '/') : NULL;
    size_t length;
    const struct dirent *entry;
    DIR *directory;

    sweep_file(AT_FDCWD, path);
    if (slash == NULL)
        return;
    *slash = '\0';
    length = strlen(slash + 1);
    directory = opendir(usual[0] != '\0' ? usual : "/");
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        const char *rest = entry->d_name + length + 1;

        if (strncmp(entry->d_name, slash + 1, length) == 0 && entry->d_name[length] == '.' &&
            rest[0] != '\0' && rest[strspn(rest, "0123456789.")] == '\0')
            sweep_file(dirfd(directory), entry->d_name);
    }
    if (directory != NULL)
        closedir(directory);
}
