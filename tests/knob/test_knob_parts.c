/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's entries and files, what is repaired from them, directories, locks, and who is MPS. */
#include "knob/repair.h"
#include "knob_support.h"

#include "base/file/file_system.h"
#include "knob/gpu_lock.h"
#include "knob/journal.h"
#include "knob/runtime_directory.h"
#include "knob/turn.h"
#include "knob/turnable.h"

static struct knob_machine machine;

/* A turn of a number by the driver, or by a way of the site. */
#define TURN(quantity, previous, earlier, ours, way)                                         \
    {                                                                                        \
        (quantity), {.number = (previous)}, {.number = (earlier)}, {.number = (ours)}, (way) \
    }

#define HEAD "flyball-journal 1\ngpu GPU-1\nboot b\nby 7 8 a program\ndate 9\n"

#define HEAD_3 "flyball-journal 3\ngpu GPU-1\nboot b\nby 7 8 a program\ndate 9\n"
#define HEAD_2 "flyball-journal 2\ngpu GPU-1\nboot b\nby 7 8 a program\ndate 9\n"

static void test_text(void **state)
{
    static const char *const wrong[] = {
        "",
        "\n",
        "flyball-journal 1\n",
        HEAD,
        HEAD "end",
        HEAD "end\n\n",
        HEAD "turn power_limit_mw 1 2\nend\n",
        HEAD "turn power_limit_mw 1 2 3 4\nend\n",
        HEAD "turn power_limit_mw 1 2 3 driver\nend\n",
        HEAD "turn power_limit_mw 1 2 3 daemon x\nend\n",
        HEAD "turn power_limit_mw 1 2 3 \nend\n",
        HEAD "daemon \nturn power_limit_mw 1 2 3 daemon\nend\n",
        HEAD "driver /x\nturn power_limit_mw 1 2 3\nend\n",
        HEAD "daemon /x\ndaemon /y\nend\n",
        HEAD "turn power_limit_mw 1 2 3 commands\nend\n",
        HEAD "turn power_limit_mw 1 2 -3\nend\n",
        HEAD "turn power_limit_mw 1 2 3.5\nend\n",
        HEAD "turn power_limit_mw 1 2 4294967296\nend\n",
        HEAD "turn energy_uj 1 2 3\nend\n",
        HEAD "turn\nend\n",
        HEAD "turn power_limit_mw 1 2 3\nturn power_limit_mw 1 2 3\nend\n",
        HEAD "turn clock_ceiling_mhz 0 2 3\nturn power_limit_mw 1 2 3\nturn clock_ceiling_mhz 0 2 3\nend\n",
        HEAD "turn clock_gpu_mhz 0 2 3\nend\n",
        "flyball-journal 0\ngpu GPU-1\nboot b\nby 7 8 p\ndate 9\nend\n",
        "flyball-journal 1 1\ngpu GPU-1\nboot b\nby 7 8 p\ndate 9\nend\n",
        HEAD "turn workload_profiles 0 0 2\nend\n", /* none of the first version */
        HEAD_2 "turn workload_profiles 0 0 0x2\nend\n",
        HEAD_2 "turn workload_profiles 0 0 02\nend\n",
        HEAD_2 "turn workload_profiles 0 0 G\nend\n",
        HEAD_2 "turn workload_profiles 0 0\nend\n",
        HEAD_2 "turn memory_clock_ceiling_mhz 0 0 1215\nend\n", /* none of the second version */
        HEAD_3 "turn memory_clock_floor_mhz 0 0 1215\nend\n",
        HEAD_3 "turn clock_floor_mhz 0 0 900\nend\n",
        HEAD_2
        "turn workload_profiles 0 0 10000000000000000000000000000000000000000000000000000000000000000\nend\n",
        "flyball-journal 1\ngpu \nboot b\nby 7 8 p\ndate 9\nend\n",
        "flyball-journal 1\ngpu G\nboot b\nby 7 8\ndate 9\nend\n",
        "flyball-journal 1\ngpu G\nboot b\nby x 8 p\ndate 9\nend\n",
        "flyball-journal 1\ngpu G\nboot b\nby 7 8 p\ndate\nend\n",
    };
    struct journal_entry entry, again;
    char text[JOURNAL_TEXT_MAX];

    (void)state;
    journal_begin("GPU-1234", "flyball power", &entry);
    assert_int_equal(entry.pid, getpid());
    assert_true(journal_maker_lives(&entry));
    assert_true(journal_is_of_this_boot(&entry));
    entry.turns[entry.turn_count++] = (struct turn)TURN(QUANTITY_PERSISTENCE, 0, 0, 1, WAY_DRIVER);
    entry.turns[entry.turn_count++] =
        (struct turn)TURN(QUANTITY_POWER_LIMIT, 400000, 300000, 250000, WAY_DAEMON);
    snprintf(entry.daemon, SITE_PLACE_MAX, "/run/a daemon");
    entry.turns[entry.turn_count++] = (struct turn)TURN(QUANTITY_CLOCK_CEILING, 0, 0, 1200, WAY_DRIVER);
    journal_format(&entry, text);
    check_contains(text, "\nturn clock_ceiling_mhz 0 0 1200\n");
    assert_int_equal(journal_parse(text, &again, NULL), 0);
    assert_string_equal(again.uuid, entry.uuid);
    assert_string_equal(again.boot, entry.boot);
    assert_string_equal(again.program, entry.program);
    assert_int_equal(again.start_ticks, entry.start_ticks);
    assert_int_equal(again.turn_count, 3);
    assert_memory_equal(again.turns, entry.turns, sizeof entry.turns);
    assert_string_equal(again.daemon, entry.daemon);
    /* Cut short anywhere it is none. */
    for (size_t length = strlen(text); length-- > 0;) {
        text[length] = '\0';
        assert_int_equal(journal_parse(text, &again, NULL), FLY_EDATA);
    }
    assert_int_equal(journal_parse(HEAD_3 "turn memory_clock_ceiling_mhz 0 0 1215\nend\n", &again, NULL), 0);
    assert_int_equal(again.turns[0].quantity, QUANTITY_MEMORY_CLOCK_CEILING);
    assert_int_equal(again.turns[0].ours.number, 1215);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (journal_parse(wrong[i], &again, NULL) != FLY_EDATA)
            fail_msg("taken for an entry: '%s'", wrong[i]);
    }
}

