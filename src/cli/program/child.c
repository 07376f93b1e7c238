/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wait.h"

char **program_words(const struct cli_call *call, size_t count,
                     const char *(*word)(const struct cli_call *call, size_t index))
{
    char **words = calloc(count + 1, sizeof *words);

    for (size_t i = 0; words != NULL && i < count; i++) {
        const char *of = word(call, i);

        memcpy(&words[i], &of, sizeof of);
    }
    return words;
}

void program_say_not_run(const struct cli_call *call, const char *program, int error, int status)
{
    char text[FLY_ERROR_TEXT_MAX];

    snprintf(text, sizeof text, "'%.200s' cannot be run: %s", program,
             error == ENOENT && strchr(program, '/') == NULL ? "there is no such command" : strerror(error));
    cli_say(call, text);
    cli_exit_with(call, status);
}

int program_replace(const struct cli_call *call, char *const *words)
{
    int status = child_replace(words);

    program_say_not_run(call, words[0], errno, status);
    return 0;
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

void stop_signals_hold(struct stop_signals *stop)
{
    stop->stopped = stop->reloads = stop->reloaded = false;
    sigemptyset(&stop->held);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;

        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&stop->held, numbers[i]);
    }
    pthread_sigmask(SIG_BLOCK, &stop->held, &stop->before);
}

void stop_signals_hold_for_service(struct stop_signals *stop)
{
    stop_signals_hold(stop);
    stop->reloads = true;
    sigaddset(&stop->held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stop->held, NULL);
    signal(SIGHUP, SIG_DFL); /* an ignored signal does not become pending */
}

bool stop_signals_take_reload(struct stop_signals *stop)
{
    bool reloaded = stop->reloaded;

    stop->reloaded = false;
    return reloaded;
}

bool stop_signals_wait(struct stop_signals *stop, struct mono_time when)
{
    while (!stop->stopped) {
        int number = mono_signal(&stop->held, NULL, when);

        if (number == SIGHUP && stop->reloads) {
            stop->reloaded = true;
            break;
        }
        stop->stopped = number > 0;
        if (number < 0 && errno == EAGAIN && mono_now().ns >= when.ns)
            break;
    }
    return stop->stopped;
}

void stop_signals_release(struct stop_signals *stop)
{
    if (stop->reloads)
        signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
}

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

enum { STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128, VARIABLE_MAX = 1 << 15 };

/* A timer of 0 would never fire. */
static const double guard_least_s = 0.01;

/* How long to wait for a signal at a time, on systems where it cannot wait for input as well. */
static const double blind_s = 0.005;

/* Passed on if somebody sends them to this process; so are the realtime signals. */
static const int forwarded[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGPWR, SIGXCPU,
};

static void waited_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(set, forwarded[i]);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        sigaddset(set, signal);
}

