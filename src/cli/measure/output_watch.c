/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/output_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wait.h"

enum { PIECE_MAX = 1 << 16, PATH_BYTES_MAX = 64 };

/* How long the end waits for a slow reader, and for bytes to cross a terminal. */
static const double drain_s = 2.0, terminal_s = 0.02;

/* Shared by the helper and this process. Texts of `seen` are this program's own. */
struct output_shared {
    _Atomic pid_t helper;
    atomic_int hung_up; /* nobody reads what is passed on any more */
    atomic_int busy;    /* some bytes may have been taken from the source and not been passed on yet */
    struct memory_seen seen;
    struct memory_words words;
    char piece[PIECE_MAX];
};

/* ---- passing on ---- */

static bool is_hang_up(int error)
{
    return error == EPIPE || error == EIO || error == ECONNRESET || error == EBADF;
}

bool output_pass_on(int stream, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = write(stream, bytes, length);
        struct pollfd ready = {.fd = stream, .events = POLLOUT};

        if (count < 0 && errno == EAGAIN)
            (void)poll(&ready, 1, -1);
        else if (count < 0 && errno != EINTR)
            return !is_hang_up(errno);
        bytes += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* Passes on one piece, if there is one. Returns false at the end. */
static bool pass_piece(struct output_shared *shared, int source, int stream, int copy)
{
    ssize_t count;
    bool goes_on;

    atomic_store(&shared->busy, 1);
    count = read(source, shared->piece, sizeof shared->piece);
    goes_on = count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
    if (count > 0) {
        memory_words_take(&shared->words, shared->piece, (size_t)count, &shared->seen);
        if (copy >= 0)
            (void)output_pass_on(copy, shared->piece, (size_t)count);
        goes_on = output_pass_on(stream, shared->piece, (size_t)count);
        atomic_store(&shared->hung_up, !goes_on);
    }
    atomic_store(&shared->busy, 0);
    return goes_on;
}

/* For the helper on a terminal: the terminals from which and to which the size is copied. */
static int size_from = -1, size_to = -1;

static void follow_size(int number)
{
    struct winsize size;
    int saved = errno;

    (void)number;
    if (ioctl(size_from, TIOCGWINSZ, &size) == 0)
        ioctl(size_to, TIOCSWINSZ, &size);
    errno = saved;
}

/*
 * Closes all other descriptors: this process's locks, and pipes whose end tells others of its
 * end, must not stay open in the helper.
 */
static void keep_only(int source, int stream, int copy)
{
    int high = copy >= 0 ? fcntl(copy, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

    if (dup2(stream, STDOUT_FILENO) < 0 || dup2(source, STDIN_FILENO) < 0)
        _exit(1);
    if (high < 0 || dup2(high, STDERR_FILENO) < 0)
        close(STDERR_FILENO);
    (void)syscall(SYS_close_range, (unsigned)STDERR_FILENO + 1, ~0u, 0);
}

_Noreturn static void help(struct output_shared *shared, int source, int stream, int copy, bool terminal)
{
    struct sigaction action = {.sa_handler = follow_size, .sa_flags = SA_RESTART};
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t signals;

    sigfillset(&signals);
    keep_only(source, stream, copy);
    prctl(PR_SET_NAME, "output");
    if (terminal) {
        size_from = STDOUT_FILENO;
        size_to = STDIN_FILENO;
        sigdelset(&signals, SIGWINCH);
        sigaction(SIGWINCH, &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &signals, NULL);
    do {
        (void)poll(&ready, 1, -1);
    } while (pass_piece(shared, STDIN_FILENO, STDOUT_FILENO, copy >= 0 ? STDERR_FILENO : -1));
    _exit(0);
}

/*
 * The helper is a grandchild, so that code which looks after this process's children does not
 * take it for one of the program's.
 */
static bool start_helper(struct output_stream *stream)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        pid_t helper = fork();

        if (helper == 0) {
            close(stream->program_end);
            help(stream->shared, stream->source, stream->stream, stream->copy, stream->terminal);
        }
        atomic_store(&stream->shared->helper, helper);
        _exit(helper > 0 ? 0 : 1);
    }
    if (child > 0) {
        int status = 1;

        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (status == 0)
            stream->life = (int)syscall(SYS_pidfd_open, atomic_load(&stream->shared->helper), 0);
    }
    return child > 0 && stream->life >= 0;
}

/* ---- making streams ---- */

/* Opens a terminal of the same size that does not translate bytes; the real one does. */
static bool open_terminal(struct output_stream *stream)
{
    char path[PATH_BYTES_MAX];
    struct termios settings;
    struct winsize size;

    if (tcgetattr(stream->stream, &settings) < 0 || ioctl(stream->stream, TIOCGWINSZ, &size) < 0)
        return false;
    settings.c_oflag &= (tcflag_t)~OPOST;
    settings.c_lflag &= (tcflag_t) ~(ECHO | ECHONL);
    stream->source = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (stream->source < 0 || grantpt(stream->source) < 0 || unlockpt(stream->source) < 0 ||
        ptsname_r(stream->source, path, sizeof path) != 0)
        return false;
    stream->program_end = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return stream->program_end >= 0 && tcsetattr(stream->program_end, TCSANOW, &settings) == 0 &&
           ioctl(stream->program_end, TIOCSWINSZ, &size) == 0;
}

static bool open_pipe(struct output_stream *stream)
{
    int ends[2];

    if (pipe(ends) < 0)
        return false;
    stream->source = ends[0];
    stream->program_end = ends[1];
    return true;
}

static void shut(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void forget(struct output_stream *stream)
{
    shut(&stream->program_end);
    shut(&stream->source);
    shut(&stream->life);
    if (stream->shared != NULL)
        munmap(stream->shared, sizeof *stream->shared);
    stream->shared = NULL;
    stream->how = OUTPUT_ALONE;
}

static struct output_shared *share(void)
{
    const size_t size = sizeof(struct output_shared);
    /* cppcheck-suppress [invalidFunctionArg, memleak] ; -1 is what a mapping without a file wants */
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL; /* cppcheck-suppress memleak ; of the stream */
}

static void begin_passed(struct output_stream *stream, const regex_t *told)
{
    stream->shared = share();
    stream->terminal = isatty(stream->stream) == 1;
    if (stream->shared == NULL || !(stream->terminal ? open_terminal(stream) : open_pipe(stream))) {
        forget(stream);
        return;
    }
    fcntl(stream->source, F_SETFD, FD_CLOEXEC);
    fcntl(stream->program_end, F_SETFD, FD_CLOEXEC);
    stream->shared->words.told = told;
    stream->how = OUTPUT_PASSED;
    if (!start_helper(stream))
        forget(stream);
}

/* Returns where the next byte goes. */
static off_t file_end(const struct output_stream *stream)
{
    struct stat status;
    bool appends = (fcntl(stream->stream, F_GETFL) & O_APPEND) != 0;

    if (!appends)
        return lseek(stream->stream, 0, SEEK_CUR);
    return fstat(stream->source, &status) == 0 ? status.st_size : 0;
}

static bool begin_file(struct output_stream *stream)
{
    char path[PATH_BYTES_MAX];

    snprintf(path, sizeof path, "/proc/self/fd/%d", stream->stream);
    stream->source = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (stream->source >= 0)
        stream->how = OUTPUT_FILE;
    return stream->source >= 0;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_rdev == other->st_rdev;
}

void output_watch_begin(struct output_watch *watch, const regex_t *told, const bool watched[OUTPUT_STREAMS],
                        int error_copy)
{
    struct stat status[OUTPUT_STREAMS];

    *watch = (struct output_watch){.told = told, .begun = true};
    for (int i = 0; i < OUTPUT_STREAMS; i++) {
        struct output_stream *stream = &watch->streams[i];

        *stream = (struct output_stream){.stream = STDOUT_FILENO + i,
                                         .program_end = -1,
                                         .saved = -1,
                                         .source = -1,
                                         .life = -1,
                                         .copy = i > 0 ? error_copy : -1};
        if (!watched[i] || fstat(stream->stream, &status[i]) < 0 ||
            (fcntl(stream->stream, F_GETFL) & O_ACCMODE) == O_RDONLY)
            continue;
        if (i > 0 && watch->streams[0].how != OUTPUT_ALONE && is_same(&status[0], &status[i]))
            stream->how = OUTPUT_WITH_FIRST;
        else if (stream->copy >= 0 || !S_ISREG(status[i].st_mode) || !begin_file(stream))
            begin_passed(stream, told);
    }
}

void output_watch_put(struct output_watch *watch)
{
    for (int i = 0; i < OUTPUT_STREAMS && watch->begun; i++) {
        struct output_stream *stream = &watch->streams[i];
        int end = stream->how == OUTPUT_WITH_FIRST ? watch->streams[0].program_end : stream->program_end;

        if (end < 0)
            continue;
        stream->saved = fcntl(stream->stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (stream->saved >= 0)
            dup2(end, stream->stream);
    }
    output_watch_progress(watch);
}

void output_watch_take_back(struct output_watch *watch)
{
    for (int i = 0; i < OUTPUT_STREAMS && watch->begun; i++) {
        struct output_stream *stream = &watch->streams[i];

        if (stream->saved < 0)
            continue;
        dup2(stream->saved, stream->stream);
        shut(&stream->saved);
    }
}

/* ---- while it runs, and afterwards ---- */

void output_watch_progress(struct output_watch *watch)
{
    for (int i = 0; i < OUTPUT_STREAMS && watch->begun; i++) {
        struct output_stream *stream = &watch->streams[i];

        if (stream->how == OUTPUT_PASSED)
            stream->before = stream->shared->seen;
        else if (stream->how == OUTPUT_FILE)
            stream->from = file_end(stream);
    }
}

/* Returns whether bytes wait that the helper has not taken or not passed on. */
static bool is_waiting(const struct output_stream *stream)
{
    int count = 0;

    if (ioctl(stream->source, FIONREAD, &count) == 0 && count > 0)
        return true;
    return atomic_load(&stream->shared->busy) != 0;
}

/* Returns whether the helper has ended. What it was about to pass on then is lost. */
static bool is_gone(struct output_stream *stream)
{
    struct pollfd ended = {.fd = stream->life, .events = POLLIN};

    if (stream->life >= 0 && poll(&ended, 1, 0) > 0) {
        shut(&stream->life);
        atomic_store(&stream->shared->busy, 0);
    }
    return stream->life < 0;
}

static void tend(struct output_stream *stream)
{
    struct pollfd ready = {.fd = stream->source, .events = POLLIN};

    if (stream->how != OUTPUT_PASSED || !is_gone(stream))
        return;
    while (!atomic_load(&stream->shared->hung_up) && poll(&ready, 1, 0) > 0 &&
           (ready.revents & POLLIN) != 0 &&
           pass_piece(stream->shared, stream->source, stream->stream, stream->copy))
        ;
    /* As without this watch, the program learns of it when it writes. */
    if (atomic_load(&stream->shared->hung_up))
        shut(&stream->source);
}

void output_watch_tend(struct output_watch *watch)
{
    for (int i = 0; i < OUTPUT_STREAMS && watch->begun; i++)
        tend(&watch->streams[i]);
}

static void drain(struct output_stream *stream)
{
    struct mono_time end = mono_after_s(mono_now(), drain_s);
    struct mono_time quiet = mono_after_s(mono_now(), stream->terminal ? terminal_s : 0.0);

    while (mono_elapsed_s(mono_now(), end) > 0 &&
           (is_waiting(stream) || mono_elapsed_s(mono_now(), quiet) > 0)) {
        tend(stream);
        mono_sleep_s(1e-3);
    }
}

/* Reads what was written since; a file that became shorter counts as another file. */
static void read_file(const struct output_stream *stream, const regex_t *told, struct memory_seen *seen)
{
    static struct memory_words words;
    static char piece[PIECE_MAX];
    struct stat status;
    off_t at = stream->from;
    ssize_t count;

    words = (struct memory_words){.told = told};
    if (fstat(stream->source, &status) < 0)
        return;
    if (at < 0 || at > status.st_size)
        at = 0;
    if (status.st_size - at > OUTPUT_TAIL_MAX)
        at = status.st_size - OUTPUT_TAIL_MAX;
    while (at < status.st_size && (count = pread(stream->source, piece, sizeof piece, at)) > 0) {
        memory_words_take(&words, piece, (size_t)count, seen);
        at += count;
    }
    memory_words_end(&words, seen);
}

static void look_at(struct output_stream *stream, const regex_t *told, struct memory_seen *sum)
{
    struct memory_seen seen = {.count = {0}};

    if (stream->how == OUTPUT_FILE)
        read_file(stream, told, &seen);
    if (stream->how == OUTPUT_PASSED) {
        drain(stream);
        if (stream->copy >= 0)
            return;
        memory_words_end(&stream->shared->words, &stream->shared->seen);
        seen = stream->shared->seen;
    }
    for (int kind = 0; kind < MEMORY_KINDS; kind++) {
        uint64_t before = stream->how == OUTPUT_PASSED ? stream->before.count[kind] : 0;

        uint64_t since = memory_seen_since(&seen, (enum memory_kind)kind, before);

        if (since == 0)
            continue;
        sum->count[kind] += since;
        sum->words[kind] = seen.words[kind];
    }
}

void output_watch_end(struct output_watch *watch, struct memory_seen *seen)
{
    for (int i = 0; i < OUTPUT_STREAMS && watch->begun; i++)
        look_at(&watch->streams[i], watch->told, seen);
}

void output_watch_close(struct output_watch *watch)
{
    for (int i = 0; i < OUTPUT_STREAMS && watch->begun; i++)
        forget(&watch->streams[i]);
    watch->begun = false;
}
