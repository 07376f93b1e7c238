/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parent and child talk through two pipes. The child writes its first message when the kernel has
 * run, and another if something ends it early. The child ends when the parent closes the other
 * pipe, or dies.
 */
#include "device/nvidia/cuda_load.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wait.h"
#include "device/nvidia/cuda_driver.h"

enum { START_MAX_MS = 30000, STOP_MAX_MS = 3000, WAIT_STEP_MS = 5, READ_END = 0, WRITE_END = 1 };

/* Memory shared by parent and child. */
struct cuda_load_work {
    _Atomic uint64_t steps;
};

struct child {
    int control, messages;
    bool reported;
    struct cuda_load_work *work; /* NULL: the work is not counted */
};

/* The message is short enough that a pipe takes it whole. */
static void report(int messages, const struct fly_error *error)
{
    ssize_t written;

    do {
        written = write(messages, error, sizeof *error);
    } while (written < 0 && errno == EINTR);
}

/* Returns whether the child may go on, that is, nobody has told it to end. */
static bool go_on(void *data, uint64_t steps)
{
    struct child *child = data;
    struct pollfd control = {.fd = child->control, .events = POLLIN};

    if (child->work != NULL)
        atomic_store(&child->work->steps, steps);
    if (!child->reported) {
        report(child->messages, &(struct fly_error){.code = 0});
        child->reported = true;
    }
    return poll(&control, 1, 0) == 0;
}

/*
 * Removes everything of the caller's that the driver could affect in the child: output, signals,
 * hidden GPUs.
 */
static void become_child(double duration_max_s)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm((unsigned)duration_max_s + 1);
    /* The GPU is named by its place on the bus, but the variable could hide it. */
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* Otherwise loads that were started earlier would not see their pipes close. */
static void close_others(int control, int messages)
{
    unsigned first = (unsigned)(control < messages ? control : messages);
    unsigned second = (unsigned)(control < messages ? messages : control);

    if (first > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, first - 1, 0);
    if (second > first + 1)
        close_range(first + 1, second - 1, 0);
    close_range(second + 1, UINT_MAX, 0);
}

static _Noreturn void run_child(const struct cuda_load_options *options, int control, int messages,
                                struct cuda_load_work *work)
{
    struct child child = {.control = control, .messages = messages, .work = work};
    struct cuda_run run = {
        .library_path = options->library_path, .pci = options->pci, .go_on = go_on, .data = &child};
    struct fly_error error = {0};

