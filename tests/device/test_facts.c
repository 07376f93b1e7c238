/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of machines: read, written again, refused with line and member; and what texts lose that name
 * somebody. */
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/recording/facts.h"
#include "device/recording/pseudonyms.h"
#include "shapes/json_layout.h"

static const char machines[] = "tests/machines/*/*.facts",
                  sound[] = "tests/machines/emulated_a40/emulated_a40.facts";

static char *read_all(const char *path)
{
    char *text = calloc(1, FACTS_BYTES_MAX + 1);
    FILE *file = fopen(path, "re");

    assert_non_null(text);
    if (file == NULL)
        fail_msg("%s cannot be read", path);
    assert_true(fread(text, 1, FACTS_BYTES_MAX, file) > 0);
    fclose(file);
    return text;
}

static struct facts *parse(const char *name, const char *text)
{
    struct facts *facts = NULL;
    struct fly_error error;

    if (facts_parse(name, text, strlen(text), &facts, &error) < 0)
        fail_msg("%s", error.text);
    return facts;
}

/* The document of facts as a file has it; the caller frees it. */
static char *write_again(const struct facts *facts)
{
    struct fly_error error;
    struct buffer text;
    json_t *document = NULL;

    if (facts_document(facts, &document, &error) < 0)
        fail_msg("%s", error.text);
    buffer_init(&text, FACTS_BYTES_MAX);
    json_layout_file(document, &text);
    assert_int_equal(text.error, 0);
    json_decref(document);
    return text.data;
}

static void check_again(const char *path)
{
    char *text = read_all(path), *once, *twice;
    struct facts *facts = parse(path, text);

    assert_true(facts_begin(text, strlen(text)));
    once = write_again(facts);
    facts_free(facts);
    facts = parse(path, once);
    twice = write_again(facts);
    assert_string_equal(once, twice);
    facts_free(facts);
    free(twice);
    free(once);
    free(text);
}

