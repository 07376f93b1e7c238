/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files and variables: who wins, who is locked out, and what is refused where. */
#include "cli_support.h"

#include "cli/frame/config_file.h"

static const struct cli_option options[] = {
    {.name = "eta",
     .type = CLI_REAL,
     .placeholder = "W",
     .maximum = 1,
     .default_text = "0.5",
     .key = "eta",
     .help = "Weight."},
    {.name = "traces", .type = CLI_TEXT, .placeholder = "DIR", .key = "sim.traces", .help = "Traces."},
    {.name = "fast", .type = CLI_FLAG, .key = "sim.fast", .help = "Flag."},
    {.name = "library",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .key = "library",
     .sensitive = true,
     .help = "Code."},
};

static int show_run(const struct cli_call *call, struct fly_error *out_error)
{
    char text[512];

    const char *library = cli_text(call, "library");

    snprintf(text, sizeof text, "eta=%g(%s) traces=%s(%s) fast=%d library=%s", cli_real(call, "eta"),
             cli_origin(call, "eta"), cli_text(call, "traces") != NULL ? cli_text(call, "traces") : "NULL",
             cli_origin(call, "traces"), cli_flag(call, "fast"), library != NULL ? library : "NULL");
    return cli_emit_text(call, text, out_error);
}

static const struct cli_command show = {.words = "show",
                                        .summary = "show",
                                        .options = options,
                                        .option_count = sizeof options / sizeof options[0],
                                        .run = show_run};
static const struct cli_command *const commands[] = {&show, NULL};
static const struct cli_group groups[] = {{NULL, NULL}};
static const struct cli_variable variables[] = {{NULL, NULL}};
static const struct cli_program program = {.commands = commands, .groups = groups, .variables = variables};

struct fixture {
    char directory[64];
};

static int set_up(void **state)
{
    static struct fixture fixture;

    snprintf(fixture.directory, sizeof fixture.directory, "/tmp/flyball-config-XXXXXX");
    if (mkdtemp(fixture.directory) == NULL || chdir(fixture.directory) < 0)
        return -1;
    *state = &fixture;
    return 0;
}

static const char *const file_names[] = {"system.ini", "user.ini", "local.ini"};

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 3; i++) {
        if (unlink(file_names[i]) < 0)
            rmdir(file_names[i]);
    }
    return chdir("/") < 0 || rmdir(fixture->directory) < 0 ? -1 : 0;
}

struct config_case {
    const char *files[3]; /* system, user, local; NULL: none */
    const char *environment[3];
    const char *line;
    int status;
    const char *out; /* a piece, or NULL */
    const char *err; /* a piece; "" for nothing at all, NULL for whatever */
};

static void check_case(const struct config_case *test)
{
    struct cli_world world = {.program = &program,
                              .environment = test->environment,
                              .paths = {file_names[0], file_names[1], file_names[2]}};
    struct cli_run run;

    for (size_t i = 0; i < 3; i++) {
        unlink(file_names[i]);
        if (test->files[i] != NULL)
            write_file(file_names[i], test->files[i]);
    }
    run = cli_run_line(&world, test->line);
    if (run.status != test->status)
        fail_msg("'%s' with '%s': expected status %d, got %d: %s", test->line,
                 test->files[2] != NULL ? test->files[2] : "", test->status, run.status, run.err);
    if (test->out != NULL)
        assert_contains(test->line, run.out, test->out);
    if (test->err != NULL && test->err[0] != '\0')
        assert_contains(test->line, run.err, test->err);
    if (test->err != NULL && test->err[0] == '\0')
        assert_string_equal(run.err, "");
    cli_run_free(&run);
}
#define CHECK(cases)                                                \
    for (size_t i = 0; i < sizeof(cases) / sizeof((cases)[0]); i++) \
    check_case(&(cases)[i])

