/* SPDX-License-Identifier: Apache-2.0 */
/* A site's file of commands: what is read, how it is split and filled in, and what is refused with its line.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "knob/way/command_file.h"
#include "knob/way/command_words.h"

static const struct device_info gpu = {.index = 2, .uuid = "GPU-12", .pci = "00000000:0F:00.0"};

#define LIMIT "[set_power_limit]\n"

/* The words of the first command, filled in and joined by '|'. */
static void join(const struct command_file *file, enum operation operation, char joined[512])
{
    const struct operation_call call = {.operation = operation,
                                        .gpu = &gpu,
                                        .enabled = 1,
                                        .limit_mw = 187500,
                                        .min_clock_mhz = 210,
                                        .max_clock_mhz = 1200};
    const struct command_words *words = &file->operations[operation].commands[0];

    joined[0] = '\0';
    for (size_t i = 0; i < words->count; i++) {
        char *word = command_word_fill(file->words[words->first + i], &call);

        assert_non_null(word);
        snprintf(joined + strlen(joined), 512 - strlen(joined), "%s%s", i > 0 ? "|" : "", word);
        free(word);
    }
}

static void test_words(void **state)
{
    static const struct {
        const char *text;
        enum operation operation;
        const char *joined;
    } cases[] = {
        {LIMIT "commands = ['a b  c\t d']", OPERATION_SET_POWER_LIMIT, "a|b|c|d"},
        {LIMIT "commands = [\"sudo -n smi -i {gpu_id} -pl {power_limit_w}\"]", OPERATION_SET_POWER_LIMIT,
         "sudo|-n|smi|-i|2|-pl|187"},
        {LIMIT "commands = ['a {power_limit_mw}mW x{gpu_id}{gpu_uuid}']", OPERATION_SET_POWER_LIMIT,
         "a|187500mW|x2GPU-12"},
        {LIMIT "commands = ['''a 'b  c' \"d $e\"f \\g''']", OPERATION_SET_POWER_LIMIT, "a|b  c|d $ef|g"},
        {LIMIT "commands = ['a \"b\\\"c\\d\" \"\" #comment']", OPERATION_SET_POWER_LIMIT, "a|b\"c\\d|"},
        {LIMIT "commands = [\"a\\tb \\u00e9\\U0001F600\"]", OPERATION_SET_POWER_LIMIT,
         "a|b|\u00e9\U0001F600"},
        {LIMIT "commands = [\"\"\"\na \\\n   b\n c\"\"\"]", OPERATION_SET_POWER_LIMIT, "a|b|c"},
        {LIMIT "commands = ['$HOME; {gpu_pci} > x']", OPERATION_SET_POWER_LIMIT,
         "$HOME;|00000000:0F:00.0|>|x"},
        {"# comment\n\n[ set_persistence_mode ] # more\n'commands' = [ # here\n 'a {enabled}', # there\n "
         "'b',\n]\n",
         OPERATION_SET_PERSISTENCE_MODE, "a|1"},
        {"[set_gpu_locked_clocks]\ncommands=['a {min_clock_mhz},{max_clock_mhz}']",
         OPERATION_SET_GPU_LOCKED_CLOCKS, "a|210,1200"},
        {"[\"reset_locked_clocks\"]\r\ncommands=['a']\r\n", OPERATION_RESET_LOCKED_CLOCKS, "a"},
    };
    char joined[512];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct command_file *file;
        struct fly_error error;

        if (command_file_parse("f", cases[i].text, strlen(cases[i].text), &file, &error) < 0)
            fail_msg("%s: %s", cases[i].text, error.text);
        assert_int_equal(file->operations[cases[i].operation].timeout_s, COMMAND_TIMEOUT_S);
        join(file, cases[i].operation, joined);
        assert_string_equal(joined, cases[i].joined);
        command_file_free(file);
    }
}