static void test_files_are_written_as_they_were_read(void **state)
{
    glob_t found;

    (void)state;
    assert_int_equal(glob(machines, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_again(found.gl_pathv[i]);
    globfree(&found);
}

/* What stands in a sound file, what is put in its place, and what is said of it. */
static const struct {
    const char *from, *to, *expected;
} refusals[] = {
    {"flyball.facts/1", "flyball.facts/2", "a.facts:2: member 'schema': expected \"flyball.facts/1\""},
    {"\"cgroups\": \"2\"", "\"cgroups\": \"3\"",
     "a.facts:8: member 'machine.cgroups': expected one of 'none', '1'"},
    {"\"container\": false,", "",
     "a.facts:5: member 'machine.container': expected true or false, found nothing"},
    {"\"container\": false", "\"container\": 0", "member 'machine.container': expected true or false"},
    {"\"backend\": \"nvml\"", "\"backend\": \"nvm\"",
     "member 'devices[0].backend': expected the name of one of the back ends"},
    {"\"pseudonym\": \"GPU-1\"", "\"pseudonym\": \"GPU-0\"",
     "member 'devices[1].pseudonym': expected one that no other device has"},
    {"\"pseudonym\": \"GPU-0\"", "\"pseudonym\": \"\"", "member 'devices[0].pseudonym': expected what tells"},
    {"\"quantity\": \"power_mw\"", "\"quantity\": \"energy_uj\"", "expected each quantity once"},
    {"\"state\": \"ok\"", "\"state\": \"failed\"",
     "expected a number up to 2^53 with the state 'ok', else null"},
    {"\"domains\": [", "\"domains\": [{},", "a.facts:39: member 'domains[0].through': expected"},
    {"\"kind\": \"GPU\"", "\"kind\": \"GPU", "expected a JSON document"},
    {"{", "[{", "expected a JSON document"},
};

/* The text with the first place of `from` changed; the caller frees it. */
static char *change(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t length = strlen(text) + strlen(to) + 1;
    char *changed = malloc(length);

    assert_non_null(at);
    assert_non_null(changed);
    snprintf(changed, length, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return changed;
}

static void test_broken_files_are_refused(void **state)
{
    char *text = read_all(sound);

    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        char *changed = change(text, refusals[i].from, refusals[i].to);
        struct facts *facts = NULL;
        struct fly_error error = {.code = 0};

        assert_int_equal(facts_parse("a.facts", changed, strlen(changed), &facts, &error), FLY_EDATA);
        assert_null(facts);
        check_contains(error.text, refusals[i].expected);
        check_contains(error.text, "a.facts:");
        free(changed);
    }
    free(text);
}

static const struct pseudonym secrets[] = {{"alice", "USER"},
                                           {"node7.example.org", "HOST"},
                                           {"node7", "HOST"},
                                           {"GPU-8f3a0000-0000-0000-0000-000000000001", "GPU-0"},
                                           {"00000000:07:00.0", "bus-0"},
                                           {"/tmp/tree", ""},
                                           {"", "never"}};

static const struct {
    const char *text, *expected;
} texts[] = {
    {"", ""},
    {"NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"},
    {"user alice on node7.example.org", "user USER on HOST"},
    {"node7: malice, alice_2, alices", "HOST: malice, alice_2, alices"},
    {"GPU-8f3a0000-0000-0000-0000-000000000001 at 00000000:07:00.0", "GPU-0 at bus-0"},
    {"MIG-12345678-9abc-DEF0-1234-56789abcdef0", "MIG-UUID"},
    {"at 0000:0a:00.1 and 00000000:0A:00.1", "at PCI and PCI"},
    {"'/home/bob/my libs/libnvidia-ml.so' is no library", "'PATH' is no library"},
    {"in /scratch/p17, /sys/class/powercap and /dev/kfd", "in PATH, /sys/class/powercap and /dev/kfd"},
    {"'/tmp/tree/sys/class/powercap'", "'/sys/class/powercap'"},
    {"'/tmp/tree/own/file'", "'PATH'"},
    {"the daemon at http://10.0.0.7:4938/x, twice", "the daemon at http://ADDRESS, twice"},
    {"either/or, 3 W/m", "either/or, 3 W/m"},
    {"chmod -R a+r /sys/class/powercap/intel-rapl/", "chmod -R a+r /sys/class/powercap/intel-rapl/"},
};

static void test_texts_without_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct buffer out;

        buffer_init(&out, 1 << 10);
        pseudonyms_put(secrets, COUNT(secrets), texts[i].text, &out);
        assert_string_equal(out.data, texts[i].expected);
        buffer_deinit(&out);
    }
}

static void test_layout(void **state)
{
    static const char text[] =
        "{\"a_b\": true, \"none\": null, \"n\": 3.0, \"list\": [1, 2.5], \"empty\": [], "
        "\"rows\": [{\"x\": \"\", \"y\": false}], \"in\": {\"deep\": {\"k\": \"v\"}}}";
    json_t *document = json_loads(text, 0, NULL), *again;
    struct buffer shown;

    (void)state;
    buffer_init(&shown, 1 << 12);
    json_layout_text(document, &shown);
    assert_string_equal(shown.data, "a b: yes\nnone: not known\nn: 3\nlist: 1, 2.5\nempty: none\nrows:\n"
                                    "  x none, y no\nin:\n  deep:\n    k: v\n");
    buffer_clear(&shown);
    json_layout_file(document, &shown);
    again = json_loads(shown.data, 0, NULL);
    assert_non_null(again);
    check_contains(shown.data, "  \"rows\": [\n    {\"x\": \"\", \"y\": false}\n  ],\n");
    check_contains(shown.data, "\"n\": 3,\n");
    json_decref(again);
    json_decref(document);
    buffer_deinit(&shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_written_as_they_were_read),
        cmocka_unit_test(test_broken_files_are_refused),
        cmocka_unit_test(test_texts_without_names),
        cmocka_unit_test(test_layout),
    };

    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
