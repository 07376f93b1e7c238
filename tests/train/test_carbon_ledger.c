/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of energy on disk: what is written reads the same, whatever ends the run. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "own_directory.h"
#include "train/account/carbon_ledger.h"

static char directory[OWN_DIRECTORY_MAX];

static int make_directory(void **state)
{
    (void)state;
    return own_directory_make("ledger", directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return own_directory_remove(directory) ? 0 : -1;
}

static struct ledger_head some_head(int64_t start_s)
{
    return (struct ledger_head){.run = "night \"7\"",
                                .job = "vision",
                                .host = "n17.cluster",
                                .program = "flyball run",
                                .sources = {"gb:national", "prices.csv"},
                                .objective = {1.0, 0.1, 0.0},
                                .surroundings = {150.5, 1.2},
                                .max_slowdown = NAN,
                                .finish_by_s = 1764100000,
                                .steps = 123456,
                                .start_s = start_s,
                                .gpus = 4,
                                .rank = 3};
}

static void write_and_read(void **state)
{
    static const struct energy_slice slices[] = {
        {1764000123.25, 1764000300.0, 52000.1234567891, 0.0, 300.0, 40.0, false},
        {1764000300.0, 1764000600.0, NAN, NAN, NAN, 0.0, true},
        {1764000500.0, 1764000600.1, 0.0, 1e-9, 0.0, 1e9, false},
    };
    static const struct fly_power_point old[] = {{300.0, 280.0, 0.3}, {200.0, 190.0, 0.5}};
    static const struct fly_power_point new[] = {{250.0, 241.7, 1.0 / 3.0}};
    const struct ledger_head head = some_head(1764000123);
    struct ledger_content content;
    struct carbon_ledger ledger;
    struct arena arena;

    (void)state;
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), 0);
    check_contains(ledger.path, "/20251124T160203Z-n17.cluster-");
    assert_int_equal(carbon_ledger_slice(&ledger, &slices[0], NULL), 0);
    assert_int_equal(carbon_ledger_profile(&ledger, old, COUNT(old), NULL), 0);
    assert_int_equal(carbon_ledger_slice(&ledger, &slices[1], NULL), 0);
    assert_int_equal(carbon_ledger_profile(&ledger, new, COUNT(new), NULL), 0);
    assert_int_equal(carbon_ledger_slice(&ledger, &slices[2], NULL), 0);
    arena_init(&arena, 1 << 20);
    assert_int_equal(carbon_ledger_read(ledger.path, &arena, &content, NULL), 0);
    carbon_ledger_close(&ledger);
    carbon_ledger_close(&ledger);
    assert_false(content.torn);
    assert_string_equal(content.head.run, head.run);
    assert_string_equal(content.head.sources[1], "prices.csv");
    check_double(content.head.objective.per_money, 0.1);
    check_double(content.head.surroundings.pue, 1.2);
    assert_true(isnan(content.head.max_slowdown));
    assert_int_equal(content.head.steps, 123456);
    assert_int_equal(content.head.rank, 3);
    assert_int_equal(content.slice_count, COUNT(slices));
    for (size_t i = 0; i < COUNT(slices); i++) {
        check_double(content.slices[i].start_s, slices[i].start_s);
        check_double(content.slices[i].end_s, slices[i].end_s);
        check_same(content.slices[i].gpu_j, slices[i].gpu_j, 0.0);
        check_same(content.slices[i].host_j, slices[i].host_j, 0.0);
        check_same(content.slices[i].limit_w, slices[i].limit_w, 0.0);
        check_double(content.slices[i].steps, slices[i].steps);
        assert_int_equal(content.slices[i].jumped, slices[i].jumped);
    }
    assert_int_equal(content.point_count, 1);
    check_double(content.points[0].time_s, 1.0 / 3.0);
    arena_deinit(&arena);
}