    close_others(control, messages);
    become_child(options->duration_max_s);
    error.code = cuda_run(&run, &error);
    if (error.code < 0)
        report(messages, &error);
    /* Flushes nothing of the caller's, and runs none of its exit handlers. */
    _exit(error.code < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Waits for the child's next message; false if none comes in time. */
static bool receive(const struct cuda_load *load, int timeout_ms, struct fly_error *out_message)
{
    struct pollfd messages = {.fd = load->messages, .events = POLLIN};
    struct mono_time end = mono_after_s(mono_now(), timeout_ms / 1e3);
    int ready;

    do
        ready = mono_poll(&messages, 1, end);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(load->messages, out_message, sizeof *out_message) == sizeof *out_message;
}

/* Waits until the child has ended; false if it does not in time. */
static bool wait_end(pid_t child, int timeout_ms, int *out_status)
{
    for (int waited_ms = 0;; waited_ms += WAIT_STEP_MS) {
        pid_t ended = waitpid(child, out_status, WNOHANG);

        if (ended == child || (ended < 0 && errno == ECHILD))
            return true;
        if (waited_ms >= timeout_ms)
            return false;
        mono_sleep_s(WAIT_STEP_MS * 1e-3);
    }
}

static void unmap(struct cuda_load *load)
{
    if (load->work != NULL)
        munmap(load->work, sizeof *load->work);
    load->work = NULL;
}

/* Without this memory the work is not counted. */
static void map(struct cuda_load *load)
{
    /* cppcheck-suppress invalidFunctionArg ; -1 is what a mapping without a file wants */
    void *shared = mmap(NULL, sizeof *load->work, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    load->work = shared;
    if (shared == MAP_FAILED)
        load->work = NULL;
}

/* Ends the child, by force if needed. */
static int end_child(struct cuda_load *load, int *out_status, struct fly_error *out_error)
{
    bool ended;

    *out_status = 0;
    close(load->control);
    ended = wait_end(load->child, STOP_MAX_MS, out_status);
    if (!ended) {
        kill(load->child, SIGKILL);
        ended = wait_end(load->child, STOP_MAX_MS, out_status);
    }
    close(load->messages);
    unmap(load);
    if (ended)
        return 0;
    return error_set(out_error, FLY_EREAD,
                     "the load's process %d does not end: the driver holds it; see the kernel's log",
                     (int)load->child);
}

static int make_pipes(int control[2], int messages[2], struct fly_error *out_error)
{
    if (pipe2(control, O_CLOEXEC) < 0)
        return error_set(out_error, FLY_EREAD, "the load cannot be started: %s", strerror(errno));
    if (pipe2(messages, O_CLOEXEC) == 0)
        return 0;
    error_set(out_error, FLY_EREAD, "the load cannot be started: %s", strerror(errno));
    close(control[READ_END]);
    close(control[WRITE_END]);
    return FLY_EREAD;
}

static int fork_child(const struct cuda_load_options *options, struct cuda_load *load,
                      struct fly_error *out_error)
{
    int control[2] = {-1, -1}, messages[2] = {-1, -1};
    int code = make_pipes(control, messages, out_error);

    if (code < 0)
        return code;
    map(load);
    load->child = fork();
    if (load->child == 0) {
        close(control[WRITE_END]);
        close(messages[READ_END]);
        run_child(options, control[READ_END], messages[WRITE_END], load->work);
    }
    close(control[READ_END]);
    close(messages[WRITE_END]);
    load->control = control[WRITE_END];
    load->messages = messages[READ_END];
    if (load->child > 0)
        return 0;
    error_set(out_error, FLY_EREAD, "the load cannot be started: %s", strerror(errno));
    close(load->control);
    close(load->messages);
    unmap(load);
    return FLY_EREAD;
}

int cuda_load_start(const struct cuda_load_options *options, struct cuda_load *out_load,
                    struct fly_error *out_error)
{
    struct cuda_load load = {0};
    struct fly_error message = {0};
    int code = fork_child(options, &load, out_error), status;
    bool answered;

    if (code < 0)
        return code;
    answered = receive(&load, START_MAX_MS, &message);
    if (answered && message.code == 0) {
        *out_load = load;
        return 0;
    }
    code = end_child(&load, &status, out_error);
    if (code < 0)
        return code;
    if (answered)
        return error_set(out_error, message.code, "%s", message.text);
    if (WIFSIGNALED(status))
        return error_set(out_error, FLY_EREAD, "the CUDA driver crashed or did not answer (signal %d)",
                         WTERMSIG(status));
    return error_set(out_error, FLY_EREAD, "the CUDA driver ended the load's process (status %d)",
                     WEXITSTATUS(status));
}

int cuda_load_stop(struct cuda_load *load, struct fly_error *out_error)
{
    struct fly_error message = {0};
    bool ended_early = receive(load, 0, &message);
    int status, code = end_child(load, &status, out_error);

    load->child = 0;
    if (code < 0)
        return code;
    if (ended_early)
        return error_set(out_error, message.code, "%s", message.text);
    if (WIFSIGNALED(status))
        return error_set(out_error, FLY_EREAD, "the load's process was ended by signal %d", WTERMSIG(status));
    return 0;
}

bool cuda_load_steps(const struct cuda_load *load, uint64_t *out_steps)
{
    if (load->child <= 0 || load->work == NULL)
        return false;
    *out_steps = atomic_load(&load->work->steps);
    return true;
}