static void test_precedence(void **state)
{
    static const struct config_case cases[] = {
        {{NULL}, {NULL}, "show", 0, "eta=0.5(default) traces=NULL(unset)", ""},
        {{"eta=0.1"}, {NULL}, "show", 0, "eta=0.1(system.ini:1)", ""},
        {{"eta=0.1", "\neta=0.2"}, {NULL}, "show", 0, "eta=0.2(user.ini:2)", ""},
        {{"eta=0.1", "eta=0.2", "\n\neta=0.3"}, {NULL}, "show", 0, "eta=0.3(local.ini:3)", ""},
        {{NULL, "eta=0.2", "eta=0.3"}, {"FLYBALL_ETA=0.4"}, "show", 0, "eta=0.4(FLYBALL_ETA)", ""},
        {{"eta=0.1", "eta=0.2", "eta=0.3"}, {"FLYBALL_ETA=0.4"}, "show --eta 0.6", 0, "eta=0.6(--eta)", ""},
        {{NULL, NULL, "eta=0.3"}, {"FLYBALL_ETA="}, "show", 0, "eta=0.3(local.ini:1)", ""},
        {{"eta=0.1", NULL, "[sim]\ntraces=/t"},
         {NULL},
         "show",
         0,
         "eta=0.1(system.ini:1) traces=/t(local.ini:2)",
         ""},
    };

    (void)state;
    CHECK(cases);
}

static void test_form(void **state)
{
    static const struct config_case cases[] = {
        {{NULL, NULL, "# c\n; c\n\n  eta : 0.25 ; c\n[sim]\n\ttraces = a b \n"},
         {NULL},
         "show",
         0,
         "eta=0.25(local.ini:4) traces=a b(local.ini:6)",
         ""},
        {{NULL, NULL, "[sim]\nfast=yes\n[flyball]\neta=0.75\n"},
         {NULL},
         "show",
         0,
         "eta=0.75(local.ini:4) traces=NULL(unset) fast=1",
         ""},
        {{NULL, NULL,
          "\xEF\xBB\xBF"
          "eta = 0.75\r\n[sim]\r\ntraces = x\r\n"},
         {NULL},
         "show",
         0,
         "eta=0.75(local.ini:1) traces=x(",
         ""},
        {{NULL, NULL, "sim.traces = x\n"}, {NULL}, "show", 0, "traces=x(local.ini:1)", ""},
        {{NULL, NULL, ""}, {NULL}, "show", 0, "eta=0.5", ""},
    };

    (void)state;
    CHECK(cases);
}

