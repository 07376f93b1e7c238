/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the emulated machine: completed before anyone can open it, and checked when it is opened. */
#include "emulator/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "emulator/boards.h"
#include "emulator/gpu.h"
#include "emulator/leftover.h"
#include "emulator/measured.h"
#include "emulator/owner.h"

_Static_assert(offsetof(struct emulator_state, magic) == offsetof(struct state_head, magic) &&
                   offsetof(struct emulator_state, boot) == offsetof(struct state_head, boot),
               "a state begins with its mark and its boot");

enum { NS_PER_S = 1000000000 };

/* The part of a state's identity that the UUIDs of its GPUs contain. */
static const uint64_t identity_of_gpus = (UINT64_C(1) << 48) - 1;

/* Virtual time begins here, so that no moment in it is 0. */
static const int64_t virtual_start_ns = INT64_C(1000) * NS_PER_S;
static const int64_t virtual_date_ns = INT64_C(1767225600) * NS_PER_S; /* 2026-01-01 */

bool emulator_default_path(char out_path[EMULATOR_PATH_MAX])
{
    const char *path = getenv("FLYBALL_EMULATOR_STATE");
    const char *directory = "/dev/shm";
    int length;

    if (path != NULL && path[0] != '\0')
        return (size_t)snprintf(out_path, EMULATOR_PATH_MAX, "%s", path) < EMULATOR_PATH_MAX;
    if (access(directory, W_OK) < 0)
        directory = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    length = snprintf(out_path, EMULATOR_PATH_MAX, "%s/flyball-emulator-%u", directory, (unsigned)getuid());
    return length > 0 && length < EMULATOR_PATH_MAX;
}

static int choose_path(const char *path, char out_path[EMULATOR_PATH_MAX], struct fly_error *out_error)
{
    if (path == NULL ? emulator_default_path(out_path)
                     : (size_t)snprintf(out_path, EMULATOR_PATH_MAX, "%s", path) < EMULATOR_PATH_MAX)
        return 0;
    return error_set(out_error, FLY_ELIMIT,
                     "the path of the emulator's state is too long; choose a shorter one");
}

static void init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static size_t bytes_of(unsigned gpu_count)
{
    return offsetof(struct emulator_state, gpus) + gpu_count * sizeof(struct emulated_gpu);
}

/*
 * Random, so that emulators in containers that share nothing differ too; the clock when there is no random
 * number.
 */
static int64_t fresh_identity(void)
{
    int64_t identity;

    if (getrandom(&identity, sizeof identity, GRND_NONBLOCK) != sizeof identity)
        identity = mono_now().ns;
    return identity & INT64_MAX;
}

/* What is to be made beside the settings. */
struct kind {
    struct gpu_shape shape; /* of all GPUs */
    struct emulator_workload workload;
    bool owned;
};

static void init_state(struct emulator_state *state, const struct emulator_settings *settings,
                       const struct kind *kind)
{
    state->bytes = bytes_of(settings->gpus);
    state->owned = kind->owned;
    state_read_boot(state->boot);
    init_mutex(&state->mutex);
    state->settings = *settings;
    state->workload = kind->workload;
    state->identity = fresh_identity();
    state->created_ns = settings->virtual_time ? virtual_start_ns : mono_now().ns;
    state->created_date_ns = settings->virtual_time ? virtual_date_ns : clock_real.date(NULL).ns;
    state->sleeps = sleeps_of(settings, state->created_ns);
    state->virtual_ns = virtual_start_ns;
    state->gpu_count = settings->gpus;
    for (unsigned i = 0; i < state->gpu_count; i++) {
        for (unsigned slot = 0; slot < EMULATOR_SLOTS; slot++)
            init_mutex(&state->gpus[i].slots[slot].alive);
        gpu_init(&state->gpus[i], i, settings, &kind->shape, state->created_ns);
        state->gpus[i].machine = (uint64_t)state->identity & identity_of_gpus;
    }
    memcpy(state->magic, state_magic, sizeof state->magic);
}

static int map(int fd, const char *path, size_t bytes, struct emulator_state **out_state,
               struct fly_error *out_error)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return error_set(out_error, FLY_EREAD, "emulator state '%s': mapping failed: %s; choose another file",
                         path, strerror(errno));
    *out_state = memory;
    return 0;
}

