/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a made-up program: every type of option, and every way to get it wrong. */
#include "cli_support.h"

static const char *const colors_of_light[] = {"red", "green", "blue", NULL};

static const struct cli_option options[] = {
    {.name = "text",
     .letter = 't',
     .type = CLI_TEXT,
     .placeholder = "TEXT",
     .key = "demo.text",
     .help = "A text."},
    {.name = "light",
     .alias = "lamp",
     .type = CLI_CHOICE,
     .placeholder = "COLOUR",
     .choices = colors_of_light,
     .default_text = "green",
     .key = "demo.light",
     .help = "A choice."},
    {.name = "mix",
     .type = CLI_LIST,
     .placeholder = "LIST",
     .choices = colors_of_light,
     .default_text = "red,blue",
     .help = "A list."},
    {.name = "plug",
     .type = CLI_LIST,
     .placeholder = "LIST",
     .choices = colors_of_light,
     .paths = true,
     .help = "A list of choices and paths."},
    {.name = "words", .type = CLI_LIST, .placeholder = "LIST", .help = "A free list."},
    {.name = "count",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = -5,
     .maximum = 20,
     .default_text = "3",
     .help = "A number."},
    {.name = "weight",
     .type = CLI_REAL,
     .placeholder = "W",
     .maximum = 1,
     .default_text = "0.5",
     .key = "weight",
     .help = "A weight."},
    {.name = "limit",
     .type = CLI_REAL,
     .placeholder = "L",
     .minimum = 1,
     .maximum = INFINITY,
     .above_minimum = true,
     .infinite = true,
     .default_text = "2",
     .help = "A limit."},
    {.name = "wet", .letter = 'w', .type = CLI_FLAG, .help = "A flag."},
};

/* Prints what the getters say, for the cases to compare with. */
static int demo_run(const struct cli_call *call, struct fly_error *out_error)
{
    const struct cli_list *mix = cli_list(call, "mix");
    char text[1024];

    snprintf(text, sizeof text,
             "text=%s(%s) light=%d(%s) mix=%zu:%s/%d words=%zu count=%lld weight=%g limit=%g "
             "wet=%d given=%d operands=%zu:%s format=%d",
             cli_text(call, "text") != NULL ? cli_text(call, "text") : "NULL", cli_origin(call, "text"),
             cli_choice(call, "light"), cli_origin(call, "light"), mix->count, mix->words[mix->count - 1],
             mix->choices[mix->count - 1], cli_list(call, "words")->count,
             (long long)cli_integer(call, "count"), cli_real(call, "weight"), cli_real(call, "limit"),
             cli_flag(call, "wet"), cli_given(call, "light"), cli_operand_count(call),
             cli_operand(call, 0) != NULL ? cli_operand(call, 0) : "NULL", (int)cli_format(call));
    cli_note(call, "a note");
    return cli_emit_text(call, text, out_error);
}

static int refuse_run(const struct cli_call *call, struct fly_error *out_error)
{
    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no %s", "operand");
    if (strcmp(cli_operand(call, 0), "value") == 0)
        return cli_value_error(call, "text", "x", "a better text", out_error);
    return FLY_EDATA; /* without a text */
}

/* Says what it would run, and ends as that would. */
static int wrap_run(const struct cli_call *call, struct fly_error *out_error)
{
    char text[1024];
    size_t length = 0;

    (void)out_error;
    for (size_t i = 0; i < cli_operand_count(call); i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "[%s]", cli_operand(call, i));
    cli_warn(call, "text=%s wet=%d program=%s", cli_text(call, "text"), cli_flag(call, "wet"), text);
    cli_exit_with(call, 7);
    return 0;
}

static const struct cli_command demo = {.words = "demo run",
                                        .summary = "demo",
                                        .options = options,
                                        .option_count = sizeof options / sizeof options[0],
                                        .operands = "[OPERAND...]",
                                        .operand_maximum = 2,
                                        .run = demo_run};
static const struct cli_command refuse = {.words = "refuse",
                                          .summary = "refuse",
                                          .options = options,
                                          .option_count = 1,
                                          .operand_maximum = 1,
                                          .run = refuse_run};