static void test_stands(void **state)
{
    static const struct {
        struct turn turn;
        int64_t value;
        bool stands;
    } cases[] = {
        {TURN(QUANTITY_POWER_LIMIT, 400000, 250000, 250000, WAY_DRIVER), 250000, true},
        {TURN(QUANTITY_POWER_LIMIT, 400000, 250000, 250000, WAY_DRIVER), 250001, false},
        {TURN(QUANTITY_POWER_LIMIT, 400000, 250000, 250000, WAY_DRIVER), 275000, false},
        {TURN(QUANTITY_POWER_LIMIT, 400000, 300000, 250500, WAY_DRIVER), 300000,
         true}, /* an intent: not made yet, */
        {TURN(QUANTITY_POWER_LIMIT, 400000, 300000, 250500, WAY_DRIVER), 250000,
         true}, /* or made and rounded */
        {TURN(QUANTITY_POWER_LIMIT, 400000, 300000, 250500, WAY_DRIVER), 251500, false},
        {TURN(QUANTITY_PERSISTENCE, 0, 0, 1, WAY_DRIVER), 1, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct setting value = setting_number(cases[i].value);

        assert_int_equal(turn_stands(&cases[i].turn, &value), cases[i].stands);
    }
}

/* An entry as a session would have left it that died with its guard. */
static struct journal_entry left_behind(int64_t ours_mw)
{
    struct journal_entry entry;

    journal_begin(machine.devices[0]->info.uuid, "dead", &entry);
    entry.pid = 999999999;
    entry.turns[entry.turn_count++] =
        (struct turn)TURN(QUANTITY_POWER_LIMIT, 400000, ours_mw, ours_mw, WAY_DRIVER);
    return entry;
}

static void repair_one(enum repair_end end, const char *text)
{
    struct repair repair = {.end = REPAIR_END_COUNT};
    struct fly_error error = {.text = ""};

    if (knob_repair(&machine.options, &machine.list, false, &repair, 1, &error) != 1)
        fail_msg("not one entry: %s", error.text);
    assert_int_equal(repair.end, end);
    check_contains(repair.text, text);
}

static void test_repairs(void **state)
{
    struct journal_entry entry;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    entry = left_behind(250000);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 250.0, NULL), 0);
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    repair_one(REPAIR_RESTORED, "is 400 W again");
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_int_equal(knob_machine_entries(&machine), 0);

    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    repair_one(REPAIR_UNNEEDED, "stood at 400 W already");

    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 300.0, NULL), 0);
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    repair_one(REPAIR_FOREIGN, "changed by another program to 300 W");
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);

    /* Of another boot: nothing is restored, however it stands. */
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 250.0, NULL), 0);
    snprintf(entry.boot, sizeof entry.boot, "another-boot");
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    repair_one(REPAIR_UNNEEDED, "restart of the machine");
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    assert_int_equal(knob_machine_entries(&machine), 0);

    snprintf(entry.uuid, sizeof entry.uuid, "GPU-not-here");
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    repair_one(REPAIR_ABSENT, "GPU-not-here");
    assert_int_equal(knob_machine_entries(&machine), 1);
    knob_machine_stop(&machine);
}

