/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves entries to places of the list. The list is reordered last, so that nothing changes
 * before everything is known.
 *
 * Where NVIDIA's manual is silent, the rules follow PyTorch, which counts devices without
 * starting CUDA and so had to find out: a GPU named twice hides all, and an entry of another kind
 * than the first ends the list.
 */
#include "device/open/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/open/gpu_choice.h"

static bool is_amd(const struct device *device)
{
    return strcmp(device->backend->name, "amdsmi") == 0;
}

static void add_note(char *note, const char *text)
{
    size_t length = note != NULL ? strlen(note) : 0;

    if (note != NULL)
        snprintf(note + length, SELECTION_NOTE_MAX - length, "%s%s", length > 0 ? "; " : "", text);
}

/* A variable, and how its runtime reads it. */
struct rule {
    const char *variable, *text;
    bool repeated_hides_all; /* a GPU named twice hides all; otherwise it hides only what follows */
};

/* Notes why an entry ends the list; false if it does not. */
static bool note_end(const struct rule *rule, const struct visible_entry *entry, int place, bool other_kind,
                     char *note)
{
    const char *why = place == GPU_AMBIGUOUS ? "fits several GPUs"
                      : place < 0            ? "names no GPU"
                      : other_kind           ? "is of another kind than the first entry"
                                             : NULL;
    char text[SELECTION_NOTE_MAX];

    if (why == NULL)
        return false;
    snprintf(text, sizeof text, "'%.*s' in %s %s, which hides it and what follows",
             entry->length < 50 ? (int)entry->length : 50, entry->text, rule->variable, why);
    add_note(note, text);
    return true;
}

static void note_repeated(const struct rule *rule, unsigned index, char *note)
{
    char text[SELECTION_NOTE_MAX];

    snprintf(text, sizeof text, "%s names GPU %u twice, which hides %s", rule->variable, index,
             rule->repeated_hides_all ? "all" : "what follows");
    add_note(note, text);
}

/* Reduces a choice to what a variable shows of it. */
static void apply(const struct device_list *list, const struct rule *rule, struct gpu_choice *choice,
                  char *note)
{
    struct gpu_choice shown = {.count = 0};
    enum visible_kind first = VISIBLE_INVALID;
    struct visible_entry entry;

    if (rule->text == NULL)
        return;
    for (const char *rest = rule->text; !shown.of_instance && visible_next(&rest, &entry);) {
        int place = gpu_choice_find(list, choice, &entry);

        if (note_end(rule, &entry, place, first != VISIBLE_INVALID && entry.kind != first, note))
            break;
        if (gpu_choice_has(&shown, (size_t)place)) {
            note_repeated(rule, list->devices[place].info.index, note);
            if (rule->repeated_hides_all)
                shown.count = 0;
            break;
        }
        first = entry.kind;
        gpu_choice_add(&shown, (size_t)place);
        shown.of_instance = entry.kind == VISIBLE_INSTANCE;
        if (shown.of_instance && *rest != '\0')
            add_note(note, "of several MIG instances a program sees only the first");
    }
    *choice = shown;
}

static bool has_index(const char *text)
{
    struct visible_entry entry;

    return text != NULL && visible_next(&text, &entry) && entry.kind == VISIBLE_INDEX;
}

/* By default CUDA counts from the fastest GPU on, by rules of its own. */
static void note_order(const struct device_list *list, const struct gpu_choice *gpus,
                       const struct visibility *visible, char *note)
{
    bool by_bus = visible->cuda_device_order != NULL && strcmp(visible->cuda_device_order, "PCI_BUS_ID") == 0;

    for (size_t i = 1; !by_bus && has_index(visible->cuda_visible_devices) && i < gpus->count; i++) {
        if (strcmp(list->devices[gpus->places[0]].info.name, list->devices[gpus->places[i]].info.name) == 0)
            continue;
        add_note(note, "the GPUs differ, and CUDA counts them by speed: the numbers of CUDA_VISIBLE_DEVICES "
                       "were taken in the order of the bus; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name UUIDs");
        return;
    }
}

/* With MIG, CUDA picks an instance by itself, and shows a program nothing else. */
static void note_mig(const struct device_list *list, const struct gpu_choice *gpus, char *note)
{
    for (size_t i = 0; gpus->count > 1 && i < gpus->count; i++) {
        const struct device_info *info = &list->devices[gpus->places[i]].info;
        char text[SELECTION_NOTE_MAX];

        if (!info->mig)
            continue;
        snprintf(
            text, sizeof text,
            "GPU %u is shared by MIG, and a program that gets one of its instances gets no other GPU; name "
            "the instance in CUDA_VISIBLE_DEVICES",
            info->index);
        add_note(note, text);
        return;
    }
}

/* Returns the GPUs that may be opened, since programs neither see nor count the others. */
static struct gpu_choice openable(const struct device_list *list, bool amd)
{
    struct gpu_choice choice = {.count = 0};

    for (size_t i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];

        if (device->info.kind == DEVICE_GPU && !device->info.denied && is_amd(device) == amd)
            gpu_choice_add(&choice, i);
    }
    return choice;
}

