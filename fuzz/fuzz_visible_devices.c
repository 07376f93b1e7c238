/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables that show and hide GPUs: with any value, each GPU is either kept once or closed once, CPUs
 * stay, and a list that a user may write means the same as in a variable. The first byte chooses the variable
 * and the vendor.
 */
#include <string.h>

#include "device/open/selection.h"
#include "device/open/visible_list.h"
#include "fuzz.h"

enum { GPUS = 5, TEXT_MAX = 2048 };

static int closed[GPUS + 1];

static void count_close(struct device *device)
{
    ++*(int *)device->state;
}

static bool has_instance(const struct device *device, const char *uuid)
{
    return strcmp(uuid, "MIG-7") == 0 && device->info.uuid[4] == 'c';
}

static const struct device_backend nvidia = {
    .name = "nvml", .close = count_close, .has_instance = has_instance};
static const struct device_backend amd = {.name = "amdsmi", .close = count_close};

static void make_list(struct device_list *list, bool is_amd)
{
    static const char *const uuids[] = {"GPU-a1", "GPU-a2", "GPU-b", "GPU-c", "nvidia-4"};
    struct device_info info = {.kind = DEVICE_CPU, .uuid = "cpu-0"};

    memset(list, 0, sizeof *list);
    memset(closed, 0, sizeof closed);
    FUZZ_CHECK(device_list_add(list, &nvidia, &info, &closed[GPUS], NULL) == 0);
    for (int i = 0; i < GPUS; i++) {
        info = (struct device_info){.kind = DEVICE_GPU, .denied = i == 2};
        memcpy(info.uuid, uuids[i], strlen(uuids[i]) + 1);
        FUZZ_CHECK(device_list_add(list, is_amd ? &amd : &nvidia, &info, &closed[i], NULL) == 0);
    }
}

/* Each device is in the list once, or was closed once; GPUs come first and keep their numbers. */
static void check_list(const struct device_list *list)
{
    size_t gpus = device_list_count(list, DEVICE_GPU);
    int gone = 0;

    FUZZ_CHECK(list->count == gpus + 1 && closed[GPUS] == 0);
    for (size_t i = 0; i < gpus; i++) {
        FUZZ_CHECK(list->devices[i].info.kind == DEVICE_GPU);
        FUZZ_CHECK(list->devices[i].state == &closed[list->devices[i].info.index]);
        FUZZ_CHECK(*(int *)list->devices[i].state == 0);
        for (size_t j = 0; j < i; j++)
            FUZZ_CHECK(list->devices[i].state != list->devices[j].state);
    }
    for (int i = 0; i < GPUS; i++) {
        FUZZ_CHECK(closed[i] == 0 || closed[i] == 1);
        gone += closed[i];
    }
    FUZZ_CHECK((size_t)gone + gpus == GPUS);
}

static void show(const char *text, unsigned choice, struct device_list *out_list)
{
    struct visibility visible = {NULL, choice & 8 ? "PCI_BUS_ID" : NULL, NULL, NULL};
    char note[SELECTION_NOTE_MAX];

    *(choice % 3 == 0   ? &visible.cuda_visible_devices
      : choice % 3 == 1 ? &visible.rocr_visible_devices
                        : &visible.hip_visible_devices) = text;
    make_list(out_list, choice & 4);
    device_select_visible(out_list, &visible, choice & 16 ? NULL : note);
    if (!(choice & 16))
        FUZZ_CHECK(memchr(note, '\0', sizeof note) != NULL);
    check_list(out_list);
    for (size_t i = 0; i < out_list->count; i++)
        FUZZ_CHECK(!out_list->devices[i].info.denied);
}

/*
 * Whether a variable reads the list as a user's: entries of one kind, no instance, no number after a denied
 * GPU.
 */
static bool is_plain(const char *text)
{
    enum visible_kind first = VISIBLE_INVALID;
    struct visible_entry entry;

    while (visible_next(&text, &entry)) {
        first = first == VISIBLE_INVALID ? entry.kind : first;
        if (entry.kind != first || entry.kind == VISIBLE_INVALID || entry.kind == VISIBLE_INSTANCE ||
            (entry.kind == VISIBLE_INDEX && entry.index >= 2) ||
            (entry.kind == VISIBLE_UUID && entry.length > 4 && entry.text[4] == 'b'))
            return false;
    }
    return first != VISIBLE_INVALID;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct device_list list, shown;
    struct fly_error error = {.code = 0};
    char text[TEXT_MAX] = "";
    int code;

    if (size > 1)
        memcpy(text, data + 1, size - 1 < TEXT_MAX ? size - 1 : TEXT_MAX - 1);
    show(text, size > 0 ? data[0] : 0, &shown);
    make_list(&list, false);
    code = device_select_named(&list, text, &error);
    check_list(&list);
    if (code < 0) {
        FUZZ_CHECK(code == FLY_EUSAGE || code == FLY_ENOTFOUND);
        FUZZ_CHECK(error.code == code && error.text[0] != '\0' && list.count == GPUS + 1);
    } else if (is_plain(text)) {
        show(text, 0, &shown);
        make_list(&list, false);
        FUZZ_CHECK(device_select_named(&list, text, NULL) == 0 && list.count == shown.count);
        for (size_t i = 0; i < list.count; i++)
            FUZZ_CHECK(list.devices[i].state == shown.devices[i].state);
    }
    return 0;
}