/* The driver will not have it: the entry stays for the next time. */
static void test_repair_fails(void **state)
{
    struct journal_entry entry;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100",
                       "call nvmlDeviceSetPowerManagementLimit return UNKNOWN\n");
    entry = left_behind(250000);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 250.0, NULL), 0);
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    repair_one(REPAIR_FAILED, "setting the power limit to 400 W of GPU 0 failed");
    assert_int_equal(knob_machine_entries(&machine), 1);
    emulator_set_faults(machine.emulator, &(struct fault_list){0});
    repair_one(REPAIR_RESTORED, "is 400 W again");
    knob_machine_stop(&machine);
}

static void put_file(const char *suffix, const char *text)
{
    char path[JOURNAL_PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s%s", machine.locks, machine.devices[0]->info.uuid, suffix);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_corrupt(void **state)
{
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 250.0, NULL), 0);
    put_file(".turned", "flyball-journal 1\ngpu ");
    repair_one(REPAIR_CORRUPT, ".turned' is corrupt");
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    assert_int_equal(knob_repair(&machine.options, &machine.list, false, NULL, 0, NULL), 0);
    assert_int_equal(knob_machine_entries(&machine), 1); /* moved aside */
    put_file(".turned", HEAD "end\n");
    knob = knob_machine_open(&machine);
    check_contains(knob_report(knob, 0)->repaired, "is corrupt");
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    knob_machine_stop(&machine);
}

/* In a directory for all, another user's word could have root set what he likes; nor is a link followed. */
static void test_not_believed(void **state)
{
    char path[JOURNAL_PATH_MAX], text[JOURNAL_TEXT_MAX];
    struct journal_entry entry;

    (void)state;
    if (geteuid() != 0)
        skip();
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    entry = left_behind(400000);
    entry.turns[0].previous.number = 100000;
    journal_format(&entry, text);
    put_file(".turned", text);
    snprintf(path, sizeof path, "%s/%s.turned", machine.locks, entry.uuid);
    assert_int_equal(chown(path, 65534, 65534), 0);
    repair_one(REPAIR_UNNEEDED, "nothing that user 65534 says");
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_int_equal(symlink(machine.state, path), 0);
    repair_one(REPAIR_FAILED, "cannot be read");
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    assert_int_equal(emulator_gpu_count(machine.emulator), 1);
    knob_machine_stop(&machine);
}

