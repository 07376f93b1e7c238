/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, mounts, and what a server says, as text. */
#include "test.h"

#include <flyball/error.h>

#include "base/file/file_system.h"
#include "base/text/utf8.h"
#include "store/postgres_link.h"
#include "store/store.h"
#include "store/store_address.h"
#include "store/store_text.h"

static void test_addresses(void **state)
{
    static const struct {
        const char *text;
        int code;
        enum store_place place;
        const char *part;
    } cases[] = {
        {NULL, 0, STORE_IN_FILE, NULL},
        {"", 0, STORE_IN_FILE, NULL},
        {"/var/lib/flyball/store.sqlite", 0, STORE_IN_FILE, NULL},
        {"store", 0, STORE_IN_FILE, NULL},
        {":memory:", 0, STORE_IN_FILE, NULL},
        {"a:b", 0, STORE_IN_FILE, NULL},
        {"postgresql://host/db", 0, STORE_ON_SERVER, NULL},
        {"postgres://user:pw@host/db", 0, STORE_ON_SERVER, NULL},
        {"/tmp/", FLY_EUSAGE, STORE_IN_FILE, "'/tmp/store.sqlite'"},
        {"http://host:8080", FLY_EUSAGE, STORE_IN_FILE, "service"},
        {"https://u:secret@host", FLY_EUSAGE, STORE_IN_FILE, "service"},
        {"unix:/run/x", FLY_EUSAGE, STORE_IN_FILE, "service"},
        {"sqlite:///x", FLY_EUSAGE, STORE_IN_FILE, "path alone"},
        {"postgre://u:secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "did you mean 'postgres"},
        {"mysql://u:secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "unknown"},
        {"postgresql://u:secr@secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "write '@' in them as %40"},
        {"postgresql://u:secret/secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "'/' as %2F"},
        {"postgresql://u:secret?a=secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "'?' as %3F"},
        {"postgresql://u:se%40cret@[::1]:5432,h:1/d?application_name=a@b", 0, STORE_ON_SERVER, NULL},
        {"postgresql://u@%2Frun%2Fpg/d", 0, STORE_ON_SERVER, NULL},
        {"postgresql:/u:secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "postgresql://user@host:port/database"},
        {" postgresql://u:secret@h/d", FLY_EUSAGE, STORE_IN_FILE, "postgresql://user@host:port/database"},
        {"host=h password=secret", FLY_EUSAGE, STORE_IN_FILE, "put './' in front"},
        {" dbname = d password='secret'", FLY_EUSAGE, STORE_IN_FILE, "put './' in front"},
        {"./host=h", 0, STORE_IN_FILE, NULL},
        {"hostess=h", 0, STORE_IN_FILE, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct store_address address = {0};
        struct fly_error error = {0};
        int code = store_address_parse(cases[i].text, &address, &error);

        if (code != cases[i].code)
            fail_msg("'%s': %d, expected %d: %s", cases[i].text, code, cases[i].code, error.text);
        if (code == 0)
            assert_int_equal(address.place, cases[i].place);
        else
            check_contains(error.text, cases[i].part);
        assert_null(strstr(error.text, "secret"));
    }
}

static void test_masked_addresses(void **state)
{
    static const struct {
        const char *address, *masked;
    } cases[] = {
        {"/var/lib/store.sqlite", "/var/lib/store.sqlite"},
        {"", ""},
        {"http://127.0.0.1:7470", "http://127.0.0.1:7470"},
        {"unix:/run/x", "unix:/run/x"},
        {"postgresql://host/db", "postgresql://host/db"},
        {"postgresql://ada@host/db", "postgresql://ada@host/db"},
        {"postgresql://ada:secret@host:5432/db", "postgresql://ada:***@host:5432/db"},
        {"postgresql://host:host@host/host", "postgresql://host:***@host/host"},
        {"postgresql://:secret@h/d", "postgresql://:***@h/d"},
        {"postgresql://ada:sec%40ret@h,[::1]:1/d", "postgresql://ada:***@h,[::1]:1/d"},
        {"postgresql:///db?user=ada&password=secret&sslmode=require",
         "postgresql:///db?user=ada&password=***&sslmode=require"},
        {"postgresql://h/d?p%61ssWord=secret&sslpassword=secret",
         "postgresql://h/d?p%61ssWord=***&sslpassword=***"},
        {"postgresql://h/d?password=", "postgresql://h/d?password=***"},
        {"postgresql://u:secr@et@h/d", "postgresql://..."},
        {"postgresql://u:sec/ret@h/d", "postgresql://..."},
        {"postgresql://u:sec?ret@h/d", "postgresql://..."},
        {"postgresql://u:sec#ret@h/d", "postgresql://..."},
        {"postgresql://h/d?password=sec@ret", "postgresql://..."},
        {"http://ada:secret@h/x", "http://ada:***@h/x"},
        {"postgresql:/u:secret@h/d", "..."},
        {"host=h password=secret user=ada", "host=h password=*** user=ada"},
        {"password = 'sec ret\\' x' host=h", "password = *** host=h"},
        {"https://host/?token=secret", "https://host/?token=***"},
        {"https://host/x?a=1&Access_Token=secret&api%2Dkey=secret&key=secret&zone=DE",
         "https://host/x?a=1&Access_Token=***&api%2Dkey=***&key=***&zone=DE"},
        {"postgresql://h/d?sslkey=file", "postgresql://h/d?sslkey=file"},
        {"user=password password=user", "user=password password=***"},
        {"a=b c", "a=b c"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char masked[STORE_ADDRESS_MAX + 1];

        store_address_mask(cases[i].address, masked);
        assert_string_equal(masked, cases[i].masked);
    }
}

static void test_long_address(void **state)
{
    static char text[STORE_ADDRESS_MAX + 2];
    struct store_address address;
    struct fly_error error = {0};

    (void)state;
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(store_address_parse(text, &address, &error), FLY_ELIMIT);
    text[STORE_ADDRESS_MAX] = '\0';
    assert_int_equal(store_address_parse(text, &address, &error), 0);
}

static void test_shown_addresses(void **state)
{
    static const struct {
        const char *uri, *shown;
    } cases[] = {
        {"postgresql://host/db", "postgresql://host/db"},
        {"postgres://user:secret@host:5432/db", "postgresql://host:5432/db"},
        {"postgresql://user:sec@ret@host/db", "postgresql://host/db"},
        {"postgresql://user:sec/ret@host/db", "postgresql://host/db"},
        {"postgresql://user:sec?ret@host/db", "postgresql://..."},
        {"postgresql://host/db?password=secret", "postgresql://host/db"},
        {"postgresql://host/db?password=sec@ret", "postgresql://..."},
        {"postgresql://user@host/db#secret", "postgresql://host/db"},
        {"postgresql:///db?host=/run/postgresql&user=u", "postgresql:///db"},
        {"postgresql://a:1,b:2/db", "postgresql://a:1,b:2/db"},
    };
    static char longest[5000] = "postgresql://";

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char shown[STORE_SHOWN_MAX];

        store_address_show(cases[i].uri, shown);
        assert_string_equal(shown, cases[i].shown);
    }
    memset(longest + strlen(longest), 'h', 4000);
    store_address_show(longest, longest + 4500);
    assert_int_equal(strlen(longest + 4500), STORE_SHOWN_MAX - 1);
}

static void test_mounts(void **state)
{
    static const char mounts[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                                 "30 21 0:40 / /home rw - nfs4 server:/home rw\n"
                                 "31 30 0:41 / /home/u/a\\040b rw shared:3 master:2 - fuse.sshfs x: rw\n"
                                 "32 21 0:42 / /mnt rw - xfs /dev/sdb rw\n"
                                 "33 21 0:43 / /mnt rw - tmpfs none rw\n"
                                 "not a line\n"
                                 "34 21 0:44 / /cut rw -";
    static const struct {
        const char *path, *type;
    } cases[] = {
        {"/", "ext4"},
        {"/etc/x", "ext4"},
        {"/home", "nfs4"},
        {"/home/u", "nfs4"},
        {"/homes", "ext4"},
        {"/home/u/a b/c", "fuse.sshfs"},
        {"/home/u/a bc", "nfs4"},
        {"/mnt/x", "tmpfs"},
        {"/cut/x", "ext4"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char type[FILE_SYSTEM_NAME_MAX];

        file_system_mount_type(mounts, cases[i].path, type);
        if (strcmp(type, cases[i].type) != 0)
            fail_msg("'%s' is on '%s', expected '%s'", cases[i].path, type, cases[i].type);
    }
}

static void test_states(void **state)
{
    static const struct {
        const char *state;
        int code;
    } cases[] = {
        {NULL, FLY_EUNREACHABLE},    {"", FLY_EUNREACHABLE},      {"08006", FLY_EUNREACHABLE},
        {"57P01", FLY_EUNREACHABLE}, {"57P03", FLY_EUNREACHABLE}, {"25P03", FLY_EUNREACHABLE},
        {"55P03", FLY_EBUSY},        {"57014", FLY_EBUSY},        {"40001", FLY_EBUSY},
        {"53300", FLY_EBUSY},        {"53100", FLY_EWRITE},       {"53200", FLY_ENOMEM},
        {"58030", FLY_EWRITE},       {"XX001", FLY_EREAD},        {"28P01", FLY_EPERM},
        {"42501", FLY_EPERM},        {"25006", FLY_EPERM},        {"3D000", FLY_ENOTFOUND},
        {"42P01", FLY_EDATA},        {"22021", FLY_EUSAGE},       {"P0001", FLY_EINTERNAL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct postgres_meaning meaning = postgres_state_meaning(cases[i].state);

        if (meaning.code != cases[i].code)
            fail_msg("'%s' means %d, expected %d", cases[i].state, meaning.code, cases[i].code);
        assert_true(strlen(meaning.remedy) > 0);
    }
    assert_int_equal(postgres_connect_meaning("FATAL:  password authentication failed").code, FLY_EPERM);
    assert_int_equal(postgres_connect_meaning("FATAL:  database \"x\" does not exist").code, FLY_ENOTFOUND);
    assert_int_equal(postgres_connect_meaning("Connection refused").code, FLY_EUNREACHABLE);
}

static void test_words(void **state)
{
    static const struct {
        const char *message, *words;
        size_t size;
    } cases[] = {
        {"ERROR:  no\nDETAIL:  none\n", "no DETAIL:  none", 100},
        {"lower: stays", "lower: stays", 100},
        {"0123456789", "01234567", 9},
        {"", "", 100},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char words[100];

        assert_string_equal(postgres_words(cases[i].message, words, cases[i].size), cases[i].words);
    }
}

static void test_library(void **state)
{
    struct postgres_calls calls;
    struct fly_error error = {0};

    (void)state;
    assert_int_equal(postgres_library_load("/nowhere/libpq.so.5", &calls, &error), FLY_EUNSUPPORTED);
    check_contains(error.text, "/nowhere/libpq.so.5");
    check_contains(error.text, "apt-get install libpq5");
    assert_int_equal(postgres_library_load("/proc/self/exe", &calls, &error), FLY_EUNSUPPORTED);
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"", true},
        {"a\x7F", true},
        {"\xC2\x80", true},
        {"\xEF\xBF\xBF", true},
        {"\xF4\x8F\xBF\xBF", true},
        {"\x80", false},
        {"\xC1\xBF", false},
        {"\xE0\x9F\xBF", false},
        {"\xED\xA0\x80", false},
        {"\xF0\x8F\xBF\xBF", false},
        {"\xF4\x90\x80\x80", false},
        {"\xE2\x82", false},
        {"\xE2\x82\x28", false},
        {"\xFF", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (text_is_utf8(cases[i].text, strlen(cases[i].text)) != cases[i].good)
            fail_msg("case %zu is judged wrongly", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),    cmocka_unit_test(test_masked_addresses),
        cmocka_unit_test(test_long_address), cmocka_unit_test(test_shown_addresses),
        cmocka_unit_test(test_mounts),       cmocka_unit_test(test_states),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_library),
        cmocka_unit_test(test_utf8),
    };

    return cmocka_run_group_tests_name("store words", tests, NULL, NULL);
}
