/* SPDX-License-Identifier: Apache-2.0 */
#include "amdsmi/shown.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

extern char **environ;

struct device_list shown;
struct fly_error shown_error;
struct mono_time shown_now;

void shown_set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

void shown_tell_time(void)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, shown_now.ns);
    shown_set("AMD_TIME_NS", text);
}

static struct mono_time virtual_now(void *state)
{
    (void)state;
    return shown_now;
}

static void virtual_sleep(void *state, struct mono_time when)
{
    (void)state;
    shown_now = when;
    shown_tell_time();
}

const struct clock shown_clock = {.name = "virtual", .now = virtual_now, .sleep_until = virtual_sleep};

/* Forgets all variables of the stand-in. */
static void forget(void)
{
    for (size_t i = 0; environ[i] != NULL;) {
        char name[128];
        int length = (int)strcspn(environ[i], "=");

        if (strncmp(environ[i], "AMD_", 4) != 0) {
            i++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", length, environ[i]);
        unsetenv(name);
    }
}

int shown_set_up(void **state)
{
    (void)state;
    forget();
    shown_now.ns = 1000000000000;
    shown_tell_time();
    return 0;
}

const char *shown_library(unsigned version)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/amdsmi/amdsmi_%u.so.%u", getenv("FLYBALL_TEST_BUILD"), version, version);
    return path;
}

int shown_open(const char *path)
{
    return shown_open_below(path, "/nonexistent");
}

int shown_open_below(const char *path, const char *root)
{
    struct device_options options = {.amdsmi_path = path, .clock = &shown_clock, .sysfs_root = root};

    memset(&shown, 0, sizeof shown);
    memset(&shown_error, 0, sizeof shown_error);
    return device_backend_amdsmi.open(&options, &shown, &shown_error);
}

struct reading shown_read(size_t place, enum quantity quantity)
{
    struct device_reading reading;

    device_read(&shown.devices[place], &shown_clock, QUANTITY_BIT(quantity), &reading);
    return reading.values[quantity];
}

void shown_check_value(size_t place, enum quantity quantity, int64_t expected)
{
    struct reading reading = shown_read(place, quantity);

    if (reading.state != READING_OK || reading.value != expected)
        fail_msg("%s of GPU %zu is %" PRId64 " (%s), expected %" PRId64, quantity_facts[quantity].key, place,
                 reading.value, reading_state_word(reading.state), expected);
}

void shown_check_state(size_t place, enum quantity quantity, enum reading_state expected)
{
    assert_string_equal(reading_state_word(shown_read(place, quantity).state), reading_state_word(expected));
}