static const struct cli_command wrap = {.words = "wrap",
                                        .summary = "wrap",
                                        .options = options,
                                        .option_count = sizeof options / sizeof options[0],
                                        .operands = "-- PROGRAM [ARGUMENT...]",
                                        .runs_program = true,
                                        .exit_status = "That of the program.",
                                        .run = wrap_run};
/* Takes an operand, and a program behind it where it is given one. */
static int around_run(const struct cli_call *call, struct fly_error *out_error)
{
    (void)out_error;
    cli_warn(call, "wet=%d operands=%zu:%s program=%zu:%s", cli_flag(call, "wet"), cli_operand_count(call),
             cli_operand(call, 0), cli_program_count(call), cli_program_word(call, 0));
    cli_exit_with(call, 7);
    return 0;
}

static const struct cli_command around = {.words = "around",
                                          .summary = "around",
                                          .options = options,
                                          .option_count = sizeof options / sizeof options[0],
                                          .operands = "OPERAND [-- PROGRAM [ARGUMENT...]]",
                                          .operand_maximum = 1,
                                          .runs_program = true,
                                          .run = around_run};
static const struct cli_command *const commands[] = {&demo, &refuse, &wrap, &around, NULL};
static const struct cli_group groups[] = {{"demo", "demonstrations"}, {NULL, NULL}};
static const struct cli_variable variables[] = {{"FLYBALL_DISABLE", "Off."}, {NULL, NULL}};
static const struct cli_program program = {.commands = commands, .groups = groups, .variables = variables};

static const struct cli_world world = {.program = &program};

struct line_case {
    const char *line;
    int status;
    const char *piece; /* of stdout where the status is 0, of stderr otherwise */
};

static void check_cases(const struct cli_world *in, const struct line_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cli_run run = cli_run_line(in, cases[i].line);

        if (run.status != cases[i].status)
            fail_msg("'%s': expected status %d, got %d: %s", cases[i].line, cases[i].status, run.status,
                     run.err);
        assert_contains(cases[i].line, run.status == 0 ? run.out : run.err, cases[i].piece);
        cli_run_free(&run);
    }
}
#define CHECK(in, cases) check_cases(in, cases, sizeof(cases) / sizeof((cases)[0]))

static void test_values(void **state)
{
    static const struct line_case cases[] = {
        {"demo run", 0,
         "text=NULL(unset) light=1(default) mix=2:blue/2 words=0 count=3 weight=0.5 limit=2 wet=0 given=0 "
         "operands=0:NULL format=0"},
        {"demo run --text=a=b", 0, "text=a=b(--text)"},
        {"demo run --text -x", 0, "text=-x("},
        {"demo run -t a=b", 0, "text=a=b(-t)"},
        {"demo run -ta=b", 0, "text=a=b(-t)"},
        {"demo run -t -x", 0, "text=-x(-t)"},
        {"demo run -w", 0, "wet=1"},
        {"demo run --wet=yes", 0, "wet=1"},
        {"demo run --wet=no", 0, "wet=0"},
        {"demo run --no-wet", 0, "wet=0"},
        {"demo run --wet --no-wet", 64, "option '--wet' is given twice"},
        {"demo run --no-wet=yes", 64, "unknown option '--no-wet'"},
        {"demo run --no-light", 64, "unknown option '--no-light'"},
        {"demo run --text=--x", 0, "text=--x("},
        {"demo run --lamp blue", 0, "light=2(--lamp)"},
        {"demo run --light red", 0, "light=0(--light)"},
        {"demo run --mix green,red", 0, "mix=2:red/0"},
        {"demo run --plug red,./a,b.so,/c/d", 0, "text=NULL"},
        {"demo run --words a,b,c", 0, "words=3"},
        {"demo run --count -5", 0, "count=-5"},
        {"demo run --count=20", 0, "count=20"},
        {"demo run --weight 1e-1", 0, "weight=0.1"},
        {"demo run --weight 0", 0, "weight=0 "},
        {"demo run --limit inf", 0, "limit=inf"},
        {"demo run --limit 1.0001", 0, "limit=1.0001"},
        {"demo run --wet", 0, "wet=1"},
        {"demo run --wet=no", 0, "wet=0"},
        {"demo run a b", 0, "operands=2:a"},
        {"demo run a --wet b", 0, "wet=1 given=0 operands=2:a"},
        {"demo run -- --wet", 0, "operands=1:--wet"},
        {"demo run -", 0, "operands=1:-"},
        {"--format json demo run", 0, "format=1"},
        {"--quiet demo run --format=csv", 0, "format=2"},
    };

    (void)state;
    CHECK(&world, cases);
}