static void test_nowhere_to_write(void **state)
{
    char moved[KNOB_PATH_MAX + 16];
    struct fly_error error;
    struct knob *knob;
    int64_t limits[] = {250000};

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    snprintf(moved, sizeof moved, "%s/moved", machine.directory);
    assert_int_equal(rename(machine.locks, moved), 0); /* nowhere to write */
    assert_int_equal(knob_set(knob, limits, &error), FLY_EWRITE);
    check_contains(error.text, "journal");
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    knob_close(knob, NULL);
    knob_machine_stop(&machine);
}

static void test_directory(void **state)
{
    static const struct {
        long type;
        const char *name;
    } types[] = {{0x6969, "NFS"}, {0x0BD00BD0, "Lustre"}, {(long)0xFF534D42, "CIFS"}, {0x01021994, NULL},
                 {0xEF53, NULL},  {0x58465342, NULL},     {(long)0x9123683E, NULL}};
    char path[RUNTIME_PATH_MAX], wide[KNOB_PATH_MAX + 16];
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        const char *name = file_system_network(types[i].type);

        assert_true((name == NULL) == (types[i].name == NULL));
        if (name != NULL)
            assert_string_equal(name, types[i].name);
    }
    knob_machine_start(&machine, "gpus=1", NULL);
    assert_int_equal(runtime_directory_find(machine.locks, path, &error), 0);
    assert_string_equal(path, machine.locks);
    assert_int_equal(runtime_directory_find("relative", path, &error), FLY_EUSAGE);
    snprintf(wide, sizeof wide, "%s/wide", machine.directory);
    assert_int_equal(runtime_directory_find(wide, path, &error), 0); /* it is made */
    assert_int_equal(chmod(wide, 0777), 0);
    assert_int_equal(runtime_directory_find(wide, path, &error),
                     FLY_EPERM); /* others may remove locks there */
    snprintf(wide, sizeof wide, "%s/not/there", machine.directory);
    assert_int_equal(runtime_directory_find(wide, path, &error), FLY_EWRITE);
    check_contains(error.text, "FLYBALL_RUNTIME_DIR");
    setenv(KNOB_RUNTIME_VARIABLE, machine.locks, 1);
    assert_int_equal(runtime_directory_find(NULL, path, &error), 0);
    assert_string_equal(path, machine.locks);
    unsetenv(KNOB_RUNTIME_VARIABLE);
    knob_machine_stop(&machine);
}

static void test_names(void **state)
{
    static const char *const names[] = {"", "../x", ".", "a/b", "a\nb"};
    int lock;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(gpu_lock_take("/tmp", names[i], "test", &lock, NULL), FLY_EUNSUPPORTED);
}

static void make_file(const char *path, const char *text, uid_t owner)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chown(path, owner, (gid_t)-1), 0);
}

static void make_process(const char *proc, int pid, const char *name, const char *status)
{
    char path[2 * KNOB_PATH_MAX], text[KNOB_PATH_MAX];

    snprintf(path, sizeof path, "%s/%d", proc, pid);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/%d/comm", proc, pid);
    snprintf(text, sizeof text, "%s\n", name);
    make_file(path, text, geteuid());
    snprintf(path, sizeof path, "%s/%d/status", proc, pid);
    snprintf(text, sizeof text, "Name:\t%s\n%s", name, status);
    make_file(path, text, geteuid());
}

