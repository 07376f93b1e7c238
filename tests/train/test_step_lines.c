/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that a program reports: who says them, whose count, where they go, and a program that floods. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/program/step_lines.h"
#include "train/program/step_writer.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_senders(void **state)
{
    static const struct {
        const char *line;
        int rank, pid;
        enum step_event event;
    } cases[] = {
        {"step 1", -1, -1, STEP_BEGIN},
        {"rank 0 pid 4711", 0, 4711, STEP_BEGIN},
        {"rank 0 pid 4711 ", 0, 4711, STEP_BEGIN},
        {"rank 3 pid 4711 step 1", 3, 4711, STEP_BEGIN},
        {"pid 4711 epoch 1", -1, 4711, STEP_EPOCH_BEGIN},
        {"rank 3 epoch end", 3, -1, STEP_EPOCH_END},
        {"rank 1 pid 2 epoch 3 metric 0.5", 1, 2, STEP_REPORT},
        {"rank 1 pid 2 epoch", 1, 2, STEP_MALFORMED},
        {"rank 1 pid 2 out of memory", 1, 2, STEP_OUT_OF_MEMORY},
        {"pid 2 session", -1, 2, STEP_SESSION},
        {"rank one pid 2", -1, -1, STEP_BEGIN},
        {"rank", -1, -1, STEP_BEGIN},
        {"rank ", -1, -1, STEP_BEGIN},
        {"rank 1x pid 2", -1, -1, STEP_BEGIN},
        {"pid 2 rank 1", -1, 2, STEP_BEGIN},
        {"rank 99999999999999999999 epoch end", -1, -1, STEP_BEGIN},
        {"rank -1 pid 2", -1, -1, STEP_BEGIN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct step_report report;
        struct step_sender sender;
        enum step_event event = step_line_event(cases[i].line, strlen(cases[i].line), &sender, &report);

        if (event != cases[i].event || sender.rank != cases[i].rank || sender.pid != cases[i].pid)
            fail_msg("'%s' is %d of rank %d pid %d", cases[i].line, (int)event, sender.rank, sender.pid);
    }
}

static void test_places(void **state)
{
    static const char *const bad[] = {
        "", "/a", "/a:1", "/a:1:", "/a::2", "a:1:2", "/a:1:2x", "/a:-1:2", "/a:1:99999999999999999999",
    };
    struct step_place place = {.path = "/dev/shm/a:b", .device = 27, .inode = UINT64_MAX},
                      read = {.path = ""};
    char text[STEP_PLACE_MAX];

    (void)state;
    assert_string_equal(step_place_write(&place, text), "/dev/shm/a:b:27:18446744073709551615");
    assert_true(step_place_read(text, &read));
    assert_string_equal(read.path, place.path);
    assert_true(read.device == place.device && read.inode == place.inode);
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (step_place_read(bad[i], &read))
            fail_msg("'%s' is read", bad[i]);
    }
}

/* Appends text to the file of the lines, as a program does. */
static void say(const struct step_lines *lines, const char *text)
{
    assert_int_equal(write(lines->file.program_end, text, strlen(text)), strlen(text));
}

static uint64_t take_all(struct step_lines *lines)
{
    enum step_event event;

    while (step_lines_next(lines, &event))
        ;
    return lines->events[STEP_BEGIN];
}

