/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs a program sees, over made-up nodes. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/open/selection.h"

/* Closing is counted for each device; MIG-b lies on GPU-bb. */
static void count_close(struct device *device)
{
    ++*(int *)device->state;
}

static bool has_instance(const struct device *device, const char *uuid)
{
    return strcmp(uuid, "MIG-b") == 0 && strncmp(device->info.uuid, "GPU-bb", 6) == 0;
}

static const struct device_backend nvidia = {
    .name = "nvml", .close = count_close, .has_instance = has_instance};
static const struct device_backend amd = {.name = "amdsmi", .close = count_close};
static const struct device_backend cpu = {.name = "rapl", .close = count_close};

enum { NODE_MAX = 8 };

struct node {
    struct device_list list;
    int closed[NODE_MAX];
    size_t count; /* as it was made */
};

static void add(struct node *node, const struct device_backend *backend, enum device_kind kind,
                const char *uuid, const char *name)
{
    struct device_info info = {.kind = kind};

    snprintf(info.uuid, sizeof info.uuid, "%s", uuid);
    snprintf(info.name, sizeof info.name, "%s", name);
    assert_int_equal(device_list_add(&node->list, backend, &info, &node->closed[node->count++], NULL), 0);
}

/* Four GPUs, two of which begin alike, a CPU and memory. */
static void make_node(struct node *node)
{
    *node = (struct node){.count = 0};
    add(node, &nvidia, DEVICE_GPU, "GPU-aa11", "A100");
    add(node, &nvidia, DEVICE_GPU, "GPU-aa22", "A100");
    add(node, &nvidia, DEVICE_GPU, "GPU-bb33", "A100");
    add(node, &nvidia, DEVICE_GPU, "GPU-cc44", "A100");
    add(node, &cpu, DEVICE_CPU, "cpu-0", "package-0");
    add(node, &cpu, DEVICE_DRAM, "dram-0", "dram");
}

/* The last letters but one of the UUIDs: "a1 c4 | u0 m0", and what was not kept was closed, once. */
static void check_kept(struct node *node, const char *expected, const char *what)
{
    char text[128] = "";
    size_t length = 0, kept = node->list.count;
    int closed = 0;

    for (size_t i = 0; i < node->list.count; i++) {
        const struct device_info *info = &node->list.devices[i].info;
        const char *uuid = info->uuid;

        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", i > 0 ? " " : "",
                                   info->kind == DEVICE_GPU ? "" : "*", uuid + strlen(uuid) - 2);
        if (info->kind == DEVICE_GPU)
            assert_ptr_equal(&node->closed[info->index], node->list.devices[i].state); /* as on the node */
    }
    for (size_t i = 0; i < node->count; i++) {
        assert_in_range(node->closed[i], 0, 1);
        closed += node->closed[i];
    }
    if (strcmp(text, expected) != 0)
        fail_msg("%s keeps '%s', expected '%s'", what, text, expected);
    assert_int_equal(closed + (int)kept, node->count);
    device_list_close(&node->list);
    for (size_t i = 0; i < node->count; i++)
        assert_int_equal(node->closed[i], 1);
}

#define REST "*-0 *-0"

