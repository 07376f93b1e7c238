/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the start-up hook in a program's Pythons: which of them are steps, and what is said of them. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "train/program/step_lines.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_words(void **state)
{
    static const struct {
        const char *line;
        bool hook;
        enum step_event event;
    } cases[] = {
        {"rank 0 pid 4711 hook", true, STEP_BEGIN},
        {"pid 4711 hook ", true, STEP_BEGIN},
        {"pid 4711 hook step 3", true, STEP_BEGIN},
        {"pid 4711 hook epoch 3 metric 0.5", true, STEP_REPORT},
        {"pid 4711 hook saw torch", true, STEP_HOOK},
        {"rank 1 pid 4711 hook counts SGD", true, STEP_HOOK},
        {"pid 4711 hook failed ValueError: x", true, STEP_HOOK},
        {"pid 4711 hook out of memory", true, STEP_OUT_OF_MEMORY},
        {"pid 4711 hooked", false, STEP_BEGIN},
        {"hook saw torch", false, STEP_BEGIN},
        {"rank 0 hook saw torch", false, STEP_BEGIN},
        {"pid 4711 saw torch", false, STEP_BEGIN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct step_report report;
        struct step_sender sender;
        enum step_event event = step_line_event(cases[i].line, strlen(cases[i].line), &sender, &report);

        if (event != cases[i].event || sender.hook != cases[i].hook)
            fail_msg("'%s' is %d, of the hook: %d", cases[i].line, (int)event, sender.hook);
    }
}

static uint64_t counted(struct step_lines *lines)
{
    enum step_event event;

    while (step_lines_next(lines, &event))
        ;
    return lines->events[STEP_BEGIN];
}

/* Senders of the rows below: H, h and O are this process: its hook, its hook with a rank, the program. */
static const char *form_of(char sender)
{
    return sender == 'H'   ? "pid %d hook\n"
           : sender == 'h' ? "rank 0 pid %d hook\n"
           : sender == 'i' ? "rank 1 pid 1 hook\n"
           : sender == 'O' ? "pid %d\n"
           : sender == 'o' ? "rank 0 pid %d\n"
           : sender == 'e' ? "pid %d epoch 1\n"
                           : "step\n";
}

static void say(const struct step_lines *lines, const char *senders)
{
    char text[64];

    for (; *senders != '\0'; senders++) {
        snprintf(text, sizeof text, form_of(*senders), (int)getpid());
        assert_int_equal(write(lines->file.program_end, text, strlen(text)), strlen(text));
    }
}

static void test_one_step_counts_once(void **state)
{
    static const struct {
        const char *lines;
        uint64_t steps, of_hook;
        const char *what;
    } cases[] = {
        {"HHHH", 4, 4, "the hook's alone"},
        {"OHOHOH", 3, 0, "the program's, before each step"},
        {"HOHOHO", 3, 1, "the program's, after each step"},
        {"OHHHOHHH", 2, 0, "the program's, which are fewer"},
        {"HHHHOHOH", 5, 4, "those of a program that begins late, but for one"},
        {"ohohoh", 3, 0, "the same with a rank"},
        {"OhOhOh", 3, 0, "the program's, which knows no rank"},
        {"hOhOhO", 3, 1, "the same, after each step"},
        {"NHNHNH", 3, 0, "lines that name nobody"},
        {"HNHNHN", 3, 1, "the same, after each step"},
        {"eHHeHH", 4, 4, "the hook's where the program tells epochs alone"},
        {"ihihih", 3, 3, "the lower rank's"},
        {"iohioh", 2, 0, "the lower rank's own"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct step_lines lines;
        uint64_t steps;

        assert_int_equal(step_lines_open(&lines, NULL), 0);
        step_lines_last(&lines);
        say(&lines, cases[i].lines);
        steps = counted(&lines);
        if (steps != cases[i].steps || lines.hook.steps != cases[i].of_hook)
            fail_msg("%s: %llu steps, %llu of the hook", cases[i].what, (unsigned long long)steps,
                     (unsigned long long)lines.hook.steps);
        step_lines_close(&lines);
    }
}

static void test_reports(void **state)
{
    struct step_lines lines;
    char text[256];

    (void)state;
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    step_lines_last(&lines);
    snprintf(text, sizeof text,
             "pid %d hook epoch 1 metric 0.5\npid %d epoch 2 metric 0.6\npid %d hook epoch 2 metric 0.7\n",
             (int)getpid(), (int)getpid(), (int)getpid());
    assert_int_equal(write(lines.file.program_end, text, strlen(text)), strlen(text));
    (void)counted(&lines);
    assert_int_equal(lines.events[STEP_REPORT], 2);
    assert_true(lines.report.metric > 0.55 && lines.report.metric < 0.65);
    step_lines_close(&lines);
}

static void test_what_is_said(void **state)
{
    static const struct {
        const char *lines[3];
        uint64_t steps, of_hook;
        const char *sentence; /* a part of it; "": none is said */
    } cases[] = {
        {{NULL}, 0, 0, "no Python started with the hook"},
        {{"saw python"}, 0, 0, "imported neither PyTorch"},
        {{"saw python", "saw jax"}, 0, 0, "uses JAX"},
        {{"saw ray"}, 0, 0, "uses Ray"},
        {{"saw tensorflow", "saw python"}, 0, 0, "uses TensorFlow"},
        {{"saw torch", "saw jax"}, 0, 0, "no optimizer of torch.optim"},
        {{"saw torch"}, 0, 0, "'for batch in tuner.steps(loader):'"},
        {{"saw torch", "counts SGD"}, 0, 0, "saw steps of SGD, which wait until every optimizer"},
        {{"saw torch", "counts SGD"}, 0, 0, "'for batch in tuner.steps(loader):'"},
        {{"saw torch", "counts SGD"}, 7, 7, "saw the steps of SGD"},
        {{"saw torch", "counts SGD", "counts Adam"}, 7, 7, "saw the steps of Adam"},
        {{"saw torch", "counts SGD"}, 7, 0, ""},
        {{"failed KeyError: 1", "failed KeyError: 2"}, 7, 0, "failed: KeyError: 1"},
        {{"failed KeyError: 1"}, 0, 0, "'tuner = flyball.Tuner()'"},
        {{"saw mumble"}, 0, 0, "no Python started with the hook"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct step_hook hook = {.wanted = true, .steps = cases[i].of_hook};
        char text[STEP_HOOK_SENTENCE_MAX];

        for (size_t k = 0; k < COUNT(cases[i].lines) && cases[i].lines[k] != NULL; k++)
            step_hook_take(&hook, cases[i].lines[k], true);
        step_hook_sentence(&hook, cases[i].steps, text);
        if (cases[i].sentence[0] == '\0' ? text[0] != '\0' : strstr(text, cases[i].sentence) == NULL)
            fail_msg("expected '%s' in '%s'", cases[i].sentence, text);
        hook.wanted = false;
        assert_string_equal(step_hook_sentence(&hook, cases[i].steps, text), "");
    }
}

static void test_of_another_process(void **state)
{
    struct step_hook hook = {.wanted = true, .steps = 1};

    (void)state;
    step_hook_take(&hook, "counts SGD", true);
    step_hook_take(&hook, "counts Adam", false);
    assert_string_equal(hook.counts, "SGD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_one_step_counts_once),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_of_another_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
