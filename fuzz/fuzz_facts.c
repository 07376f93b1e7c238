/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of machines: any bytes either give a list of devices that answer, and facts that can be written and
 * read again, or are refused with the file's name and a line.
 */
#include <string.h>

#include "base/buffer.h"
#include "device/recording/facts.h"
#include "fuzz.h"
#include "shapes/json_layout.h"

static void check_devices(const struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];
        struct device_reading reading;
        int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
        size_t count = 0;

        FUZZ_CHECK(device->info.uuid[0] != '\0' && device->backend->set == NULL);
        device_read(device, &clock_real, QUANTITY_ALL, &reading);
        for (int q = 0; q < QUANTITY_COUNT; q++)
            FUZZ_CHECK(reading.values[q].state == READING_OK || reading.values[q].value == 0);
        if (device_clocks(device, clocks_mhz, DEVICE_CLOCKS_MAX, &count, NULL) == 0)
            FUZZ_CHECK(count > 0 && count <= DEVICE_CLOCKS_MAX);
    }
}

/* What was read can be written, shown, and read again. */
static void check_written(const struct facts *facts)
{
    struct facts *again = NULL;
    struct buffer text;
    json_t *document = NULL;

    FUZZ_CHECK(facts_document(facts, &document, NULL) == 0);
    buffer_init(&text, 2 * FACTS_BYTES_MAX);
    json_layout_text(document, &text);
    buffer_clear(&text);
    json_layout_file(document, &text);
    FUZZ_CHECK(text.error == 0 && facts_parse("f", text.data, text.length, &again, NULL) == 0);
    facts_free(again);
    buffer_deinit(&text);
    json_decref(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct device_list list; /* large */
    struct fly_error error = {.code = 0};
    struct facts *facts = NULL;
    char *text = calloc(size + 1, 1);
    int code;

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    code = facts_parse("f.facts", text, size, &facts, &error);
    free(text);
    if (code == 0) {
        check_written(facts);
        memset(&list, 0, sizeof list);
        FUZZ_CHECK(facts_play(facts, &list, NULL) == 0 && facts_played(&list) == facts);
        check_devices(&list);
        device_list_close(&list);
    } else {
        FUZZ_CHECK(code == FLY_EDATA || code == FLY_ELIMIT);
        FUZZ_CHECK(error.code == code && strncmp(error.text, "f.facts:", 8) == 0);
    }
    return 0;
}