static void refuse_nonsense(void **state)
{
    static const struct energy_slice slices[] = {
        {5.0, 5.0, 1.0, NAN, NAN, 0.0, false},   {6.0, 5.0, 1.0, NAN, NAN, 0.0, false},
        {NAN, 5.0, 1.0, NAN, NAN, 0.0, false},   {1.0, INFINITY, 1.0, NAN, NAN, 0.0, false},
        {1.0, 5.0, -1.0, NAN, NAN, 0.0, false},  {1.0, 5.0, 1.0, -1.0, NAN, 0.0, false},
        {1.0, 5.0, 1.0, NAN, -30.0, 0.0, false}, {1.0, 5.0, 1.0, NAN, NAN, NAN, false},
    };
    static const struct fly_power_point points[] = {
        {0.0, 1.0, 1.0}, {1.0, -1.0, 1.0}, {1.0, 1.0, NAN}, {1.0, INFINITY, 1.0}};
    struct ledger_head head = some_head(1764000123);
    struct carbon_ledger ledger;
    struct ledger_content content;
    struct arena arena;

    (void)state;
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), 0);
    for (size_t i = 0; i < COUNT(slices); i++)
        assert_int_equal(carbon_ledger_slice(&ledger, &slices[i], NULL), FLY_EUSAGE);
    for (size_t i = 0; i < COUNT(points); i++)
        assert_int_equal(carbon_ledger_profile(&ledger, &points[i], 1, NULL), FLY_EUSAGE);
    assert_int_equal(carbon_ledger_profile(&ledger, points, 0, NULL), FLY_EUSAGE);
    arena_init(&arena, 1 << 20);
    assert_int_equal(carbon_ledger_read(ledger.path, &arena, &content, NULL), 0);
    assert_int_equal(content.slice_count + content.point_count, 0);
    arena_deinit(&arena);
    carbon_ledger_close(&ledger);
    assert_int_equal(carbon_ledger_slice(&ledger, &slices[0], NULL), FLY_ESTATE);
    head.objective.per_g = NAN;
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), FLY_EUSAGE);
}

#define HEAD                                                                                           \
    "{\"flyball_carbon\":1,\"run\":\"\",\"job\":\"\",\"host\":\"h\",\"program\":\"\",\"source\":\"\"," \
    "\"price\":\"\",\"per_g\":1,\"per_money\":0,\"per_kwh\":0,\"host_w\":0,\"pue\":1,"                 \
    "\"max_slowdown\":null,\"finish_by_s\":0,\"steps\":0,\"start_s\":5,\"gpus\":1,\"rank\":0}"
#define SLICE(rest) \
    "{\"slice\":{\"start_s\":5,\"end_s\":9,\"host_j\":null,\"steps\":0,\"jumped\":false," rest "}}"

static void say_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "line 1: expected what ran"},
        {HEAD, "line 1: expected what ran"},
        {"{}\n", "line 1: member 'flyball_carbon'"},
        {"nonsense\n", "line 1: expected an object of JSON"},
        {"{\"flyball_carbon\":2}\n", "line 1: member 'flyball_carbon': expected version 1; use a newer"},
        {HEAD "\n" SLICE("\"gpu_j\":-1,\"limit_w\":null") "\n",
         "line 2: member 'slice.gpu_j': expected a number from 0, or null, found -1"},
        {HEAD "\n" SLICE("\"limit_w\":null") "\n",
         "line 2: member 'slice.gpu_j': expected a number from 0, or null, found nothing"},
        {HEAD "\n" SLICE("\"gpu_j\":null,\"limit_w\":1") "\n\n", "line 3: expected an object of JSON"},
        {HEAD "\n{\"slice\":[]}\n", "line 2: member 'slice': expected an object, found []"},
        {HEAD "\n{\"other\":[]}\n",
         "line 2: member 'profile': expected a list of points, or a slice in place of it, found nothing"},
        {HEAD "\n{\"profile\":[]}\n", "line 2: member 'profile': expected one point"},
        {HEAD "\n{\"profile\":[[1,2]]}\n",
         "line 2: member 'profile[0]': expected a list of limit_w, power_w, time_s, found [1,2]"},
        {HEAD "\n{\"profile\":[[1,2,0]]}\n",
         "line 2: member 'profile[0][2]': expected a number above 0, found 0"},
    };
    struct ledger_content content = {.slice_count = 77};
    struct fly_error error;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(
            carbon_ledger_parse("x", cases[i].text, strlen(cases[i].text), &arena, &content, &error),
            FLY_EDATA);
        check_contains(error.text, "account of energy 'x', ");
        check_contains(error.text, cases[i].says);
        assert_int_equal(content.slice_count, 77);
    }
    assert_int_equal(carbon_ledger_read("/nowhere/at/all", &arena, &content, NULL), FLY_ENOTFOUND);
    assert_int_equal(carbon_ledger_read("/tmp", &arena, &content, NULL), FLY_EREAD);
    arena_deinit(&arena);
}