/* What anybody can put where MPS has its pipe keeps nobody from turning. */
static void test_forged_pipe(void **state)
{
    static const struct {
        const char *make; /* a command, %s: the directory's path */
        bool refused;
    } rows[] = {
        {"mkdir %1$s && touch %1$s/control", true},
        {"mkdir %1$s && touch %1$s/control && chown 4242 %1$s/control", false},
        {"mkdir %1$s && touch %1$s/control && chown 4242 %1$s", false},
        {"mkdir %1$s && touch %1$s/control && chown -R 4242 %1$s", false},
        {"mkdir -m 0700 %1$s && touch %1$s/control && chown -R 4242 %1$s", false},
        {"mkdir %1$s && mkfifo %1$s/control && chown -R 4242 %1$s", false},
        {"mkdir %1$s && ln -s /etc/passwd %1$s/control && chown -hR 4242 %1$s", false},
        {"mkdir %1$s.real && touch %1$s.real/control && ln -s %1$s.real %1$s && chown -h 4242 %1$s", false},
        {"touch %1$s && chown 4242 %1$s", false},
        {"ln -s %1$s %1$s && chown -h 4242 %1$s", false},
    };
    char command[KNOB_PATH_MAX * 6], pipe[KNOB_PATH_MAX + 8];

    (void)state;
    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct knob *knob;
        int code;

        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        snprintf(pipe, sizeof pipe, "%s/mps", machine.directory);
        snprintf(command, sizeof command, rows[i].make, pipe);
        assert_int_equal(system(command), 0);
        machine.options.mps_pipe_directory = pipe;
        knob = knob_machine_open(&machine);
        code = knob_may_turn(knob, 0, NULL);
        if (code != (rows[i].refused ? FLY_ESTATE : 0))
            fail_msg("%s: %d", rows[i].make, code);
        knob_close(knob, NULL);
        knob_machine_stop(&machine);
    }
}

/* Nor does a process that has the name of MPS, unless it is of somebody who counts. */
static void test_forged_name(void **state)
{
    enum { NAMED = 700001 };
    static const struct {
        const char *status, *holder; /* of the process with the name, and of the one on the GPU */
        bool refused;
    } rows[] = {
        {"State:\tS (sleeping)\nUid:\t0\t0\t0\t0\n", NULL, true},
        {"State:\tZ (zombie)\nUid:\t0\t0\t0\t0\n", NULL, false},
        {"State:\tS (sleeping)\nUid:\t4242\t4242\t4242\t4242\n", NULL, false},
        {"State:\tS (sleeping)\nUid:\t4242\t0\t0\t0\n", NULL, false}, /* a program with set-user-ID */
        {"", NULL, false},
        {"State:\tS (sleeping)\nUid:\t4242\t4242\t4242\t4242\n", "State:\tR\nUid:\t4243\t0\t0\t0\n", false},
        {"State:\tS (sleeping)\nUid:\t4242\t4242\t4242\t4242\n", "State:\tR\nUid:\t4242\t0\t0\t0\n", true},
    };
    const struct emulator_load load = {.wanted_w = 300.0, .utilization = 1.0};
    char proc[KNOB_PATH_MAX + 8];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct turnable_options options = {
            .readonly_path = machine.readonly, .proc_root = proc, .mps_pipe_directory = machine.readonly};
        struct fly_error error = {.code = 0};
        int slot, code;

        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        snprintf(proc, sizeof proc, "%s/proc", machine.directory);
        assert_int_equal(mkdir(proc, 0755), 0);
        make_process(proc, NAMED, "nvidia-cuda-mps", rows[i].status);
        if (rows[i].holder != NULL) {
            assert_int_equal(emulator_work_begin(machine.emulator, 0, &load, &slot, NULL), 0);
            make_process(proc, (int)getpid(), "training", rows[i].holder);
        }
        machine.list.devices[0].info.emulated = false;
        code = turnable_check(&options, machine.devices[0], &error);
        if (code != (rows[i].refused ? FLY_ESTATE : 0))
            fail_msg("%s: %d %s", rows[i].status, code, error.text);
        knob_machine_stop(&machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_stands),
        cmocka_unit_test(test_repairs),
        cmocka_unit_test(test_repair_fails),
        cmocka_unit_test(test_corrupt),
        cmocka_unit_test(test_not_believed),
        cmocka_unit_test(test_nowhere_to_write),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_forged_pipe),
        cmocka_unit_test(test_forged_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
