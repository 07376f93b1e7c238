/* SPDX-License-Identifier: Apache-2.0 */
/* What stands at the path of the emulated machine already: it is replaced, or named in an error. */
#include "emulator_support.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LARGE = 200000, OPENERS = 8, RACES = 25, NOBODY = 65534 };

/* Leaves a file that begins with the text. */
static void leave(const char *text, off_t bytes)
{
    FILE *file = fopen(state_path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(truncate(state_path, bytes), 0);
}

/* The library's answer, as a program meets it; `out_gpus` if there are any. */
static int initialise(unsigned *out_gpus)
{
    int code = nvml.nvmlInit_v2();

    if (code == NVML_SUCCESS) {
        assert_int_equal(nvml.nvmlDeviceGetCount_v2(out_gpus), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    }
    return code;
}

/* A file of another version that nobody uses is replaced, whatever its size. */
static void test_unused(void **state)
{
    static const struct {
        const char *text;
        off_t bytes;
    } cases[] = {{"flyball-emulator-state/1", LARGE},
                 {"flyball-emulator-state/1", 24},
                 {"flyball-emulator-state/999", 1 << 26}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned gpus = 0;
        struct emulator *emulator;
        struct fly_error error = {.code = 0};

        leave(cases[i].text, cases[i].bytes);
        assert_int_equal(emulator_open(NULL, &emulator, &error), FLY_ENOTFOUND);
        check_contains(error.text, "is of another version of the emulator; start one");
        assert_int_equal(initialise(&gpus), NVML_SUCCESS);
        assert_int_equal(gpus, emulator_default_settings.gpus);
        assert_string_equal(nvml.flyball_emulator_complaint(), "");
        assert_int_equal(emulator_remove(NULL, NULL), 0);
    }
}

/* A state of an earlier boot, else whole. */
static void test_earlier_boot(void **state)
{
    struct emulator *emulator = start("gpus=3", NULL);
    unsigned gpus = 0;

    (void)state;
    emulator->state->boot[0] ^= 1;
    emulator_close(emulator);
    assert_int_equal(initialise(&gpus), NVML_SUCCESS);
    assert_int_equal(gpus, emulator_default_settings.gpus);
    assert_int_equal(emulator_remove(NULL, NULL), 0);
}

static void check_refused(int code, const char *message)
{
    struct emulator *emulator = NULL;
    struct fly_error error = {.code = 0};
    unsigned gpus;

    assert_int_equal(emulator_open_or_create(NULL, &emulator, &error), code);
    check_contains(error.text, message);
    check_contains(error.text, state_path);
    check_contains(error.text, "FLYBALL_EMULATOR_STATE");
    assert_int_equal(initialise(&gpus), NVML_DRIVER_NOT_LOADED);
    assert_string_equal(nvml.flyball_emulator_complaint(), error.text);
    assert_int_equal(access(state_path, F_OK), 0);
}

/* A file that a program has mapped, or whose run goes on, stays. */
static void test_in_use(void **state)
{
    char message[64];
    void *memory;
    int fd;

    (void)state;
    leave("flyball-emulator-state/1", LARGE);
    fd = open(state_path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    memory = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    snprintf(message, sizeof message, "process %d uses it; end that process", (int)getpid());
    check_refused(FLY_EBUSY, message);
    assert_int_equal(munmap(memory, LARGE), 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    check_refused(FLY_EBUSY, "a process uses it; end that");
    close(fd);
    assert_int_equal(initialise(&(unsigned){0}), NVML_SUCCESS);
    assert_int_equal(emulator_remove(NULL, NULL), 0);
}

static void test_damaged(void **state)
{
    static const struct {
        const char *text;
        off_t bytes;
        const char *message;
    } cases[] = {{"", 0, "is empty; remove it with 'flyball-emulator stop'"},
                 {"letter to nobody", 16, "is no file of the emulator"},
                 {"", LARGE, "is no file of the emulator"}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        leave(cases[i].text, cases[i].bytes);
        check_refused(FLY_EDATA, cases[i].message);
        assert_int_equal(emulator_remove(NULL, NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        struct emulator *emulator = start("gpus=1", NULL);
        off_t bytes = (off_t)emulator->state->bytes;

        emulator_close(emulator);
        assert_int_equal(truncate(state_path, i == 0 ? bytes - 1 : 4096), 0);
        check_refused(FLY_EDATA, "is damaged; remove it with 'flyball-emulator stop'");
        assert_int_equal(emulator_remove(NULL, NULL), 0);
    }
}

static void test_foreign_owner(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    leave("flyball-emulator-state/1", LARGE);
    assert_int_equal(chmod(state_path, 0600), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    check_refused(FLY_EPERM, "belongs to user 0, who does not share it");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(state_path, NOBODY, NOBODY), 0);
    check_refused(FLY_EPERM, "is of another version and belongs to user 65534");
    assert_int_equal(emulator_remove(NULL, NULL), 0);
}

/* Opens the machine when the gate opens, and tells which one it is; never returns. */
static void be_opener(int gate, int answers)
{
    struct emulator *emulator = NULL;
    struct fly_error error = {.code = 0};
    int64_t identity = 0;
    char nothing;

    if (read(gate, &nothing, 1) == 0 && emulator_open_or_create(NULL, &emulator, &error) == 0)
        identity = emulator->state->identity;
    else
        print_error("%s\n", error.text);
    _exit(write(answers, &identity, sizeof identity) == sizeof identity ? 0 : 1);
}

/* Programs that start at the same time over a leftover share one machine. */
static void test_programs_that_start_at_once(void **state)
{
    (void)state;
    for (int race = 0; race < RACES; race++) {
        int gate[2], answers[2];
        int64_t first = 0;

        leave("flyball-emulator-state/1", LARGE);
        assert_int_equal(pipe(gate), 0);
        assert_int_equal(pipe(answers), 0);
        for (int i = 0; i < OPENERS; i++) {
            if (fork() == 0) {
                close(gate[1]);
                be_opener(gate[0], answers[1]);
            }
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < OPENERS; i++) {
            int64_t identity = 0;

            assert_int_equal(read(answers[0], &identity, sizeof identity), sizeof identity);
            first = i == 0 ? identity : first;
            assert_true(identity != 0 && identity == first);
        }
        while (wait(NULL) > 0)
            ;
        close(answers[0]);
        close(answers[1]);
        assert_int_equal(emulator_remove(NULL, NULL), 0);
    }
}

static int tear_down(void **state)
{
    (void)state;
    unlink(script_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unused),        cmocka_unit_test(test_earlier_boot),
        cmocka_unit_test(test_in_use),        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_foreign_owner), cmocka_unit_test(test_programs_that_start_at_once),
    };

    return emulator_support_begin() != 0 || cmocka_run_group_tests(tests, NULL, tear_down) != 0;
}