static const struct {
    const char *cuda, *kept, *note; /* note: a part of it; NULL: none */
} cuda_cases[] = {
    {NULL, "11 22 33 44 " REST, NULL},
    {"", REST, NULL},
    {"0", "11 " REST, NULL},
    {"2,0", "33 11 " REST, NULL},
    {"3,2,1,0", "44 33 22 11 " REST, NULL},
    {"1,2,3,0", "22 33 44 11 " REST, NULL},
    {" 1 ,\t3 ", "22 44 " REST, NULL},
    {"+1", "22 " REST, NULL},
    {"-0,1", "11 22 " REST, NULL},
    {"1gpu2,2ampere", "22 33 " REST, NULL},
    {"-1", REST, "'-1' in CUDA_VISIBLE_DEVICES names no GPU, which hides it and what follows"},
    {"0,2,-1,1", "11 33 " REST, "'-1'"},
    {"0,4,1", "11 " REST, "'4'"},
    {"0,18446744073709551616,1", "11 " REST, "'18446744073709551616'"},
    {"0,99999999999999999999999999,1", "11 " REST, "'999"},
    {"0,,1", "11 " REST, "''"},
    {",0", REST, "''"},
    {"0,", "11 " REST, NULL},
    {"NoDevFiles", REST, "'NoDevFiles'"},
    {"0,one,1", "11 " REST, "'one'"},
    {"0,1,0", REST, "names GPU 0 twice, which hides all"},
    {"0,-1,0", "11 " REST, "'-1'"},
    {"GPU-bb33", "33 " REST, NULL},
    {"GPU-bb", "33 " REST, NULL},
    {"GPU-cc,GPU-aa2", "44 22 " REST, NULL},
    {"GPU-aa", REST, "'GPU-aa' in CUDA_VISIBLE_DEVICES fits several GPUs"},
    {"GPU-bb,GPU-aa,GPU-cc", "33 " REST, "several"},
    {"GPU-bb,GPU-bb33", REST, "twice"},
    {"GPU-bb,GPU-dd,GPU-cc", "33 " REST, "'GPU-dd'"},
    {"GPU-bb333", REST, "'GPU-bb333'"},
    {"gpu-bb", REST, "'gpu-bb'"},
    {"GPU-bb,1", "33 " REST, "'1' in CUDA_VISIBLE_DEVICES is of another kind"},
    {"1,GPU-bb", "22 " REST, "another kind"},
    {"MIG-b", "33 " REST, NULL},
    {"MIG-b,MIG-b", "33 " REST, "only the first"},
    {"MIG-c", REST, "'MIG-c'"},
    {"MIG-GPU-cc44/1/0", "44 " REST, NULL},
    {"MIG-GPU-cc44/1/0,MIG-GPU-cc44/2/0", "44 " REST, "only the first"},
    {"MIG-GPU-cc44", REST, "names no GPU"},
    {"MIG-GPU-cc44/1", REST, "names no GPU"},
    {"MIG-GPU-cc44/1/", REST, "names no GPU"},
    {"MIG-GPU-cc44//0", REST, "names no GPU"},
    {"MIG-GPU-cc44/1/0/3", REST, "names no GPU"},
    {"MIG-GPU-dd/1/0", REST, "names no GPU"},
    {"MIG-"
     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
     REST, "'MIG-bbb"},
    {"0,MIG-b", "11 " REST, "another kind"},
};

static void test_cuda(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cuda_cases); i++) {
        struct visibility visible = {.cuda_visible_devices = cuda_cases[i].cuda};
        const char *what = cuda_cases[i].cuda != NULL ? cuda_cases[i].cuda : "(not set)";
        struct node node;
        char note[SELECTION_NOTE_MAX];
        bool instance = strncmp(what, "MIG-", 4) == 0;

        make_node(&node);
        device_select_visible(&node.list, &visible, note);
        if (cuda_cases[i].note != NULL)
            check_contains(note, cuda_cases[i].note);
        else
            assert_string_equal(note, "");
        if (instance && node.list.devices[0].info.kind == DEVICE_GPU) {
            assert_true(node.list.devices[0].info.mig);
            check_contains(node.list.devices[0].info.note, "whole GPU");
        }
        check_kept(&node, cuda_cases[i].kept, what);
        make_node(&node);
        device_select_visible(&node.list, &visible, NULL);
        check_kept(&node, cuda_cases[i].kept, what);
    }
}