/* Fills `fd` with a whole state that no other process has yet. */
static int fill(int fd, const char *path, const struct emulator_settings *settings, const struct kind *kind,
                struct fly_error *out_error)
{
    struct fault_list *faults = calloc(1, sizeof *faults);
    struct emulator_state *state = NULL;
    size_t bytes = bytes_of(settings->gpus);
    int code = 0;

    if (faults == NULL)
        code = error_set(out_error, FLY_ENOMEM, "memory is exhausted");
    else if (settings->faults[0] != '\0')
        code = faults_read(settings->faults, faults, out_error);
    /* Allocate now: a full file system is an error here, and would be a bus error later. */
    if (code == 0 && ((errno = posix_fallocate(fd, 0, (off_t)bytes)) != 0 ||
                      fchmod(fd, settings->shared ? 0666 : 0600) < 0))
        code = error_set(out_error, FLY_EWRITE, "emulator state '%s': %s; choose another file", path,
                         strerror(errno));
    if (code == 0)
        code = map(fd, path, bytes, &state, out_error);
    if (code == 0 && state != NULL && faults != NULL) {
        state->faults = *faults;
        init_state(state, settings, kind);
        munmap(state, bytes);
    }
    free(faults);
    return code;
}

/*
 * A file that has no name yet, so that a process that is killed leaves nothing; one with a name of its own
 * in `temporary` where the file system knows no other.
 */
static int open_unnamed(const char *path, char temporary[EMULATOR_PATH_MAX + 8])
{
    char directory[EMULATOR_PATH_MAX];
    char *slash;
    int fd;

    snprintf(directory, sizeof directory, "%s", path);
    slash = strrchr(directory, '/');
    if (slash == NULL)
        snprintf(directory, sizeof directory, ".");
    else
        slash[slash == directory] = '\0';
    temporary[0] = '\0';
    fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(temporary, EMULATOR_PATH_MAX + 8, "%s.XXXXXX", path);
    return mkostemp(temporary, O_CLOEXEC);
}

static int name_file(int fd, const char *temporary, const char *path)
{
    char open_file[32];

    if (temporary[0] != '\0')
        return link(temporary, path);
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, open_file, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/*
 * Names the file when it is complete, so that nobody opens half of it. An owned one is locked before; its
 * descriptor is handed over.
 */
static int create_file(const char *path, const struct emulator_settings *settings, const struct kind *kind,
                       int *out_owner_fd, struct fly_error *out_error)
{
    char temporary[EMULATOR_PATH_MAX + 8] = "";
    int fd = open_unnamed(path, temporary);
    int code;

    if (fd < 0)
        return error_set(out_error, FLY_EWRITE, "emulator state '%s': %s; choose another file", path,
                         strerror(errno));
    code = fill(fd, path, settings, kind, out_error);
    if (code == 0 &&
        ((out_owner_fd != NULL && flock(fd, LOCK_EX | LOCK_NB) < 0) || name_file(fd, temporary, path) < 0))
        code = errno == EEXIST
                   ? error_set(out_error, FLY_ESTATE,
                               "emulator state '%s' exists; end it with 'flyball-emulator stop'", path)
                   : error_set(out_error, FLY_EWRITE, "emulator state '%s': %s; choose another file", path,
                               strerror(errno));
    if (temporary[0] != '\0')
        unlink(temporary);
    if (code == 0 && out_owner_fd != NULL)
        *out_owner_fd = fd;
    else
        close(fd);
    return code;
}

static int damaged(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "emulator state '%s' is damaged; remove it with 'flyball-emulator stop', or name "
                     "another file in FLYBALL_EMULATOR_STATE",
                     path);
}

/* Checks what could otherwise lead outside the mapping. `bytes` is the file's current size. */
static bool is_sound(const struct emulator_state *state)
{
    if (memcmp(state->magic, state_magic, sizeof state->magic) != 0 || state->faults.count > FAULTS_MAX ||
        state->gpu_count > EMULATOR_GPUS_MAX || state->bytes != bytes_of(state->gpu_count))
        return false;
    for (unsigned i = 0; i < state->gpu_count; i++) {
        if (state->gpus[i].board >= emulated_board_count || state->gpus[i].history.count == 0 ||
            state->gpus[i].planned_count > EMULATOR_PLANNED_MAX)
            return false;
    }
    return true;
}