struct visibility visibility_of_environment(void)
{
    return (struct visibility){
        .cuda_visible_devices = getenv("CUDA_VISIBLE_DEVICES"),
        .cuda_device_order = getenv("CUDA_DEVICE_ORDER"),
        .rocr_visible_devices = getenv("ROCR_VISIBLE_DEVICES"),
        .hip_visible_devices = getenv("HIP_VISIBLE_DEVICES"),
    };
}

void device_select_visible(struct device_list *list, const struct visibility *visible,
                           char out_note[SELECTION_NOTE_MAX])
{
    const struct rule cuda = {"CUDA_VISIBLE_DEVICES", visible->cuda_visible_devices, true},
                      rocr = {"ROCR_VISIBLE_DEVICES", visible->rocr_visible_devices, false},
                      hip = {"HIP_VISIBLE_DEVICES", visible->hip_visible_devices, false};
    struct gpu_choice chosen = openable(list, false), amd = openable(list, true);

    if (out_note != NULL)
        out_note[0] = '\0';
    if (chosen.count > 0) {
        note_order(list, &chosen, visible, out_note);
        apply(list, &cuda, &chosen, out_note);
        note_mig(list, &chosen, out_note);
    }
    if (amd.count > 0) {
        apply(list, &rocr, &amd, out_note);
        apply(list, hip.text != NULL ? &hip : &cuda, &amd, out_note);
    }
    for (size_t i = 0; i < amd.count; i++)
        gpu_choice_add(&chosen, amd.places[i]);
    if (chosen.of_instance)
        gpu_choice_mark_instance(&list->devices[chosen.places[0]].info);
    gpu_choice_keep(list, &chosen);
}

/* Returns all GPUs of the list, also those that may not be opened, since the user sees them there. */
static struct gpu_choice listed(const struct device_list *list)
{
    struct gpu_choice choice = {.count = 0};

    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU)
            gpu_choice_add(&choice, i);
    }
    return choice;
}

static int refuse(const struct visible_entry *entry, int place, size_t count, struct fly_error *out_error)
{
    int length = entry->length < 100 ? (int)entry->length : 100;
    char range[48];

    if (entry->kind == VISIBLE_INVALID || (entry->kind == VISIBLE_INDEX && !entry->exact))
        return error_set(
            out_error, FLY_EUSAGE,
            "'%.*s' is no GPU; expected indices and UUIDs such as 0,2 or GPU-8f3a, or all, or none", length,
            entry->text);
    if (place == GPU_AMBIGUOUS)
        return error_set(out_error, FLY_EUSAGE, "'%.*s' fits several GPUs; write more of the UUID", length,
                         entry->text);
    if (count == 0)
        return error_set(out_error, FLY_ENOTFOUND,
                         "GPU '%.*s' does not exist: no GPU was found; 'flyball doctor' says why", length,
                         entry->text);
    snprintf(range, sizeof range, count == 1 ? "is GPU 0 only" : "are GPUs 0 to %zu", count - 1);
    return error_set(out_error, FLY_ENOTFOUND,
                     "GPU '%.*s' does not exist; there %s; 'flyball devices' lists them", length, entry->text,
                     range);
}

/* Reads the list that a user wrote; refuses entries that a variable may have. */
static int choose_named(const struct device_list *list, const char *gpus, struct gpu_choice *out_chosen,
                        struct fly_error *out_error)
{
    struct gpu_choice all = listed(list), chosen = {.count = 0};
    struct visible_entry entry;

    if (strcmp(gpus, "all") == 0)
        chosen = all;
    if (strcmp(gpus, "all") == 0 || strcmp(gpus, "none") == 0)
        gpus = "";
    else if (gpus[0] == '\0' || gpus[strlen(gpus) - 1] == ',')
        return error_set(out_error, FLY_EUSAGE,
                         "'%.100s' is no list of GPUs; expected one such as 0,2 or GPU-8f3a, or all, or none",
                         gpus);
    while (visible_next(&gpus, &entry)) {
        int place = gpu_choice_find(list, &all, &entry);

        if (place < 0 || (entry.kind == VISIBLE_INDEX && !entry.exact))
            return refuse(&entry, place, all.count, out_error);
        if (gpu_choice_has(&chosen, (size_t)place))
            return error_set(out_error, FLY_EUSAGE, "GPU %u is named twice; leave one of them out",
                             list->devices[place].info.index);
        gpu_choice_add(&chosen, (size_t)place);
    }
    *out_chosen = chosen;
    return 0;
}

/* Marks GPUs that were named through one of their instances. */
static void mark_named_instances(struct device_list *list, const char *gpus)
{
    struct gpu_choice all = listed(list);
    struct visible_entry entry;

    while (visible_next(&gpus, &entry)) {
        int place = entry.kind == VISIBLE_INSTANCE ? gpu_choice_find(list, &all, &entry) : GPU_NOWHERE;

        if (place >= 0)
            gpu_choice_mark_instance(&list->devices[place].info);
    }
}

int device_select_named(struct device_list *list, const char *gpus, struct fly_error *out_error)
{
    struct gpu_choice chosen = {.count = 0};
    int code = choose_named(list, gpus, &chosen, out_error);

    if (code < 0)
        return code;
    mark_named_instances(list, gpus);
    gpu_choice_keep(list, &chosen);
    return 0;
}