static void test_order(void **state)
{
    static const struct {
        const char *cuda, *order;
        bool equal, noted;
    } cases[] = {
        {"1,0", NULL, false, true},          {"1,0", "FASTEST_FIRST", false, true},
        {"1,0", "PCI_BUS_ID", false, false}, {"1,0", NULL, true, false},
        {NULL, NULL, false, false},          {"GPU-aa22,GPU-aa11", NULL, false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct visibility visible = {.cuda_visible_devices = cases[i].cuda,
                                     .cuda_device_order = cases[i].order};
        char note[SELECTION_NOTE_MAX];
        struct node node;

        make_node(&node);
        if (!cases[i].equal)
            snprintf(node.list.devices[3].info.name, DEVICE_TEXT_MAX, "%s", "T4");
        device_select_visible(&node.list, &visible, note);
        assert_int_equal(strstr(note, "CUDA_DEVICE_ORDER=PCI_BUS_ID") != NULL, cases[i].noted);
        check_kept(&node, cases[i].cuda != NULL ? "22 11 " REST : "11 22 33 44 " REST, "order");
    }
}

/* A GPU that may not be opened is not counted by programs; a user can still name it. */
static void test_denied(void **state)
{
    struct visibility visible = {.cuda_visible_devices = "0,1"};
    struct node node;

    (void)state;
    make_node(&node);
    node.list.devices[0].info.denied = node.list.devices[2].info.denied = true;
    device_select_visible(&node.list, &visible, NULL);
    check_kept(&node, "22 44 " REST, "0,1 with 0 and 2 denied");
    make_node(&node);
    node.list.devices[0].info.denied = true;
    device_select_visible(&node.list, &(struct visibility){.cuda_visible_devices = NULL}, NULL);
    check_kept(&node, "22 33 44 " REST, "all with 0 denied");
    make_node(&node);
    node.list.devices[0].info.denied = true;
    assert_int_equal(device_select_named(&node.list, "0,1", NULL), 0);
    check_kept(&node, "11 22 " REST, "0,1 by name");
}

static void test_mig_is_on(void **state)
{
    static const char *const texts[] = {NULL, "1,2", "2", "0,1"};
    static const char *const kept[] = {"11 22 33 44 " REST, "22 33 " REST, "33 " REST, "11 22 " REST};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct visibility visible = {.cuda_visible_devices = texts[i]};
        char note[SELECTION_NOTE_MAX];
        struct node node;

        make_node(&node);
        node.list.devices[2].info.mig = true;
        device_select_visible(&node.list, &visible, note);
        assert_int_equal(strstr(note, "GPU 2 is shared by MIG") != NULL, i < 2);
        check_kept(&node, kept[i], "MIG");
    }
}

static const struct {
    struct visibility visible;
    const char *kept, *note;
} amd_cases[] = {
    {{NULL, NULL, NULL, NULL}, "11 22 33 44 " REST, NULL},
    {{NULL, NULL, "2,1", NULL}, "33 22 " REST, NULL},
    {{NULL, NULL, "2,1", "1"}, "22 " REST, NULL},
    {{"0", NULL, "2,1", NULL}, "33 " REST, NULL},
    {{"0", NULL, "2,1", "1"}, "22 " REST, NULL},
    {{NULL, NULL, "GPU-bb33,0", NULL}, "33 " REST, "another kind"},
    {{NULL, NULL, "2,3", "2,3"}, REST, "'2' in HIP_VISIBLE_DEVICES names no GPU"},
    {{NULL, NULL, "0,1,0,3", NULL}, "11 22 " REST, "hides what follows"},
    {{NULL, NULL, "", NULL}, REST, NULL},
    {{NULL, NULL, NULL, "3"}, "44 " REST, NULL},
    {{"1", "PCI_BUS_ID", NULL, NULL}, "22 " REST, NULL},
};

static void test_amd(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(amd_cases); i++) {
        char note[SELECTION_NOTE_MAX], what[32];
        struct node node;

        snprintf(what, sizeof what, "case %zu", i);
        make_node(&node);
        for (int gpu = 0; gpu < 4; gpu++)
            node.list.devices[gpu].backend = &amd;
        device_select_visible(&node.list, &amd_cases[i].visible, note);
        if (amd_cases[i].note != NULL)
            check_contains(note, amd_cases[i].note);
        else
            assert_string_equal(note, "");
        check_kept(&node, amd_cases[i].kept, what);
    }
}