/* Why the file cannot be opened. */
static int refused(const char *path, int number, struct fly_error *out_error)
{
    struct stat file;

    if (number == EACCES && lstat(path, &file) == 0 && file.st_uid != geteuid())
        return error_set(out_error, FLY_EPERM,
                         "emulator state '%s' belongs to user %u, who does not share it; name another file "
                         "in FLYBALL_EMULATOR_STATE",
                         path, (unsigned)file.st_uid);
    return error_set(out_error,
                     number == ENOENT   ? FLY_ENOTFOUND
                     : number == EACCES ? FLY_EPERM
                                        : FLY_EREAD,
                     "emulator state '%s': %s; start one with 'flyball-emulator start'", path,
                     strerror(number));
}

/* Whether the open file may be mapped. What a new state may replace counts as missing. */
static int check_kind(int fd, const char *path, struct fly_error *out_error)
{
    static const struct {
        int code;
        const char *text; /* NULL: it may */
    } answers[] = {
        [STATE_USABLE] = {0, NULL},
        [STATE_OF_EARLIER_BOOT] = {FLY_ENOTFOUND,
                                   "is of an earlier boot; start one with 'flyball-emulator start'"},
        [STATE_OF_OTHER_LAYOUT] = {FLY_ENOTFOUND, "is of another version of the emulator; start one with "
                                                  "'flyball-emulator start'"},
        [STATE_EMPTY] = {FLY_EDATA,
                         "is empty; remove it with 'flyball-emulator stop', or name another file in "
                         "FLYBALL_EMULATOR_STATE"},
        [STATE_FOREIGN] = {FLY_EDATA, "is no file of the emulator; name another file in "
                                      "FLYBALL_EMULATOR_STATE, or remove it"},
    };
    enum state_kind kind = state_kind(fd);

    if (answers[kind].text == NULL)
        return 0;
    return error_set(out_error, answers[kind].code, "emulator state '%s' %s", path, answers[kind].text);
}

static int open_file(const char *path, struct emulator_state **out_state, struct fly_error *out_error)
{
    struct emulator_state *state = NULL;
    struct stat status = {.st_size = 0};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int code = 0;

    if (fd < 0)
        return refused(path, errno, out_error);
    code = check_kind(fd, path, out_error);
    if (code == 0 &&
        (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || (size_t)status.st_size < bytes_of(0) ||
         (size_t)status.st_size > bytes_of(EMULATOR_GPUS_MAX)))
        code = damaged(path, out_error);
    if (code == 0)
        code = map(fd, path, (size_t)status.st_size, &state, out_error);
    close(fd);
    if (code == 0 && state != NULL && (state->bytes != (uint64_t)status.st_size || !is_sound(state))) {
        munmap(state, (size_t)status.st_size);
        code = damaged(path, out_error);
    }
    if (code == 0)
        *out_state = state;
    return code;
}

int emulator_open(const char *path, struct emulator **out_emulator, struct fly_error *out_error)
{
    struct emulator *emulator = calloc(1, sizeof *emulator);
    int code;

    if (emulator == NULL)
        return error_set(out_error, FLY_ENOMEM, "memory is exhausted");
    emulator->owner_fd = -1;
    code = choose_path(path, emulator->path, out_error);
    if (code == 0)
        code = open_file(emulator->path, &emulator->state, out_error);
    if (code < 0)
        emulator_close(emulator);
    else
        *out_emulator = emulator;
    return code;
}

static int create(const char *path, const struct emulator_settings *given, int *out_owner_fd,
                  struct emulator **out_emulator, struct fly_error *out_error)
{
    char chosen[EMULATOR_PATH_MAX];
    struct emulator_settings resolved = *given;
    const struct emulator_settings *settings = &resolved;
    struct kind kind = {.shape = *gpu_shape_find(emulated_boards[given->board].name),
                        .owned = out_owner_fd != NULL};
    int code = choose_path(path, chosen, out_error);