static void test_errors(void **state)
{
    static const struct config_case cases[] = {
        {{NULL, NULL, "\neat = 1"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:2: unknown key 'eat'; did you mean 'eta'?"},
        {{NULL, NULL, "[sim]\ntracse = 1"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:2: unknown key 'sim.tracse'; did you mean 'sim.traces'?"},
        {{NULL, NULL, "[smi]\ntraces = 1"},
         {NULL},
         "show",
         78,
         "",
         "unknown key 'smi.traces'; did you mean 'sim.traces'?"},
        {{NULL, NULL, "zzzzzzzz = 1"},
         {NULL},
         "show",
         78,
         "",
         "unknown key 'zzzzzzzz'; 'flyball config show' lists all"},
        {{NULL, "eta = 2"},
         {NULL},
         "show",
         78,
         "",
         "user.ini:1: bad value '2' of 'eta': expected a number from 0 to 1; correct that line"},
        {{NULL, "eta = 2"}, {NULL}, "show --eta 1", 78, "", "user.ini:1: bad value"},
        {{NULL, NULL, "eta = 1\neta = 1"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:2: key 'eta' stands in line 1 already"},
        {{NULL, NULL, "eta = 1\n[flyball]\neta = 1"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:3: key 'eta' stands in line 1 already"},
        {{NULL, NULL, "eta\n"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:1: the line is neither '[section]' nor 'key = value'"},
        {{NULL, NULL, "eta = 1\n\n[sim\n"}, {NULL}, "show", 78, "", "local.ini:3: the line is neither"},
        {{NULL, NULL, "x\neta = 5\n"}, {NULL}, "show", 78, "", "local.ini:1: the line is neither"},
        {{NULL, NULL, "eta = 5\nx\n"}, {NULL}, "show", 78, "", "local.ini:1: bad value '5'"},
        {{NULL, NULL, "eta =\n"}, {NULL}, "show", 78, "", "local.ini:1: bad value ''"},
        {{NULL, NULL, "[sim]\ntraces =\n"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:2: bad value '' of 'sim.traces': expected a text"},
        {{NULL, NULL, "[lock]\neta = yes"},
         {NULL},
         "show",
         78,
         "",
         "local.ini:2: section '[lock]' counts in the system's file only"},
    };

    (void)state;
    CHECK(cases);
}

static void test_locks(void **state)
{
    static const char lock[] = "eta = 0.1\n[lock]\neta = yes\nsim.traces = no\n";
    static const struct config_case cases[] = {
        {{lock}, {NULL}, "show", 0, "eta=0.1(system.ini:1)", ""},
        {{lock}, {NULL}, "show --traces x", 0, "traces=x(--traces)", ""},
        {{lock},
         {NULL},
         "show --eta 0.2",
         77,
         "",
         "option '--eta' is refused: 'system.ini:3' locks the key 'eta'"},
        {{lock},
         {"FLYBALL_ETA=0.3"},
         "show",
         0,
         "eta=0.1(system.ini:1)",
         "flyball: warning: 'FLYBALL_ETA' of 'eta' is ignored: 'system.ini:3' locks the key\n"},
        {{lock, "eta = 9"}, {NULL}, "show", 0, "eta=0.1(system.ini:1)", "'user.ini:1' of 'eta' is ignored"},
        {{lock, NULL, "eta = 0.4"},
         {NULL},
         "show",
         0,
         "eta=0.1(system.ini:1)",
         "'local.ini:1' of 'eta' is ignored"},
        {{"[lock]\neta = yes\n[flyball]\neta = 0.2\n"}, {NULL}, "show", 0, "eta=0.2(system.ini:4)", ""},
        {{"[lock]\neta = yes\n"}, {"FLYBALL_ETA=1"}, "show", 0, "eta=0.5(default)", "is ignored"},
        {{"[lock]\neat = yes\n"},
         {NULL},
         "show",
         78,
         "",
         "system.ini:2: unknown key 'eat'; did you mean 'eta'?"},
        {{"[lock]\neta = maybe\n"},
         {NULL},
         "show",
         78,
         "",
         "system.ini:2: bad value 'maybe' of '[lock] eta': expected yes or no"},
    };

    (void)state;
    CHECK(cases);
}

/* Files that inih itself would cut in silence, and files that are none. */
static void test_file_limits(void **state)
{
    struct config_case test = {.line = "show", .status = 78};
    char line[512] = "[sim]\ntraces = ";
    char *big = malloc(CONFIG_FILE_MAX + 2);

    (void)state;
    memset(line + strlen(line), 'a', 150);
    test.files[2] = line;
    test.status = 0;
    check_case(&test);
    memset(line + strlen(line), 'a', 150);
    test.status = 78;
    test.err = "local.ini:2: the line is longer than 198 bytes";
    check_case(&test);

    memset(line, 'k', 60);
    strcpy(line + 60, " = 1");
    test.err = "local.ini:1: ";
    check_case(&test);

    memset(big, '\n', CONFIG_FILE_MAX + 1);
    big[CONFIG_FILE_MAX + 1] = '\0';
    test.files[2] = big;
    test.err = "reading configuration 'local.ini' failed: it is larger than 1 MiB";
    check_case(&test);
    free(big);

    unlink("local.ini");
    assert_int_equal(mkdir("local.ini", 0700), 0);
    test.files[2] = NULL;
    test.err = "reading configuration 'local.ini' failed: it is a directory";
    check_case(&test);
    rmdir("local.ini");
}

/* Root may read everything, so there is nothing to see then. */
static void test_unreadable_file(void **state)
{
    struct cli_world world = {.program = &program, .paths = {.local = "local.ini"}};
    struct cli_run run;

    (void)state;
    if (geteuid() == 0)
        skip();
    write_file("local.ini", "eta = 1\n");
    chmod("local.ini", 0);
    run = cli_run_line(&world, "show");
    assert_int_equal(run.status, 78);
    assert_contains("unreadable", run.err, "reading configuration 'local.ini' failed: Permission denied");
    cli_run_free(&run);
}

/* Of keys that name code or what is written the working directory's file is not asked. */
static void test_sensitive_keys(void **state)
{
    static const struct config_case cases[] = {
        {{"library=/s"}, {NULL}, "show", 0, "library=/s", ""},
        {{NULL, "library=/u"}, {NULL}, "show", 0, "library=/u", ""},
        {{NULL}, {"FLYBALL_LIBRARY=/v"}, "show", 0, "library=/v", ""},
        {{NULL}, {NULL}, "show --library /o", 0, "library=/o", ""},
        {{NULL, NULL, "library=./evil.so\neta=0.3"},
         {NULL},
         "show",
         0,
         "eta=0.3(local.ini:2) traces=NULL(unset) fast=0 library=NULL",
         "flyball: warning: 'local.ini:1' is ignored: 'library' does not count in the working directory's "
         "file"},
        {{NULL, "library=/u", "library=./evil.so"},
         {NULL},
         "show",
         0,
         "library=/u",
         "'local.ini:1' is ignored"},
        {{NULL, NULL, "library=a\nlibrary=b"},
         {NULL},
         "show",
         78,
         "",
         "key 'library' stands in line 1 already"},
    };

    (void)state;
    CHECK(cases);
}

/* In the directory of one's own file that file is not a stranger's. */
static void test_local_is_own(void **state)
{
    struct cli_world world = {.program = &program, .paths = {.user = "user.ini", .local = "./user.ini"}};
    struct cli_run run;

    (void)state;
    write_file("user.ini", "library = /u\n");
    run = cli_run_line(&world, "show");
    assert_contains("own", run.out, "library=/u");
    assert_string_equal(run.err, "");
    cli_run_free(&run);
}

static void test_trust(void **state)
{
    static const struct {
        struct config_trust trust;
        const char *refusal; /* a piece, or NULL */
    } cases[] = {
        {{.user = 1000, .owner = 1000, .mode = 0644}, NULL},
        {{.user = 1000, .owner = 0, .mode = 0644}, NULL},
        {{.user = 0, .owner = 0, .mode = 0600}, NULL},
        {{.user = 0, .owner = 1000, .mode = 0644}, "belongs to somebody else"},
        {{.user = 1000, .owner = 1001, .mode = 0644}, "belongs to somebody else"},
        {{.user = 1000, .owner = 1000, .mode = 0646}, "anybody may write"},
        {{.user = 1000, .owner = 0, .mode = 0666, .own_group = true}, "anybody may write"},
        {{.user = 1000, .owner = 1000, .mode = 0664}, "a group"},
        {{.user = 1000, .owner = 1000, .mode = 0664, .own_group = true}, NULL},
        {{.user = 1000, .owner = 65534, .mode = 0644, .unmapped = true}, "belongs to somebody else"},
        {{.user = 1000, .owner = 65534, .mode = 0644, .unmapped = true, .on_read_only = true}, NULL},
        {{.user = 1000, .owner = 65534, .mode = 0646, .unmapped = true, .on_read_only = true}, "anybody"},
        {{.user = 1000, .owner = 1001, .mode = 0644, .on_read_only = true}, "belongs to somebody else"},
        {{.user = 0, .owner = 0, .mode = 0640, .strange_link = true}, "it is a link"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *refusal = config_trust_refusal(&cases[i].trust);

        if (refusal == NULL || cases[i].refusal == NULL)
            assert_ptr_equal(refusal, cases[i].refusal);
        else
            assert_contains("refusal", refusal, cases[i].refusal);
    }
}

/* Each file, whichever it is, and once; what it says wrong does not matter then. */
static void test_others_files(void **state)
{
    struct cli_world world = {.program = &program, .paths = {"system.ini", "user.ini", "local.ini"}};
    struct cli_run run;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char warning[128];

        write_file(file_names[i], "eta = nonsense\n");
        assert_int_equal(chmod(file_names[i], 0666), 0);
        run = cli_run_line(&world, "show");
        assert_int_equal(run.status, 0);
        assert_contains("default", run.out, "eta=0.5(default)");
        snprintf(warning, sizeof warning,
                 "flyball: warning: '%s' is not read: anybody may write it; mend that, or remove the file\n",
                 file_names[i]);
        assert_string_equal(run.err, warning);
        cli_run_free(&run);
        unlink(file_names[i]);
    }
}

static int refuse_entries(void *data, const struct config_entry *entry, struct fly_error *out_error)
{
    (void)data;
    (void)entry;
    (void)out_error;
    return 0;
}

static void test_nul_byte(void **state)
{
    struct fly_error error;

    (void)state;
    assert_int_equal(config_text_parse("f", "a = 1\nb = \0c\n", 13, refuse_entries, NULL, &error),
                     FLY_ECONFIG);
    assert_string_equal(error.text, "f:2: the line holds a NUL byte; remove it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_precedence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_form, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_locks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unreadable_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sensitive_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_local_is_own, set_up, tear_down),
        cmocka_unit_test(test_trust),
        cmocka_unit_test_setup_teardown(test_others_files, set_up, tear_down),
        cmocka_unit_test(test_nul_byte),
    };

    return cmocka_run_group_tests_name("cli config", tests, NULL, NULL);
}
