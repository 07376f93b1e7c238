/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"

#define NAME_BEGIN "flyball-steps-"

enum { DESCRIPTOR_PATH_MAX = 64, NUMBER_MAX = 16, ROOM_BYTES = 1 << 16, SWEPT_MAX = 1000 };

/* The program's end gets a low descriptor from 3 on: shells accept only one digit. */
enum { LOWEST_PROGRAM_END = 3, LOWEST_OWN = 10 };

/* A low descriptor that step_file_keep_low holds, and whether a program's end has it now; -1: none. */
static int kept_low = -1;
static bool kept_low_taken;

static const char *const variables[STEP_VARIABLES] = {STEP_VARIABLE, STEP_PLACE_VARIABLE};

static char *path_of(int file, char path[DESCRIPTOR_PATH_MAX])
{
    snprintf(path, DESCRIPTOR_PATH_MAX, "/proc/self/fd/%d", file);
    return path;
}

/* Opens the file again, so that the flags of the program's descriptor do not affect the reader's. */
static int open_again(const struct step_file *file)
{
    char path[DESCRIPTOR_PATH_MAX];

    return open(file->named ? file->place.path : path_of(file->file, path), O_WRONLY | O_APPEND);
}

/* Moves a descriptor away from low numbers; -1 stays -1. */
static int move_up(int low)
{
    int file = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, LOWEST_OWN) : -1;

    if (low >= 0)
        close(low);
    return file;
}

/* Whether the file is in memory: a disk may be slow, and hang. */
static bool is_in_memory(int file)
{
    struct statfs facts;

    return fstatfs(file, &facts) == 0 && (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
}

static bool take_room(int file, long long offset)
{
    return fallocate(file, FALLOC_FL_KEEP_SIZE, offset, ROOM_BYTES) == 0;
}

/* Removes a file whose reader is gone: a reader holds a lock on it. */
static void sweep_one(const char *path)
{
    int file = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        flock(file, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
    close(file);
}

/* Removes the files that killed processes of this user left. */
static void sweep(const char *directory)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    char path[STEP_PATH_MAX];
    int seen = 0;

    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while (entries != NULL && seen < SWEPT_MAX && (entry = readdir(entries)) != NULL) {
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);

        if (strncmp(entry->d_name, NAME_BEGIN, sizeof NAME_BEGIN - 1) == 0 && length > 0 &&
            length < (int)sizeof path) {
            sweep_one(path);
            seen++;
        }
    }
    if (entries != NULL)
        closedir(entries);
}

/* Names the file. It is locked before it has a name, so that no other process removes it. */
static bool give_name(struct step_file *file, const char *directory)
{
    char path[DESCRIPTOR_PATH_MAX];
    uint32_t luck = 0;
    int length;

    (void)!getrandom(&luck, sizeof luck, GRND_NONBLOCK);
    length = snprintf(file->place.path, sizeof file->place.path, "%s/" NAME_BEGIN "%d-%08x", directory,
                      (int)getpid(), (unsigned)luck);
    file->named =
        length > 0 && length < (int)sizeof file->place.path && flock(file->file, LOCK_EX | LOCK_NB) == 0 &&
        linkat(AT_FDCWD, path_of(file->file, path), AT_FDCWD, file->place.path, AT_SYMLINK_FOLLOW) == 0;
    return file->named;
}

static bool make_named(struct step_file *file, const char *directory)
{
    if (directory == NULL || directory[0] != '/')
        return false;
    sweep(directory);
    file->file = move_up(open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file->file < 0)
        return false;
    if (fchmod(file->file, S_IRUSR | S_IWUSR) == 0 && is_in_memory(file->file) && take_room(file->file, 0) &&
        give_name(file, directory))
        return true;
    close(file->file);
    file->file = -1;
    return false;
}

static void make_nameless(struct step_file *file)
{
    file->file = move_up(memfd_create("flyball-steps", MFD_CLOEXEC));
    snprintf(file->place.path, sizeof file->place.path, "/proc/%d/fd/%d", (int)getpid(), file->file);
}

/* Fills the low descriptor again, so that nothing else gets it. */
static void keep_low(void)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    kept_low_taken = false;
    if (nothing < 0 || dup3(nothing, kept_low, O_CLOEXEC) < 0) {
        close(kept_low);
        kept_low = -1;
    }
    if (nothing >= 0)
        close(nothing);
}

void step_file_keep_low(void)
{
    int nothing = kept_low < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

    if (nothing < 0)
        return;
    kept_low = fcntl(nothing, F_DUPFD_CLOEXEC, LOWEST_PROGRAM_END);
    close(nothing);
}

static void open_program_end(struct step_file *file)
{
    int opened = file->file >= 0 ? open_again(file) : -1;

    file->program_end = opened;
    if (opened >= 0 && kept_low >= 0 && !kept_low_taken) {
        file->program_end = dup2(opened, kept_low);
        kept_low_taken = file->program_end >= 0;
        close(opened);
    } else if (opened >= 0 && opened < LOWEST_PROGRAM_END) {
        file->program_end = fcntl(opened, F_DUPFD, LOWEST_PROGRAM_END);
        close(opened);
    }
}

static void close_program_end(struct step_file *file)
{
    if (kept_low_taken && file->program_end == kept_low)
        keep_low();
    else if (file->program_end >= 0)
        close(file->program_end);
    file->program_end = -1;
}

static void set_variables(struct step_file *file)
{
    char number[NUMBER_MAX], place[STEP_PLACE_MAX];

    for (int i = 0; i < STEP_VARIABLES; i++) {
        const char *before = getenv(variables[i]);

        file->before[i] = before != NULL ? strdup(before) : NULL;
    }
    snprintf(number, sizeof number, "%d", file->program_end);
    setenv(STEP_VARIABLE, number, 1);
    setenv(STEP_PLACE_VARIABLE, step_place_write(&file->place, place), 1);
}

int step_file_open(struct step_file *out_file, struct fly_error *out_error)
{
    struct stat status;

    *out_file = (struct step_file)STEP_FILE_NONE;
    if (!make_named(out_file, "/dev/shm") && !make_named(out_file, getenv("XDG_RUNTIME_DIR")))
        make_nameless(out_file);
    open_program_end(out_file);
    if (out_file->program_end < 0 || fstat(out_file->file, &status) < 0) {
        int result =
            error_set(out_error, FLY_ELIMIT,
                      "no file for a program's steps: %s; close files, or raise ulimit -n", strerror(errno));

        step_file_close(out_file);
        return result;
    }
    out_file->place.device = status.st_dev;
    out_file->place.inode = status.st_ino;
    set_variables(out_file);
    return 0;
}

void step_file_passed(struct step_file *file)
{
    if (file->program_end < 0)
        return;
    close_program_end(file);
    for (int i = 0; i < STEP_VARIABLES; i++) {
        if (file->before[i] != NULL)
            setenv(variables[i], file->before[i], 1);
        else
            unsetenv(variables[i]);
        free(file->before[i]);
        file->before[i] = NULL;
    }
}

void step_file_reserve(const struct step_file *file, long long offset)
{
    if (file->named)
        (void)take_room(file->file, offset);
}

void step_file_close(struct step_file *file)
{
    if (file->place.inode != 0)
        step_file_passed(file);
    else
        close_program_end(file);
    if (file->named)
        unlink(file->place.path);
    if (file->file >= 0)
        close(file->file);
    *file = (struct step_file)STEP_FILE_NONE;
}