static int status_of_exec(int error)
{
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

/* Reads until the other side closes; returns how many bytes came, at most `capacity`. */
static size_t read_all(int fd, char *bytes, size_t capacity)
{
    size_t length = 0;

    while (length < capacity) {
        ssize_t count = read(fd, bytes + length, capacity - length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        length += (size_t)count;
    }
    return length;
}

/* Returns whether all was written. */
static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = write(fd, bytes, length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

/* Waits until the other side writes or closes, or the time is over. */
static void wait_at(int fd, double patience_s)
{
    struct pollfd source = {.fd = fd, .events = POLLIN};
    struct mono_time end = mono_after_s(mono_now(), patience_s);
    int ready = 0;

    while (ready <= 0 && mono_now().ns < end.ns)
        ready = mono_poll(&source, 1, end);
    /* Nothing came in time, so it reads no more. */
    if (ready <= 0)
        fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Runs in the new process: waits at the gate, then becomes the program. */
_Noreturn static void become(char *const *arguments, double patience_s, int gate, int outcome,
                             const sigset_t *mask)
{
    static char variable[VARIABLE_MAX];
    size_t length;
    int error;

    sigprocmask(SIG_SETMASK, mask, NULL);
    wait_at(gate, patience_s);
    length = read_all(gate, variable, sizeof variable - 1);
    variable[length] = '\0';
    if (length > 0)
        putenv(variable);
    inherited_restore();
    execvp(arguments[0], arguments);
    error = errno;
    write_all(outcome, (const char *)&error, sizeof error);
    _exit(status_of_exec(error));
}

/* Opens two pipes whose ends close when a program is started; each end is -1 or open. */
static int open_pipes(int gate[2], int outcome[2], struct fly_error *out_error)
{
    if (pipe2(gate, O_CLOEXEC) == 0) {
        if (pipe2(outcome, O_CLOEXEC) == 0)
            return 0;
        close(gate[0]);
        close(gate[1]);
    }
    return error_set(out_error, FLY_ELIMIT, "no pipe to a new process: %s; close files, or raise ulimit -n",
                     strerror(errno));
}

int child_fork(struct child *out_child, char *const *arguments, double patience_s,
               struct fly_error *out_error)
{
    /*
     * This process must hear of a child's end, even if its parent turned that off; the program gets
     * the original setting.
     */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    struct sigaction inherited;
    int gate[2] = {-1, -1};
    int outcome[2] = {-1, -1};
    sigset_t before;
    int result = open_pipes(gate, outcome, out_error);

    if (result < 0)
        return result;
    *out_child = (struct child){
        .gate = gate[1], .outcome = outcome[0], .patience_s = patience_s, .forked = mono_now()};
    waited_signals(&out_child->waited);
    sigprocmask(SIG_BLOCK, &out_child->waited, &before);
    sigaction(SIGCHLD, &standard, &inherited);
    out_child->pid = fork();
    if (out_child->pid == 0) {
        sigaction(SIGCHLD, &inherited, NULL);
        close(gate[1]);
        close(outcome[0]);
        become(arguments, patience_s, gate[0], outcome[1], &before);
    }
    close(gate[0]);
    close(outcome[1]);
    if (out_child->pid > 0)
        return 0;
    result = error_set(out_error, errno == ENOMEM ? FLY_ENOMEM : FLY_ELIMIT,
                       "no new process: %s; end some, or raise ulimit -u", strerror(errno));
    close(gate[1]);
    close(outcome[0]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* Records what became of the program. Returns whether it has ended. */
static bool child_ended(struct child *child)
{
    int status;
    pid_t found;

    if (child->ended)
        return true;
    while ((found = waitpid(child->pid, &status, WNOHANG | WUNTRACED | WCONTINUED)) == child->pid) {
        child->stopped = WIFSTOPPED(status);
        if (WIFEXITED(status))
            child->status = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) {
            child->signal = WTERMSIG(status);
            child->status = STATUS_SIGNAL + child->signal;
        }
        child->ended = WIFEXITED(status) || WIFSIGNALED(status);
        if (child->ended)
            return true;
    }
    return found < 0 && errno != EINTR;
}

int child_start(struct child *child, const char *variable)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int error = 0;
    int status;

    /* From here on, neither a process that died at the gate nor a closed stderr may kill this process. */
    sigaction(SIGPIPE, &ignore, NULL);
    if (strlen(variable) < VARIABLE_MAX && !write_all(child->gate, variable, strlen(variable)))
        child->early_s = mono_elapsed_s(child->forked, mono_now()) - child->patience_s;
    close(child->gate);
    read_all(child->outcome, (char *)&error, sizeof error);
    close(child->outcome);
    if (error == 0)
        return 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->exec_errno = error;
    child->ended = true;
    child->status = status_of_exec(error);
    return -1;
}

/*
 * A signal from the kernel came from the terminal and went to the whole group, so it is not
 * passed on. SIGCONT always is: it does no harm twice, and a stopped program needs it.
 */
static void pass_on(struct child *child, int signal, const siginfo_t *info)
{
    bool sent_by_someone = info->si_code <= 0;

    if (signal == SIGTSTP)
        child->stop_wanted = true;
    if (signal == SIGINT && !sent_by_someone)
        child->interrupted = true;
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT || signal == SIGXCPU)
        child->passed = signal;
    if (sent_by_someone || signal == SIGCONT)
        kill(child->pid, signal);
}

/* Passes on signals that are pending now; safe in a signal handler. */
static void pass_pending(struct child *child)
{
    siginfo_t info;
    int number;

    while ((number = mono_signal(&child->waited, &info, mono_now())) > 0) {
        if (number != SIGCHLD)
            pass_on(child, number, &info);
    }
}

/* For the guard's handler, which runs in the blocked thread. */
static struct child *guarded;
static const char *guard_words;

/* Calls only functions that may be called while any other function is interrupted. */
static void look_after(int number)
{
    int saved = errno;

    (void)number;
    pass_pending(guarded);
    if (child_ended(guarded)) {
        write_all(STDERR_FILENO, guard_words, strlen(guard_words));
        _exit(guarded->status);
    }
    errno = saved;
}

static void set_timer(double first_s, double every_s)
{
    const struct itimerval timer = {
        .it_interval = {.tv_sec = (time_t)every_s},
        .it_value = {.tv_sec = (time_t)first_s, .tv_usec = (suseconds_t)((first_s - floor(first_s)) * 1e6)}};

    setitimer(ITIMER_REAL, &timer, NULL);
}

static void set_alarm_blocked(int how)
{
    sigset_t alarm_only;

    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(how, &alarm_only, NULL);
}

void child_guard_begin(struct child *child, const char *last_words)
{
    struct sigaction action = {.sa_handler = look_after, .sa_flags = SA_RESTART};

    guarded = child;
    guard_words = last_words;
    sigaction(SIGALRM, &action, NULL);
    set_alarm_blocked(SIG_UNBLOCK);
    set_timer(fmax(child->patience_s, guard_least_s), 1);
}

void child_guard_end(struct child *child)
{
    (void)child;
    set_timer(0, 0);
    set_alarm_blocked(SIG_BLOCK);
    guarded = NULL;
}

void child_follow(const struct child *child)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t interrupt;

    if (!child->interrupted || child->signal != SIGINT)
        return;
    sigaction(SIGINT, &standard, NULL);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
    raise(SIGINT);
}

void child_abandon(struct child *child)
{
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    child->ended = true;
    close(child->gate);
    close(child->outcome);
}

/* Called when the program has stopped at a Ctrl-Z. */
static void stop_too(struct child *child)
{
    if (!child->stopped || !child->stop_wanted)
        return;
    child->stop_wanted = false;
    if (child->before_stop != NULL)
        child->before_stop(child->before_stop_state);
    raise(SIGSTOP);
}

bool child_wait_until(struct child *child, struct mono_time when)
{
    for (;;) {
        siginfo_t info;
        int signal;

        if (child_ended(child))
            return true;
        if (mono_now().ns >= when.ns)
            return false;
        stop_too(child);
        signal = mono_signal(&child->waited, &info, when);
        if (signal > 0 && signal != SIGCHLD)
            pass_on(child, signal, &info);
    }
}

bool child_wait_input(struct child *child, int fd, struct mono_time when)
{
    struct pollfd sources[] = {{.fd = fd, .events = POLLIN}, {.events = POLLIN}};
    double left_s = mono_elapsed_s(mono_now(), when);

    if (child->signals <= 0)
        child->signals = signalfd(-1, &child->waited, SFD_CLOEXEC | SFD_NONBLOCK);
    if (child->signals < 0)
        return child_wait_until(child, mono_after_s(mono_now(), fmin(fmax(left_s, 0), blind_s)));
    if (child_ended(child))
        return true;
    sources[1].fd = child->signals;
    (void)mono_poll(sources, sizeof sources / sizeof sources[0], when);
    pass_pending(child);
    if (child_ended(child))
        return true;
    stop_too(child);
    return false;
}

void child_wait(struct child *child)
{
    while (!child_wait_until(child, (struct mono_time){INT64_MAX}))
        ;
}

int child_replace(char *const *arguments)
{
    inherited_restore();
    execvp(arguments[0], arguments);
    return status_of_exec(errno);
}