/* Each vendor's variables count that vendor's GPUs. */
static void test_both_vendors(void **state)
{
    struct visibility visible = {.cuda_visible_devices = "1", .hip_visible_devices = "0"};
    struct node node;

    (void)state;
    make_node(&node);
    node.list.devices[1].backend = node.list.devices[3].backend = &amd;
    device_select_visible(&node.list, &visible, NULL);
    check_kept(&node, "33 22 " REST, "CUDA 1 and HIP 0");
}

static const struct {
    const char *gpus;
    int code;
    const char *kept, *text;
} named_cases[] = {
    {"all", 0, "11 22 33 44 " REST, ""},
    {"none", 0, REST, ""},
    {"2,0", 0, "33 11 " REST, ""},
    {"GPU-bb, 0", 0, "33 11 " REST, ""},
    {"MIG-b", 0, "33 " REST, ""},
    {"4", FLY_ENOTFOUND, NULL, "GPU '4' does not exist; there are GPUs 0 to 3"},
    {"GPU-dd", FLY_ENOTFOUND, NULL, "'GPU-dd'"},
    {"GPU-aa", FLY_EUSAGE, NULL, "'GPU-aa' fits several GPUs"},
    {"0,0", FLY_EUSAGE, NULL, "GPU 0 is named twice"},
    {"0,GPU-aa1", FLY_EUSAGE, NULL, "named twice"},
    {"1gpu", FLY_EUSAGE, NULL, "'1gpu' is no GPU"},
    {"-1", FLY_EUSAGE, NULL, "'-1' is no GPU"},
    {"+1", FLY_EUSAGE, NULL, "'+1' is no GPU"},
    {"", FLY_EUSAGE, NULL, "is no list"},
    {"0,", FLY_EUSAGE, NULL, "is no list"},
    {"0,,1", FLY_EUSAGE, NULL, "'' is no GPU"},
    {"all,0", FLY_EUSAGE, NULL, "'all' is no GPU"},
    {"ALL", FLY_EUSAGE, NULL, "'ALL'"},
};

static void test_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(named_cases); i++) {
        struct fly_error error = {0};
        struct node node;

        make_node(&node);
        assert_int_equal(device_select_named(&node.list, named_cases[i].gpus, &error), named_cases[i].code);
        check_contains(error.text, named_cases[i].text);
        check_kept(&node, named_cases[i].kept != NULL ? named_cases[i].kept : "11 22 33 44 " REST,
                   named_cases[i].gpus);
    }
}

static void test_named_of_few(void **state)
{
    struct node node = {.count = 0};
    struct fly_error error;

    (void)state;
    assert_int_equal(device_select_named(&node.list, "0", &error), FLY_ENOTFOUND);
    check_contains(error.text, "no GPU was found");
    add(&node, &nvidia, DEVICE_GPU, "GPU-aa11", "A100");
    assert_int_equal(device_select_named(&node.list, "1", &error), FLY_ENOTFOUND);
    check_contains(error.text, "there is GPU 0 only");
    device_list_close(&node.list);
}

static void test_environment(void **state)
{
    struct visibility visible;

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    unsetenv("ROCR_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    visible = visibility_of_environment();
    assert_string_equal(visible.cuda_visible_devices, "");
    assert_string_equal(visible.hip_visible_devices, "1");
    assert_null(visible.rocr_visible_devices);
    assert_null(visible.cuda_device_order);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cuda),  cmocka_unit_test(test_order),        cmocka_unit_test(test_denied),
    cmocka_unit_test(test_amd),   cmocka_unit_test(test_mig_is_on),    cmocka_unit_test(test_both_vendors),
    cmocka_unit_test(test_named), cmocka_unit_test(test_named_of_few), cmocka_unit_test(test_environment),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