/* Wherever the text is cut, the whole lines are there, and it says whether one is not. */
static void read_every_beginning(void **state)
{
    static const char text[] =
        HEAD "\n" SLICE("\"gpu_j\":1,\"limit_w\":null") "\n" SLICE("\"gpu_j\":2,\"limit_w\":3") "\n";
    struct arena arena;

    (void)state;
    for (size_t length = strlen(HEAD) + 1; length < sizeof text; length++) {
        struct ledger_content content;
        size_t lines = 0;

        for (size_t i = 0; i < length; i++)
            lines += text[i] == '\n';
        arena_init(&arena, 1 << 20);
        assert_int_equal(carbon_ledger_parse("x", text, length, &arena, &content, NULL), 0);
        assert_int_equal(content.slice_count, lines - 1);
        assert_int_equal(content.torn, text[length - 1] != '\n');
        arena_deinit(&arena);
    }
}

/* The slices that a child wrote until it was killed. */
static void survive_a_kill(void **state)
{
    const struct ledger_head head = some_head(1764000123);
    struct mono_time start = mono_now();
    struct ledger_content content;
    struct carbon_ledger ledger;
    struct stat status;
    struct arena arena;
    int waited;
    pid_t child;

    (void)state;
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), 0);
    carbon_ledger_close(&ledger);
    child = fork();
    if (child == 0) {
        int file = open(ledger.path, O_WRONLY | O_APPEND);
        struct carbon_ledger copy = ledger;

        copy.file = file;
        copy.forks++;
        for (double i = 0.0;; i += 1.0) {
            struct energy_slice slice = {1e9 + i, 1e9 + i + 1.0, i, NAN, 300.0, 1.0, false};

            if (carbon_ledger_slice(&copy, &slice, NULL) < 0)
                _exit(1);
        }
    }
    while (stat(ledger.path, &status) == 0 && status.st_size < 4000 &&
           mono_elapsed_s(start, mono_now()) < 60.0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &waited, 0), child);
    assert_true(WIFSIGNALED(waited));
    arena_init(&arena, 64 << 20);
    assert_int_equal(carbon_ledger_read(ledger.path, &arena, &content, NULL), 0);
    assert_true(content.slice_count > 20);
    for (size_t i = 0; i < content.slice_count; i++)
        check_double(content.slices[i].gpu_j, (double)i);
    arena_deinit(&arena);
}

/* What does not fit is not in the file, and what is written once there is room is. */
static void survive_a_full_disk(void **state)
{
    const struct ledger_head head = some_head(1764000123);
    const struct energy_slice slice = {1764000123.0, 1764000300.0, 52000.0, NAN, 300.0, 40.0, false};
    struct rlimit before, little;
    struct ledger_content content;
    struct carbon_ledger ledger;
    struct fly_error error;
    struct stat status;
    struct arena arena;
    int code = 0, written = 0;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), 0);
    assert_int_equal(stat(ledger.path, &status), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){(rlim_t)status.st_size + 300, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    while (code == 0 && written < 10) {
        code = carbon_ledger_slice(&ledger, &slice, &error);
        written += code == 0;
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, FLY_EWRITE);
    assert_in_range(written, 1, 3);
    check_contains(error.text, "cannot be written: ");
    assert_int_equal(carbon_ledger_slice(&ledger, &slice, NULL), 0);
    arena_init(&arena, 1 << 20);
    assert_int_equal(carbon_ledger_read(ledger.path, &arena, &content, NULL), 0);
    assert_int_equal(content.slice_count, written + 1);
    assert_false(content.torn);
    arena_deinit(&arena);
    carbon_ledger_close(&ledger);
}

static void say_where_it_cannot_be(void **state)
{
    const struct ledger_head head = some_head(1764000123);
    char file[128], inside[160];
    struct carbon_ledger ledger = {.file = -1};
    struct fly_error error;
    int made;

    (void)state;
    snprintf(file, sizeof file, "%s/plain", directory);
    snprintf(inside, sizeof inside, "%s/deeper", file);
    made = open(file, O_WRONLY | O_CREAT, 0600);
    assert_true(made >= 0);
    close(made);
    assert_int_equal(carbon_ledger_create(&ledger, inside, &head, &error), FLY_EWRITE);
    check_contains(error.text, inside);
    assert_int_equal(ledger.file, -1);
}