static void test_whole(void **state)
{
    static const char text[] = LIMIT "commands = ['a', 'b c']\nerror_pattern = 'x\\d+'\ntimeout_s = 5\n"
                                     "[reset_gpu_locked_clocks]\ncommands = ['d']\n";
    struct command_file *file;
    const struct operation_commands *offer;

    (void)state;
    assert_int_equal(command_file_parse("f", text, strlen(text), &file, NULL), 0);
    offer = &file->operations[OPERATION_SET_POWER_LIMIT];
    assert_int_equal(offer->count, 2);
    assert_int_equal(offer->timeout_s, 5);
    assert_string_equal(offer->error_pattern, "x\\d+");
    assert_string_equal(file->words[offer->commands[1].first + 1], "c");
    assert_int_equal(file->operations[OPERATION_RESET_GPU_LOCKED_CLOCKS].count, 1);
    assert_int_equal(file->operations[OPERATION_SET_PERSISTENCE_MODE].count, 0);
    command_file_free(file);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *piece;
    } cases[] = {
        {"commands = ['a']", "f:1: 'commands' stands in no table"},
        {"\n[set_power]\ncommands = ['a']", "f:2: unknown table 'set_power'"},
        {LIMIT "command = ['a']", "f:2: unknown key 'command' in 'set_power_limit'"},
        {LIMIT "timeout_s = 3\n", "f:1: the table 'set_power_limit' has no 'commands'"},
        {LIMIT "[set_persistence_mode]\ncommands = ['a']",
         "f:1: the table 'set_power_limit' has no 'commands'"},
        {LIMIT "commands = []", "at least one string"},
        {LIMIT "commands = 'a'", "has to be an array"},
        {LIMIT "commands = [1]", "f:2: expected a string or ']'"},
        {LIMIT "commands = ['a' 'b']", "f:2: expected ',' or ']'"},
        {LIMIT "commands = ['a',,]", "f:2: expected a string"},
        {LIMIT "commands = ['']", "item 1: it names no program"},
        {LIMIT "commands = ['a', '  ']", "item 2: it names no program"},
        {LIMIT "commands = ['a \"b']", "item 1: a quote has no end"},
        {LIMIT "commands = ['a \\']", "nothing stands behind its last backslash"},
        {LIMIT "commands = ['a {enabled}']", "'{enabled}' holds braces"},
        {LIMIT "commands = ['a {}']", "'{}' holds braces"},
        {LIMIT "commands = ['a {gpu_id']", "'{gpu_id' holds braces"},
        {LIMIT "commands = ['a gpu_id}']", "holds braces"},
        {LIMIT "commands = ['a {gpu_id{gpu_id}}']", "holds braces"},
        {LIMIT "commands = ['a']\ncommands = ['a']", "f:3: the key 'commands' is there twice"},
        {LIMIT "commands = ['a']\n" LIMIT, "f:3: the table 'set_power_limit' is there twice"},
        {LIMIT "commands = ['a']\ntimeout_s = 0",
         "f:3: 'timeout_s' of 'set_power_limit' has to be a whole number"},
        {LIMIT "commands = ['a']\ntimeout_s = 1.5", "'1.5' is no value that is read here"},
        {LIMIT "commands = ['a']\ntimeout_s = 010", "'010' is no value"},
        {LIMIT "commands = ['a']\ntimeout_s = '3'", "has to be a whole number"},
        {LIMIT "commands = ['a']\ntimeout_s = 601", "from 1 to 600"},
        {LIMIT "commands = ['a']\nerror_pattern = 3", "has to be a string"},
        {LIMIT "commands = ['a'] x", "expected the end of the line"},
        {LIMIT "commands = ['a", "does not end before its line"},
        {LIMIT "commands = [\"a\\q\"]", "unknown escape '\\q'"},
        {LIMIT "commands = [\"\\ud800\"]", "there is no character U+D800"},
        {LIMIT "commands = [\"\\u0000\"]", "there is no character U+0000"},
        {LIMIT "commands = ['a\x01']", "control character"},
        {"[set_power_limit", "expected ']'"},
        {"[[set_power_limit]]", "arrays of tables"},
        {"[set.power]", "names with dots"},
        {"set_power_limit = { commands = ['a'] }", "is no value that is read here"},
        {"= 3", "expected a name"},
        {"a", "expected '='"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct command_file *file = NULL;
        struct fly_error error = {.text = ""};

        if (command_file_parse("f", cases[i].text, strlen(cases[i].text), &file, &error) != FLY_ECONFIG)
            fail_msg("taken, or of another code: %s: %s", cases[i].text, error.text);
        check_contains(error.text, cases[i].piece);
        assert_null(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