/* A process that has ended, and is waited for; its number is nobody's then. */
static int ended_process(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* What stands for a process in the rows below. */
enum { SELF = 1, PARENT, DEAD, LATER };

static void say_of(const struct step_lines *lines, const char *form, const int pids[])
{
    char text[64];

    for (; *form != '\0'; form += 3) {
        int rank = form[0] - '0', pid = pids[form[1] - '0'];

        if (form[0] == '-')
            snprintf(text, sizeof text, "pid %d\n", pid);
        else
            snprintf(text, sizeof text, "rank %d pid %d\n", rank, pid);
        say(lines, text);
    }
}

/* Rows of "RANK PROCESS," for each step; '-' for no rank. */
static void test_whose_steps_count(void **state)
{
    static const struct {
        const char *steps;
        uint64_t counted;
        const char *what;
    } cases[] = {
        {"01,12,01,12,01,12,", 3, "rank 0's"},
        {"12,01,12,01,12,01,", 3, "rank 0's, which is the later one"},
        {"12,22,12,22,", 2, "the lowest of those that there are"},
        {"-1,-2,-1,-2,-1,", 3, "the first of two without a rank"},
        {"-2,01,-2,01,", 2, "one with a rank before one without"},
        {"03,03,01,01,01,", 5, "those of rank 0 after its process was started again"},
        {"03,01,03,01,", 2, "of two of one rank that ran at once the first's, though it has ended"},
        {"03,04,04,03,04,", 2, "the same where both have"},
        {"-3,-3,-4,-4,-1,", 5, "those of three without a rank, one after the other"},
    };
    const int pids[] = {0, getpid(), getppid(), ended_process(), ended_process()};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct step_lines lines;

        assert_int_equal(step_lines_open(&lines, NULL), 0);
        step_lines_last(&lines);
        say_of(&lines, cases[i].steps, pids);
        if (take_all(&lines) != cases[i].counted)
            fail_msg("%s: %llu steps are counted, not %llu", cases[i].what,
                     (unsigned long long)lines.events[STEP_BEGIN], (unsigned long long)cases[i].counted);
        step_lines_close(&lines);
    }
}

/* As they come: a lower rank that is late leaves out what was counted before it. */
static void test_a_lower_rank_that_is_late(void **state)
{
    const int pids[] = {0, getpid(), getppid()};
    struct step_lines lines;

    (void)state;
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    say_of(&lines, "12,", pids);
    assert_int_equal(take_all(&lines), 0);
    assert_true(step_lines_wait_s(&lines, 10) <= 0.5);
    lines.held_until = mono_now();
    assert_int_equal(take_all(&lines), 1);
    say_of(&lines, "12,", pids);
    say(&lines, "rank 1 pid 1 epoch 1 metric 0.9\n");
    assert_int_equal(take_all(&lines), 2);
    assert_int_equal(lines.events[STEP_REPORT], 0); /* of another process of rank 1 */
    say_of(&lines, "01,01,01,12,", pids);
    assert_int_equal(take_all(&lines), 3);
    say(&lines, "\nstep 5\nrank 7 pid 1 out of memory\n");
    assert_int_equal(take_all(&lines), 5); /* shells say no rank */
    assert_int_equal(lines.events[STEP_OUT_OF_MEMORY], 1);
    step_lines_close(&lines);
}

/* What the writer says, by the path and by the descriptor, and that it writes to nothing else. */
static void test_writer(void **state)
{
    char place[STEP_PLACE_MAX], said[64], expected[64];
    struct step_writer writer;
    struct step_lines lines;
    int other = open("/dev/shm", O_TMPFILE | O_RDWR, S_IRUSR | S_IWUSR);
    struct stat status;

    (void)state;
    assert_int_equal(step_writer_open(&writer), STEPS_NOT_WANTED);
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    snprintf(place, sizeof place, "%s", getenv(STEP_PLACE_VARIABLE));
    snprintf(said, sizeof said, "%d", other);
    setenv(STEP_VARIABLE, said, 1); /* another file took that number */
    for (int by_path = 0; by_path < 2; by_path++) {
        setenv(STEP_PLACE_VARIABLE, place, 1);
        setenv("RANK", "2", 1);
        setenv("WORLD_SIZE", "4", 1);
        assert_int_equal(step_writer_open(&writer), STEPS_OPEN);
        assert_int_equal(writer.rank, 2);
        step_writer_write(&writer, "epoch %d", by_path);
        step_writer_close(&writer);
    }
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    assert_int_equal(pread(lines.file.file, said, sizeof said - 1, 0) > 0, 1);
    snprintf(expected, sizeof expected, "rank 2 pid %d epoch 0\n", (int)getpid());
    assert_memory_equal(said, expected, strlen(expected));
    /* Another file stands there now. */
    place[strlen(place) + 1] = '\0';
    place[strlen(place)] = '7';
    setenv(STEP_PLACE_VARIABLE, place, 1);
    assert_int_equal(step_writer_open(&writer), STEPS_OUT_OF_REACH);
    step_writer_write(&writer, "step");
    unsetenv(STEP_PLACE_VARIABLE);
    assert_int_equal(step_writer_open(&writer), STEPS_NOT_WANTED);
    assert_int_equal(fstat(other, &status), 0);
    assert_int_equal(status.st_size, 0);
    close(other);
    step_lines_close(&lines);
    assert_null(getenv(STEP_VARIABLE));
}