    if (code == 0 && settings->profile[0] != '\0')
        code = measured_follow(&resolved, &kind.shape, &kind.workload, out_error);
    if (code == 0 && settings->instances > 0 && !emulated_boards[settings->board].has_mig)
        code = error_set(out_error, FLY_EUSAGE,
                         "the emulator's model %s has no MIG; choose a100, h100, h200, gh200 or b200",
                         emulated_boards[settings->board].name);
    if (code == 0) {
        owner_sweep(chosen);
        code = leftover_remove(chosen, out_error);
    }
    if (code == 0)
        code = create_file(chosen, settings, &kind, out_owner_fd, out_error);
    return code < 0 ? code : emulator_open(chosen, out_emulator, out_error);
}

int emulator_create(const char *path, const struct emulator_settings *settings,
                    struct emulator **out_emulator, struct fly_error *out_error)
{
    return create(path, settings, NULL, out_emulator, out_error);
}

int emulator_create_owned(const char *path, const struct emulator_settings *settings,
                          struct emulator **out_emulator, struct fly_error *out_error)
{
    int owner_fd = -1;
    int code = create(path, settings, &owner_fd, out_emulator, out_error);

    if (code == 0)
        (*out_emulator)->owner_fd = owner_fd;
    else if (owner_fd >= 0)
        close(owner_fd);
    return code;
}

int emulator_open_or_create(const char *path, struct emulator **out_emulator, struct fly_error *out_error)
{
    struct emulator_settings settings = emulator_default_settings;
    const char *text = getenv("FLYBALL_EMULATOR");
    int code = emulator_open(path, out_emulator, out_error);

    if (code != FLY_ENOTFOUND)
        return code;
    code = text != NULL ? emulator_settings_parse(&settings, text, out_error) : 0;
    if (code == 0)
        code = emulator_create(path, &settings, out_emulator, out_error);
    /* Another process was quicker: its machine is as good. */
    return code == FLY_ESTATE ? emulator_open(path, out_emulator, out_error) : code;
}

void emulator_close(struct emulator *emulator)
{
    if (emulator == NULL)
        return;
    if (emulator->state != NULL)
        munmap(emulator->state, emulator->state->bytes);
    if (emulator->owner_fd >= 0)
        close(emulator->owner_fd);
    free(emulator);
}

int emulator_remove(const char *path, struct fly_error *out_error)
{
    char chosen[EMULATOR_PATH_MAX];
    int code = choose_path(path, chosen, out_error);

    if (code == 0 && unlink(chosen) < 0)
        code =
            error_set(out_error, errno == ENOENT ? FLY_ENOTFOUND : FLY_EWRITE,
                      "emulator state '%s': %s; 'flyball-emulator start' makes one", chosen, strerror(errno));
    return code;
}

void state_lock(struct emulator_state *state)
{
    if (pthread_mutex_lock(&state->mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&state->mutex);
}

void state_unlock(struct emulator_state *state)
{
    pthread_mutex_unlock(&state->mutex);
}

int64_t state_now_ns(const struct emulator_state *state)
{
    return state->settings.virtual_time ? state->virtual_ns : mono_now().ns;
}

int64_t state_date_ns(const struct emulator_state *state, int64_t at_ns)
{
    int64_t slept_ns = state->settings.virtual_time ? sleeps_up_to_ns(&state->sleeps, at_ns) : 0;

    return state->created_date_ns + at_ns - state->created_ns + slept_ns;
}

void state_advance_to(struct emulator_state *state, int64_t ns)
{
    int64_t now = state->virtual_ns;

    while (now < ns && !atomic_compare_exchange_weak(&state->virtual_ns, &now, ns))
        ;
}

void state_spend(struct emulator_state *state, double duration_s, bool busy)
{
    struct mono_time until;

    if (duration_s <= 0.0)
        return;
    if (state->settings.virtual_time) {
        state->virtual_ns += (int64_t)(duration_s * 1e9 + 0.5);
        return;
    }
    until = mono_after_s(mono_now(), duration_s);
    if (!busy)
        clock_real.sleep_until(NULL, until);
    while (mono_now().ns < until.ns)
        ;
}