static void test_refusals(void **state)
{
    static const struct line_case cases[] = {
        {"demo run --txet a", 64, "unknown option '--txet' of 'flyball demo run'; did you mean '--text'?"},
        {"demo run --lapm=a", 64, "unknown option '--lapm' of 'flyball demo run'; did you mean '--lamp'?"},
        {"demo run --lig red", 64, "unknown option '--lig'"},
        {"demo run --zzzzzzzz", 64,
         "unknown option '--zzzzzzzz' of 'flyball demo run'; see 'flyball help demo run'"},
        {"demo run -x", 64, "unknown option '-x' of 'flyball demo run'"},
        {"demo run -wx", 64, "unknown option '-wx' of 'flyball demo run'; see"},
        {"demo run -t", 64, "option '-t' needs a value, TEXT"},
        {"demo run -t --wet", 64, "option '-t' needs a value"},
        {"demo run --text a -t b", 64, "option '--text' is given twice"},
        {"-w demo run", 64, "unknown option '-w' of 'flyball'"},
        {"--wet demo run", 64, "unknown option '--wet' of 'flyball'"},
        {"demo run --text a --text a", 64, "option '--text' is given twice"},
        {"demo run --light red --lamp red", 64, "option '--light' is given twice"},
        {"demo run --text", 64, "option '--text' needs a value, TEXT"},
        {"demo run --text --wet", 64, "option '--text' needs a value"},
        {"demo run --text=", 64, "bad value '' of '--text': expected a text"},
        {"demo run --light gren", 64,
         "bad value 'gren' of '--light': expected one of red, green, blue (did you mean 'green'?); see "
         "'flyball help demo run'"},
        {"demo run --mix red,bleu", 64,
         "expected one or more of red, green, blue, separated by commas, each once "
         "(did you mean 'blue'?)"},
        {"demo run --mix red,red", 64, "each once"},
        {"demo run --mix red,", 64, "bad value 'red,'"},
        {"demo run --mix ./a.so", 64, "bad value './a.so' of '--mix'"},
        {"demo run --plug ./a.so,rde", 64,
         "bad value './a.so,rde' of '--plug': expected one or more of red, green, blue, or paths of shared "
         "objects such as ./mine.so, separated by commas, each once (did you mean 'red'?)"},
        {"demo run --plug .so", 64, "bad value '.so'"},
        {"demo run --plug a.sox", 64, "bad value 'a.sox'"},
        {"demo run --plug ./a.so,./a.so", 64, "each once"},
        {"demo run --words a,,b", 64, "expected words separated by commas, each once"},
        {"demo run --count 21", 64, "expected a whole number from -5 to 20"},
        {"demo run --count 1.5", 64, "expected a whole number"},
        {"demo run --count --5", 64, "needs a value"},
        {"demo run --count 99999999999999999999", 64, "expected a whole number"},
        {"demo run --weight 1.01", 64, "bad value '1.01' of '--weight': expected a number from 0 to 1"},
        {"demo run --weight nan", 64, "expected a number from 0 to 1"},
        {"demo run --weight inf", 64, "expected a number from 0 to 1"},
        {"demo run --limit 1", 64, "expected a number above 1, or 'inf'"},
        {"demo run --wet=perhaps", 64, "expected yes or no"},
        {"demo run a b c", 64, "unexpected operand 'c' of 'flyball demo run'"},
        {"demo rnu", 64, "unknown command 'demo rnu'; did you mean 'demo run'?"},
        {"dmeo run", 64, "did you mean 'demo run'?"},
        {"xyzzy", 64, "unknown command 'xyzzy'; 'flyball help' lists all"},
        {"refuse", 64, "flyball: no operand; see 'flyball help refuse'"},
        {"refuse value --text a", 64,
         "bad value 'x' of '--text': expected a better text; see 'flyball help refuse'"},
        {"refuse other", 65, "flyball: input data does not have the documented form"},
        {"demo", 64, "'flyball demo' needs a command"},
        {"", 64, "'flyball' needs a command"},
    };

    (void)state;
    CHECK(&world, cases);
}