/* Files of processes that were killed are removed, and others are not. */
static void test_what_was_left_is_swept(void **state)
{
    struct step_lines lines, others;
    char left[STEP_PATH_MAX];
    pid_t pid;

    (void)state;
    assert_int_equal(step_lines_open(&others, NULL), 0);
    if (!others.file.named) {
        step_lines_close(&others);
        skip();
    }
    pid = fork();
    if (pid == 0) {
        if (step_lines_open(&lines, NULL) == 0)
            _exit(0);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    snprintf(left, sizeof left, "/dev/shm/flyball-steps-%d-", (int)pid);
    assert_int_equal(access(others.file.place.path, F_OK), 0);
    step_lines_close(&lines);
    step_lines_close(&others);
    assert_int_equal(access(lines.file.place.path, F_OK), -1);
    snprintf(left, sizeof left, "ls /dev/shm/flyball-steps-%d-* >/dev/null 2>&1", (int)pid);
    assert_int_not_equal(system(left), 0); /* NOLINT(cert-env33-c) ; a pattern of our own */
}

/* Memory and time are bounded, whatever is written. */
static void test_flood(void **state)
{
    static char text[1 << 20];
    struct step_lines lines;
    enum step_event event;

    (void)state;
    for (int by_line = 0; by_line < 2; by_line++) {
        memset(text, by_line ? '\n' : 'x', sizeof text);
        assert_int_equal(step_lines_open(&lines, NULL), 0);
        for (int i = 0; i < 64 && !lines.flooded; i++) {
            assert_int_equal(write(lines.file.program_end, text, sizeof text), sizeof text);
            while (step_lines_next(&lines, &event))
                ;
        }
        assert_true(lines.flooded);
        assert_int_equal(step_lines_end(&lines), 0);
        say(&lines, "step\n");
        assert_false(step_lines_next(&lines, &event));
        assert_int_equal(step_lines_end(&lines), 0);
        assert_true(step_lines_wait_s(&lines, 10) < 0.1);
        assert_int_equal(write(lines.file.program_end, text, sizeof text), sizeof text);
        step_lines_close(&lines);
    }
}

/* A reader that was stopped finds much at once, and that is no flood. */
static void test_a_reader_that_was_stopped(void **state)
{
    static char text[1 << 20];
    struct step_lines lines;
    enum step_event event;
    uint64_t steps = 0;

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t i = 63; i < sizeof text; i += 64)
        text[i] = '\n';
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    lines.budgeted = mono_after_s(lines.budgeted, -60);
    for (int i = 0; i < 24; i++)
        assert_int_equal(write(lines.file.program_end, text, sizeof text), sizeof text);
    while (step_lines_next(&lines, &event))
        steps++;
    assert_false(lines.flooded);
    assert_int_equal(steps, 24 * sizeof text / 64);
    step_lines_close(&lines);
}

/* Under a limit on the size of files a program would be killed by a file that only grows. */
static void test_limit_on_the_size_of_files(void **state)
{
    struct rlimit before, limit;
    struct step_lines lines;

    (void)state;
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 1000; i++) {
        say(&lines, "step of more than a few bytes\n");
        assert_int_equal(take_all(&lines), i + 1);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    step_lines_close(&lines);
}

/* Shells write to descriptors of one digit only, however many files are open. */
static void test_a_low_descriptor(void **state)
{
    int others[20];
    struct step_file first, second;

    (void)state;
    step_file_keep_low();
    for (size_t i = 0; i < COUNT(others); i++)
        others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(step_file_open(&first, NULL), 0);
        assert_in_range(first.program_end, 3, 9);
        assert_int_equal(fcntl(first.program_end, F_GETFD), 0);
        assert_int_equal(step_file_open(&second, NULL), 0);
        assert_int_not_equal(second.program_end, first.program_end);
        assert_int_equal(write(first.program_end, "\n", 1), 1);
        step_file_close(&second);
        step_file_passed(&first);
        step_file_close(&first);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        close(others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_low_descriptor),
        cmocka_unit_test(test_senders),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_whose_steps_count),
        cmocka_unit_test(test_a_lower_rank_that_is_late),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_what_was_left_is_swept),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_a_reader_that_was_stopped),
        cmocka_unit_test(test_limit_on_the_size_of_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