static void list_newest_first(void **state)
{
    static const int64_t starts[] = {1764000123, 1764000999, 999999999, 1764000123, 1764000123};
    static const char *const names[] = {"20251124T161639Z", "20251124T160203Z", "20251124T160203Z",
                                        "20251124T160203Z", "20010909T014639Z"};
    char deep[128], **paths, other[192];
    struct carbon_ledger ledger;
    struct arena arena;
    size_t count = 9;

    (void)state;
    arena_init(&arena, 1 << 20);
    snprintf(deep, sizeof deep, "%s/none", directory);
    assert_int_equal(carbon_ledger_list(deep, &arena, &paths, &count, NULL), 0);
    assert_int_equal(count, 0);
    snprintf(deep, sizeof deep, "%s/a", directory);
    for (size_t i = 0; i < COUNT(starts); i++) {
        const struct ledger_head head = some_head(starts[i]);

        assert_int_equal(carbon_ledger_create(&ledger, deep, &head, NULL), 0);
        carbon_ledger_close(&ledger);
    }
    snprintf(other, sizeof other, "%s/note.txt", deep);
    close(open(other, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(carbon_ledger_list(deep, &arena, &paths, &count, NULL), 0);
    assert_int_equal(count, COUNT(names));
    for (size_t i = 0; i < count; i++) {
        check_contains(paths[i], names[i]);
        assert_true(i == 0 || strcmp(paths[i - 1], paths[i]) > 0);
        unlink(paths[i]);
    }
    unlink(other);
    rmdir(deep);
    arena_deinit(&arena);
}

/* A child's copy writes nothing, and lets the parent's alone. */
static void stay_out_of_children(void **state)
{
    const struct energy_slice slice = {1764000123.0, 1764000300.0, 52000.0, NAN, 300.0, 40.0, false};
    const struct ledger_head head = some_head(1764000123);
    struct carbon_ledger ledger;
    struct ledger_content content;
    struct arena arena;
    int waited;
    pid_t child;

    (void)state;
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), 0);
    child = fork();
    if (child == 0) {
        int code = carbon_ledger_slice(&ledger, &slice, NULL);

        carbon_ledger_close(&ledger);
        _exit(code == FLY_ESTATE ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &waited, 0), child);
    assert_int_equal(waited, 0);
    assert_int_equal(carbon_ledger_slice(&ledger, &slice, NULL), 0);
    carbon_ledger_close(&ledger);
    arena_init(&arena, 1 << 20);
    assert_int_equal(carbon_ledger_read(ledger.path, &arena, &content, NULL), 0);
    assert_int_equal(content.slice_count, 1);
    arena_deinit(&arena);
}

static void take_any_name(void **state)
{
    struct ledger_head head = some_head(1764000123);
    struct carbon_ledger ledger;
    struct ledger_content content;
    struct arena arena;

    (void)state;
    snprintf(head.host, sizeof head.host, "../\xff%s", "n\n1");
    memset(head.run, 'x', sizeof head.run - 1);
    assert_int_equal(carbon_ledger_create(&ledger, directory, &head, NULL), 0);
    check_contains(ledger.path, "Z-..__n_1-");
    carbon_ledger_close(&ledger);
    arena_init(&arena, 1 << 20);
    assert_int_equal(carbon_ledger_read(ledger.path, &arena, &content, NULL), 0);
    assert_string_equal(content.head.host, "../?n\n1");
    assert_int_equal(strlen(content.head.run), LEDGER_TEXT_MAX - 1);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_and_read),         cmocka_unit_test(refuse_nonsense),
        cmocka_unit_test(say_what_is_wrong),      cmocka_unit_test(read_every_beginning),
        cmocka_unit_test(survive_a_kill),         cmocka_unit_test(survive_a_full_disk),
        cmocka_unit_test(say_where_it_cannot_be), cmocka_unit_test(list_newest_first),
        cmocka_unit_test(stay_out_of_children),   cmocka_unit_test(take_any_name),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