/* Behind the first operand nothing is ours, and the status is the program's. */
static void test_program(void **state)
{
    static const struct line_case cases[] = {
        {"wrap -- a", 7, "text=(null) wet=0 program=[a]"},
        {"wrap a -w --text b", 7, "text=(null) wet=0 program=[a][-w][--text][b]"},
        {"wrap -w -t b a -h --help", 7, "text=b wet=1 program=[a][-h][--help]"},
        {"wrap --text b a -h", 7, "text=b wet=0 program=[a][-h]"},
        {"wrap --text=b a -h", 7, "text=b wet=0 program=[a][-h]"},
        {"wrap -tb a -h", 7, "text=b wet=0 program=[a][-h]"},
        {"wrap -w -- -x -- b", 7, "text=(null) wet=1 program=[-x][--][b]"},
        {"--quiet wrap a --quiet", 7, "program=[a][--quiet]"},
        {"wrap -x a", 64, "unknown option '-x' of 'flyball wrap'"},
        {"wrap -t", 64, "needs a value"},
        {"wrap -w -h a", 0, "That of the program."},
        {"wrap --help", 0, "flyball wrap [OPTION...] -- PROGRAM [ARGUMENT...]"},
        {"-h wrap a", 0, "flyball wrap - wrap"},
        {"around a", 7, "wet=0 operands=1:a program=0:(null)"},
        {"around -w a -- b -x --help", 7, "wet=1 operands=1:a program=3:b"},
        {"around a -w -- -x", 7, "wet=1 operands=1:a program=1:-x"},
        {"around -- b -- c", 7, "operands=0:(null) program=3:b"},
        {"around a --help -- b", 0, "flyball around [OPTION...] OPERAND"},
        {"around a b", 64, "unexpected operand 'b' of 'flyball around'"},
        {"around a --", 64, "no program behind '--' of 'flyball around'"},
    };
    static const char *const broken[] = {"FLYBALL_WEIGHT=2", NULL};
    static const char *const disabled[] = {"FLYBALL_WEIGHT=2", "FLYBALL_DISABLE=1", NULL};
    static const struct line_case broken_cases[] = {{"wrap a", 78, "FLYBALL_WEIGHT"},
                                                    {"around a -- b", 78, "FLYBALL_WEIGHT"}};
    static const struct line_case disabled_cases[] = {
        {"wrap a", 7, "program=[a]"},
        {"around a -- b", 7, "program=1:b"},
        {"around a", 78, "FLYBALL_WEIGHT"},
        {"demo run", 78, "FLYBALL_WEIGHT"},
    };
    struct cli_world in = world;

    (void)state;
    CHECK(&world, cases);
    in.environment = broken;
    CHECK(&in, broken_cases);
    in.environment = disabled;
    CHECK(&in, disabled_cases);
}

/* A program may have more words than a command has operands. */
static void test_long_program(void **state)
{
    enum { WORDS = 5000 };
    static const char *arguments[WORDS + 1];
    struct line_subject subject;
    struct command_line line;

    (void)state;
    arguments[0] = "wrap";
    for (size_t i = 1; i <= WORDS; i++)
        arguments[i] = "word";
    assert_int_equal(line_find_subject(&program, arguments, WORDS + 1, &subject, NULL), 0);
    assert_int_equal(line_parse(&subject, arguments, WORDS + 1, &line, NULL), 0);
    assert_int_equal(line.operand_count, WORDS);
    assert_ptr_equal(line.operands, arguments + 1);
}

