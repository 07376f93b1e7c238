/* SPDX-License-Identifier: Apache-2.0 */
/* The load by CUDA's driver against a stand-in of it, and its kernel's text by itself. */
#include "test.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/nvidia/cuda_driver.h"
#include "device/nvidia/cuda_load.h"

static char standin_path[4096];
static char log_path[] = "/tmp/flyball-cuda-XXXXXX";

static struct cuda_load_options options_with(const char *habit)
{
    if (habit != NULL)
        setenv("STANDIN_CUDA", habit, 1);
    else
        unsetenv("STANDIN_CUDA");
    truncate(log_path, 0);
    return (struct cuda_load_options){
        .library_path = standin_path, .pci = "00000000:07:00.0", .duration_max_s = 20};
}

static void wait_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* The calls, one a line with their codes. */
static const char *calls(void)
{
    static char text[1 << 16];
    FILE *file = fopen(log_path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static void test_load_runs_until_it_is_stopped(void **state)
{
    static const char begin[] =
        "cuInit 0\ncuDeviceGetByPCIBusId 0\ncuDeviceGetAttribute 0\n"
        "cuDevicePrimaryCtxSetFlags 0\ncuDevicePrimaryCtxRetain 0\ncuCtxSetCurrent 0\ncuModuleLoadData 0\n"
        "cuModuleGetFunction 0\ncuMemAlloc 0\ncuLaunchKernel 0\ncuCtxSynchronize 0\n";
    static const char end[] = "cuLaunchKernel 0\ncuCtxSynchronize 0\n"
                              "cuMemFree 0\ncuModuleUnload 0\ncuDevicePrimaryCtxRelease 0\n";
    struct cuda_load_options options = options_with(NULL);
    struct fly_error error = {0};
    struct cuda_load load;
    struct mono_time start = mono_now();
    size_t length, launches = 0;
    uint64_t steps = 0;
    const char *text;

    (void)state;
    assert_int_equal(cuda_load_start(&options, &load, &error), 0);
    /* At 2^14 steps a millisecond, on a machine that may be slow. */
    for (int i = 0; i < 6000 && steps < 100 << 14; i++) {
        wait_ms(10);
        assert_true(cuda_load_steps(&load, &steps));
    }
    assert_true(steps >= 100 << 14);
    assert_int_equal(kill(load.child, 0), 0);
    assert_int_equal(cuda_load_stop(&load, &error), 0);
    assert_false(cuda_load_steps(&load, &steps));
    text = calls();
    length = strlen(text);
    assert_true(strncmp(text, begin, strlen(begin)) == 0);
    assert_true(length > strlen(end));
    assert_string_equal(text + length - strlen(end), end);
    for (const char *at = text; (at = strstr(at, "cuLaunchKernel")) != NULL; at++)
        launches++;
    /* Some 20 ms each. */
    assert_true(launches >= 2 && (double)launches <= 3.0 + mono_elapsed_s(start, mono_now()) / 0.005);
}

static void test_drivers_that_take_one_target(void **state)
{
    static const struct {
        const char *habit;
        const char *says;
    } cases[] = {
        {"old", "cuCtxSetCurrent 0\ncuModuleLoadData 0\n"},
        {"new", "cuCtxSetCurrent 0\ncuModuleLoadData 218\ncuModuleLoadData 0\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cuda_load_options options = options_with(cases[i].habit);
        struct fly_error error = {0};
        struct cuda_load load;

        assert_int_equal(cuda_load_start(&options, &load, &error), 0);
        assert_int_equal(cuda_load_stop(&load, &error), 0);
        check_contains(calls(), cases[i].says);
    }
}

static void test_no_load_is_an_error(void **state)
{
    static const struct {
        const char *habit;
        int code;
        const char *says;
    } cases[] = {
        {"no_gpu", FLY_EUNSUPPORTED, "CUDA knows no GPU at '00000000:07:00.0' (code 101)"},
        {"no_compiler", FLY_EUNSUPPORTED, "does not compile the load's kernel (code 218)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cuda_load_options options = options_with(cases[i].habit);
        struct fly_error error = {0};
        struct cuda_load load;

        assert_int_equal(cuda_load_start(&options, &load, &error), cases[i].code);
        assert_int_equal(error.code, cases[i].code);
        check_contains(error.text, cases[i].says);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
}

static void test_no_library(void **state)
{
    struct cuda_load_options options = options_with(NULL);
    struct fly_error error = {0};
    struct cuda_load load;

    (void)state;
    options.library_path = "/nonexistent/libcuda.so.1";
    assert_int_equal(cuda_load_start(&options, &load, &error), FLY_EUNSUPPORTED);
    check_contains(error.text, "no CUDA driver: ");
}

static void test_load_that_ends_early_is_reported(void **state)
{
    static const struct {
        const char *habit;
        const char *says;
    } cases[] = {
        {"launch_fails", "'cuLaunchKernel' of the CUDA driver failed with 719"},
        {"crash", "ended by signal 6"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cuda_load_options options = options_with(cases[i].habit);
        struct fly_error error = {0};
        struct cuda_load load;

        assert_int_equal(cuda_load_start(&options, &load, &error), 0);
        wait_ms(300);
        assert_int_equal(cuda_load_stop(&load, &error), FLY_EREAD);
        check_contains(error.text, cases[i].says);
    }
}

static void test_a_driver_that_hangs_is_killed(void **state)
{
    struct cuda_load_options options = options_with("hang");
    struct fly_error error = {0};
    struct cuda_load load;

    (void)state;
    assert_int_equal(cuda_load_start(&options, &load, &error), 0);
    wait_ms(200);
    assert_int_equal(cuda_load_stop(&load, &error), FLY_EREAD);
    check_contains(error.text, "signal 9");
    options = options_with("hang_at_init");
    options.duration_max_s = 0.5;
    assert_int_equal(cuda_load_start(&options, &load, &error), FLY_EREAD);
    check_contains(error.text, "crashed or did not answer (signal 14)");
}

/* The load must not outlive its parent, however that ends. */
static void test_load_ends_with_its_parent(void **state)
{
    int report[2];
    pid_t parent, grandchild = 0;

    (void)state;
    assert_int_equal(pipe(report), 0);
    parent = fork();
    if (parent == 0) {
        struct cuda_load_options options = options_with(NULL);
        struct fly_error error;
        struct cuda_load load;

        if (cuda_load_start(&options, &load, &error) == 0)
            (void)!write(report[1], &load.child, sizeof load.child);
        raise(SIGKILL);
    }
    assert_int_equal(read(report[0], &grandchild, sizeof grandchild), sizeof grandchild);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    for (int waited = 0; kill(grandchild, 0) == 0 && waited < 100; waited++) {
        char path[64], stat[256] = "";
        FILE *file;

        /* Without an init that reaps, it stays a zombie. */
        snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
        file = fopen(path, "r");
        if (file != NULL) {
            (void)!fread(stat, 1, sizeof stat - 1, file);
            fclose(file);
        }
        if (strstr(stat, ") Z ") != NULL)
            break;
        wait_ms(20);
        assert_true(waited < 99);
    }
    close(report[0]);
    close(report[1]);
}

/* How many registers of a kind the text declares: the 17 of ".reg .f32 %f<17>;". */
static unsigned declared(const char *text, const char *kind)
{
    const char *at = strstr(text, kind);

    assert_non_null(at);
    return (unsigned)strtoul(at + strlen(kind), NULL, 10);
}

/* Every register "%f12" stands within its declaration. */
static void check_registers(const char *text)
{
    const struct {
        const char *prefix;
        unsigned count;
    } kinds[] = {
        {"%p", declared(text, ".reg .pred %p<")},
        {"%rd", declared(text, ".reg .b64 %rd<")},
        {"%r", declared(text, ".reg .b32 %r<")},
        {"%f", declared(text, ".reg .f32 %f<")},
    };

    for (const char *at = text; (at = strchr(at, '%')) != NULL; at++) {
        for (size_t i = 0; i < COUNT(kinds); i++) {
            const char *digits = at + strlen(kinds[i].prefix);

            if (strncmp(at, kinds[i].prefix, strlen(kinds[i].prefix)) == 0 && isdigit((unsigned char)*digits))
                assert_true(strtoul(digits, NULL, 10) < kinds[i].count);
        }
    }
}

static void test_kernel_text(void **state)
{
    char text[CUDA_KERNEL_TEXT_MAX];
    size_t variants = 0;

    (void)state;
    while (cuda_kernel_text(variants, text)) {
        assert_true(strlen(text) < sizeof text - 1);
        assert_int_equal(strncmp(text, ".version ", 9), 0);
        check_contains(text, "\n.target sm_");
        check_contains(text, "\n.address_size 64\n");
        check_contains(text, ".visible .entry flyball_load(");
        check_contains(text, "\n$again:\n");
        check_contains(text, "bra $again;\n");
        check_contains(text, "    ret;\n}\n");
        check_registers(text);
        /* One directive, label or statement a line, and every statement with its end. */
        for (char *line = strstr(text, "{\n") + 2; *line != '}'; line = strchr(line, '\n') + 1)
            assert_true(*line == '\n' || *line == '$' || strchr(line, '\n')[-1] == ';');
        variants++;
    }
    assert_true(variants >= 2);
}

/* The orbits stay where they are and do not settle: the same arithmetic, here. */
static void test_orbits_keep_moving(void **state)
{
    (void)state;
    for (int thread = 0; thread < 512; thread += 37) {
        float x = fmaf((float)thread, 0x1p-10F, 0.03125F), before = 2.0F;
        int same = 0;

        for (int i = 0; i < 100000; i++) {
            float y = x * -1.9F;

            before = x;
            x = fmaf(y, x, 1.0F);
            assert_true(x >= -1.0F && x <= 1.0F);
            same += x == before;
        }
        assert_true(same < 10);
    }
}

/* NVIDIA's own assembler, where it is installed, takes every variant for every GPU it knows. */
static void test_assembler_takes_the_kernel(void **state)
{
    static const char *const targets[] = {"sm_75", "sm_80", "sm_90"};
    char text[CUDA_KERNEL_TEXT_MAX], command[256];
    FILE *file;

    (void)state;
    if (system("ptxas --version >/dev/null 2>&1") != 0) {
        print_message("# there is no ptxas\n");
        skip();
    }
    for (size_t variant = 0; cuda_kernel_text(variant, text); variant++) {
        file = fopen(log_path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        for (size_t i = 0; i < COUNT(targets); i++) {
            snprintf(command, sizeof command, "ptxas --gpu-name %s %s -o /dev/null 2>%s.out", targets[i],
                     log_path, log_path);
            if (system(command) != 0)
                print_error("%s: variant %zu\n", command, variant);
            assert_int_equal(system(command), 0);
        }
    }
}

static int make_log(void **state)
{
    const char *build = getenv("FLYBALL_TEST_BUILD");
    int descriptor = mkstemp(log_path);

    (void)state;
    if (descriptor < 0 || build == NULL)
        return -1;
    snprintf(standin_path, sizeof standin_path, "%s/cuda/cuda_standin.so", build);
    close(descriptor);
    return setenv("STANDIN_CUDA_LOG", log_path, 1);
}

static int remove_log(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s.out", log_path);
    unlink(path);
    return unlink(log_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_runs_until_it_is_stopped),
        cmocka_unit_test(test_drivers_that_take_one_target),
        cmocka_unit_test(test_no_load_is_an_error),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_load_that_ends_early_is_reported),
        cmocka_unit_test(test_a_driver_that_hangs_is_killed),
        cmocka_unit_test(test_load_ends_with_its_parent),
        cmocka_unit_test(test_kernel_text),
        cmocka_unit_test(test_orbits_keep_moving),
        cmocka_unit_test(test_assembler_takes_the_kernel),
    };

    return cmocka_run_group_tests(tests, make_log, remove_log);
}
