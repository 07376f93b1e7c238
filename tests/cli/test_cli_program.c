/* SPDX-License-Identifier: Apache-2.0 */
/* The real program's tables of commands and options: complete, and in agreement with each other. */
#include "cli/commands.h"
#include "cli/frame/parse.h"
#include "cli/frame/settings.h"
#include "cli/frame/value.h"
#include "test.h"

/* Every table of the real program: complete, within the limits, and with defaults that its own types accept.
 */
static void test_real_tables(void **state)
{
    (void)state;
    for (size_t i = 0; flyball_program.commands[i] != NULL; i++) {
        const struct cli_command *command = flyball_program.commands[i];

        assert_true(command_option_count(command) <= LINE_OPTIONS_MAX);
        assert_non_null(command->summary);
        assert_non_null(command->paragraphs[0]);
        assert_non_null(command->examples[0].command);
        assert_non_null(command->run);
        for (size_t j = 0; j < command_option_count(command); j++) {
            const struct cli_option *option = command_option(command, j);
            struct cli_value value;

            if (option->help == NULL || option->help[strlen(option->help) - 1] != '.')
                fail_msg("--%s of %s: help is not a sentence", option->name, command->words);
            if ((option->placeholder == NULL) != (option->type == CLI_FLAG))
                fail_msg("--%s of %s: placeholder and type disagree", option->name, command->words);
            if (option->type == CLI_INTEGER || option->type == CLI_REAL)
                assert_true(option->minimum < option->maximum);
            value_init(&value);
            if (option->default_text != NULL)
                assert_int_equal(
                    value_set(&value, option, CLI_DEFAULT, "default", option->default_text, NULL, NULL), 0);
            value_deinit(&value);
            assert_int_equal(command_option_index(command, option->name, strlen(option->name)), j);
            if (option->letter != '\0')
                assert_int_equal(command_letter_index(command, option->letter), j);
        }
    }
}

/* A key that several commands use has one type and one set of choices. */
static void test_keys_agree(void **state)
{
    struct key_table keys;

    (void)state;
    keys_collect(&flyball_program, &keys);
    assert_true(keys.count < KEYS_MAX);
    for (size_t i = 0; flyball_program.commands[i] != NULL; i++) {
        const struct cli_command *command = flyball_program.commands[i];

        const struct cli_option *option;

        for (size_t j = 0; (option = command_own_option(command, j)) != NULL; j++) {
            const struct cli_option *first;

            if (option->key == NULL)
                continue;
            first = keys.options[keys_find(&keys, option->key)];
            assert_int_equal(first->type, option->type);
            assert_ptr_equal(first->choices, option->choices);
            assert_true(strlen(option->key) + sizeof "FLYBALL_" <= KEY_VARIABLE_MAX);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_tables),
        cmocka_unit_test(test_keys_agree),
    };

    return cmocka_run_group_tests_name("cli program", tests, NULL, NULL);
}