static void test_variables(void **state)
{
    static const char *const good[] = {"FLYBALL_DEMO_LIGHT=red", "FLYBALL_WEIGHT=", "FLYBALL_DISABLE=1",
                                       "HOME=/", NULL};
    static const char *const bad[] = {"FLYBALL_WEIGHT=2", NULL};
    static const char *const unknown[] = {"FLYBALL_WIEGHT=1", "FLYBALL_QQQQQQQQQQ=1", NULL};
    static const struct line_case good_cases[] = {
        {"demo run", 0, "light=0(FLYBALL_DEMO_LIGHT)"},
        {"demo run --light blue", 0, "light=2(--light)"},
    };
    static const struct line_case bad_cases[] = {
        {"demo run", 78,
         "bad value '2' of variable 'FLYBALL_WEIGHT': expected a number from 0 to 1; correct or unset it"},
        {"demo run --help", 0, "Usage:"},
    };
    struct cli_world in = world;
    struct cli_run run;

    (void)state;
    in.environment = good;
    CHECK(&in, good_cases);
    in.environment = bad;
    CHECK(&in, bad_cases);
    in.environment = unknown;
    run = cli_run_line(&in, "demo run --quiet");
    assert_int_equal(run.status, 0);
    assert_string_equal(run.err,
                        "flyball: warning: unknown variable 'FLYBALL_WIEGHT' has no effect; did you mean "
                        "'FLYBALL_WEIGHT'?\n"
                        "flyball: warning: unknown variable 'FLYBALL_QQQQQQQQQQ' has no effect\n");
    cli_run_free(&run);
}

static void test_help(void **state)
{
    static const struct line_case cases[] = {
        {"demo run --help", 0, "flyball demo run - demo"},
        {"demo run --zzz -h", 0, "--light COLOUR, --lamp"},
        {"demo run -h", 0, "  -t, --text TEXT "},
        {"demo run -h", 0, "  -w, --wet "},
        {"--help demo run", 0, "A number above 1, or 'inf'. Default: 2."},
        {"demo --help", 0, "flyball demo - demonstrations"},
        {"--help", 0, "Exit status:"},
        {"demo run -- --help", 0, "operands=1:--help"},
    };

    (void)state;
    CHECK(&world, cases);
}

static void test_notes_and_control_characters(void **state)
{
    struct cli_run run = cli_run_line(&world, "demo run");

    (void)state;
    assert_string_equal(run.err, "flyball: note: a note\n");
    cli_run_free(&run);
    run = cli_run_line(&world, "demo run --quiet");
    assert_string_equal(run.err, "");
    cli_run_free(&run);
    run = cli_run_line(&world, "demo run --weight \033[31m");
    assert_contains("escape", run.err, "'?[31m'");
    cli_run_free(&run);
}

static void test_color(void **state)
{
    static const struct {
        const char *line;
        bool terminal;
        bool no_color;
        bool expected;
    } cases[] = {
        {"demo run --help", true, false, true},
        {"demo run --help", true, true, false},
        {"demo run --help", false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_world in = world;
        struct cli_run run;

        in.console.out_terminal = cases[i].terminal;
        in.console.no_color = cases[i].no_color;
        run = cli_run_line(&in, cases[i].line);
        assert_int_equal(strchr(run.out, '\033') != NULL, cases[i].expected);
        cli_run_free(&run);
    }
}

static void test_progress(void **state)
{
    struct progress progress;
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct mono_time now;

    (void)state;
    progress_begin(&progress, stream, "tries", 200);
    progress_add(&progress, 50);
    now = progress.start;
    now.ns += INT64_C(900000000);
    progress_tick_at(&progress, now);
    fflush(stream);
    assert_int_equal(size, 0);
    now.ns += INT64_C(600000000);
    progress_tick_at(&progress, now);
    assert_string_equal(text, "\r50 of 200 tries (25%), 2 s\033[K");
    now.ns += INT64_C(50000000); /* too soon after the last drawing */
    progress_tick_at(&progress, now);
    assert_string_equal(text, "\r50 of 200 tries (25%), 2 s\033[K");
    progress_end(&progress);
    assert_string_equal(text, "\r50 of 200 tries (25%), 2 s\033[K\r\033[K");
    fclose(stream);
    free(text);
    progress_begin(&progress, NULL, "tries", 0);
    progress_tick(&progress);
    progress_end(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_long_program),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_notes_and_control_characters),
        cmocka_unit_test(test_color),
        cmocka_unit_test(test_progress),
    };

    return cmocka_run_group_tests_name("cli options", tests, NULL, NULL);
}
