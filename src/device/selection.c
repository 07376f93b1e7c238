/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are resolved to places of the list; the list is put in their order
 * last, so that nothing is changed before all is known.
 *
 * What NVIDIA's manual leaves open follows PyTorch, which counts devices without
 * starting CUDA and so had to find out: a GPU named twice hides all, and an entry
 * of another kind than the first ends the list.
 */
#include "device/selection.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/visible_list.h"

/* Places in a list, in an order. */
struct choice {
    size_t count;
    size_t places[DEVICES_MAX];
    bool of_instance; /* the only one is there for one of its MIG instances */
};

enum { NOWHERE = -1, AMBIGUOUS = -2 };

static bool is_amd(const struct device *device)
{
    return strcmp(device->backend->name, "amdsmi") == 0;
}

static bool contains(const struct choice *choice, size_t place)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->places[i] == place)
            return true;
    }
    return false;
}

__attribute__((format(printf, 2, 3))) static void add_note(char *note, const char *format, ...)
{
    size_t length = note != NULL ? strlen(note) : 0;
    va_list arguments;

    if (note == NULL || length + 3 >= SELECTION_NOTE_MAX)
        return;
    if (length > 0)
        length += (size_t)snprintf(note + length, SELECTION_NOTE_MAX - length, "; ");
    va_start(arguments, format);
    vsnprintf(note + length, SELECTION_NOTE_MAX - length, format, arguments);
    va_end(arguments);
}

/* The one GPU whose UUID begins so. */
static int find_uuid(const struct device_list *list, const struct choice *among, const char *uuid,
                     size_t length)
{
    int found = NOWHERE;

    for (size_t i = 0; i < among->count; i++) {
        const char *own = list->devices[among->places[i]].info.uuid;

        if (strncmp(own, uuid, length) != 0)
            continue;
        if (own[length] == '\0')
            return (int)among->places[i];
        found = found == NOWHERE ? (int)among->places[i] : AMBIGUOUS;
    }
    return found;
}

static int find_instance(const struct device_list *list, const struct choice *among,
                         const struct visible_entry *entry)
{
    char uuid[DEVICE_TEXT_MAX];

    if (entry->gpu_uuid != NULL)
        return find_uuid(list, among, entry->gpu_uuid, entry->gpu_uuid_length);
    if (entry->length >= sizeof uuid)
        return NOWHERE;
    memcpy(uuid, entry->text, entry->length);
    uuid[entry->length] = '\0';
    for (size_t i = 0; i < among->count; i++) {
        const struct device *device = &list->devices[among->places[i]];

        if (device->backend->has_instance != NULL && device->backend->has_instance(device, uuid))
            return (int)among->places[i];
    }
    return NOWHERE;
}

/* The place of the GPU that an entry names among some, NOWHERE or AMBIGUOUS. */
static int find(const struct device_list *list, const struct choice *among, const struct visible_entry *entry)
{
    switch (entry->kind) {
    case VISIBLE_INDEX:
        return entry->index < among->count ? (int)among->places[entry->index] : NOWHERE;
    case VISIBLE_UUID:
        return find_uuid(list, among, entry->text, entry->length);
    case VISIBLE_INSTANCE:
        return find_instance(list, among, entry);
    default:
        return NOWHERE;
    }
}

static void append(struct choice *choice, size_t place)
{
    choice->places[choice->count++] = place;
}

static void swap(struct device *a, struct device *b)
{
    struct device kept = *a;

    *a = *b;
    *b = kept;
}

/* Puts the chosen GPUs first, in their order, then CPUs and memory, and closes the other GPUs. */
static void keep(struct device_list *list, const struct choice *chosen)
{
    struct choice order = *chosen;
    size_t kept;

    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind != DEVICE_GPU)
            append(&order, i);
    }
    kept = order.count;
    for (size_t i = 0; i < list->count; i++) {
        if (!contains(&order, i))
            append(&order, i);
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t from = order.places[i];

        while (from < i) /* it was swapped away when that place was filled */
            from = order.places[from];
        if (from != i)
            swap(&list->devices[i], &list->devices[from]);
    }
    while (list->count > kept) {
        struct device *device = &list->devices[--list->count];

        device->backend->close(device);
    }
    for (size_t i = 0; i < chosen->count; i++)
        list->devices[i].info.index = (unsigned)i;
}

static void mark_instance(struct device_info *info)
{
    size_t length = strlen(info->note);

    if (!info->mig)
        snprintf(info->note + length, sizeof info->note - length,
                 "%sa MIG instance, measured as its whole GPU", length > 0 ? "; " : "");
    info->mig = true;
}

/* A variable and how its runtime takes it. */
struct rule {
    const char *variable, *text;
    bool repeated_hides_all; /* a GPU named twice hides all; otherwise only what follows */
};

/* Narrows a choice to what a variable shows of it. */
static void apply(const struct device_list *list, const struct rule *rule, struct choice *choice, char *note)
{
    struct choice shown = {.count = 0};
    enum visible_kind first = VISIBLE_INVALID;
    struct visible_entry entry;

    if (rule->text == NULL)
        return;
    for (const char *rest = rule->text; visible_next(&rest, &entry);) {
        int place = find(list, choice, &entry);
        bool other_kind = first != VISIBLE_INVALID && entry.kind != first;

        if (place < 0 || other_kind) {
            add_note(note, "'%.*s' in %s %s, which hides it and what follows",
                     entry.length < 50 ? (int)entry.length : 50, entry.text, rule->variable,
                     place == AMBIGUOUS ? "fits several GPUs"
                     : place < 0        ? "names no GPU"
                                        : "is of another kind than the first entry");
            break;
        }
        if (contains(&shown, (size_t)place)) {
            add_note(note, "%s names GPU %u twice, which hides %s", rule->variable,
                     list->devices[place].info.index, rule->repeated_hides_all ? "all" : "what follows");
            if (rule->repeated_hides_all)
                shown.count = 0;
            break;
        }
        first = entry.kind;
        append(&shown, (size_t)place);
        shown.of_instance = entry.kind == VISIBLE_INSTANCE;
        if (shown.of_instance) {
            if (*rest != '\0')
                add_note(note, "of the instances in %s a program sees only the first", rule->variable);
            break;
        }
    }
    *choice = shown;
}

static bool has_index(const char *text)
{
    struct visible_entry entry;

    return text != NULL && visible_next(&text, &entry) && entry.kind == VISIBLE_INDEX;
}

/* Unless told otherwise, CUDA counts from the fastest GPU on, by rules of its own. */
static void note_order(const struct device_list *list, const struct choice *gpus,
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

/* Programs neither see nor count GPUs that they may not open. */
static struct choice openable(const struct device_list *list, bool amd)
{
    struct choice choice = {.count = 0};

    for (size_t i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];

        if (device->info.kind == DEVICE_GPU && !device->info.denied && is_amd(device) == amd)
            append(&choice, i);
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
    struct choice chosen = openable(list, false), amd = openable(list, true);

    if (out_note != NULL)
        out_note[0] = '\0';
    if (chosen.count > 0) {
        note_order(list, &chosen, visible, out_note);
        apply(list, &cuda, &chosen, out_note);
    }
    if (amd.count > 0) {
        apply(list, &rocr, &amd, out_note);
        apply(list, hip.text != NULL ? &hip : &cuda, &amd, out_note);
    }
    for (size_t i = 0; i < amd.count; i++)
        append(&chosen, amd.places[i]);
    if (chosen.of_instance)
        mark_instance(&list->devices[chosen.places[0]].info);
    keep(list, &chosen);
}

/* All GPUs of the list, also those that may not be opened: the user sees them there. */
static struct choice listed(const struct device_list *list)
{
    struct choice choice = {.count = 0};

    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU)
            append(&choice, i);
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
    if (place == AMBIGUOUS)
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

/* The list that a user wrote; what a variable would forgive is refused. */
static int choose_named(const struct device_list *list, const char *gpus, struct choice *out_chosen,
                        struct fly_error *out_error)
{
    struct choice all = listed(list), chosen = {.count = 0};
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
        int place = find(list, &all, &entry);

        if (place < 0 || (entry.kind == VISIBLE_INDEX && !entry.exact))
            return refuse(&entry, place, all.count, out_error);
        if (contains(&chosen, (size_t)place))
            return error_set(out_error, FLY_EUSAGE, "GPU %u is named twice; leave one of them out",
                             list->devices[place].info.index);
        append(&chosen, (size_t)place);
    }
    *out_chosen = chosen;
    return 0;
}

/* Whether the place was named through an instance of it. */
static void mark_named_instances(struct device_list *list, const char *gpus)
{
    struct choice all = listed(list);
    struct visible_entry entry;

    while (visible_next(&gpus, &entry)) {
        int place = entry.kind == VISIBLE_INSTANCE ? find(list, &all, &entry) : NOWHERE;

        if (place >= 0)
            mark_instance(&list->devices[place].info);
    }
}

int device_select_named(struct device_list *list, const char *gpus, struct fly_error *out_error)
{
    struct choice chosen;
    int code = choose_named(list, gpus, &chosen, out_error);

    if (code < 0)
        return code;
    mark_named_instances(list, gpus);
    keep(list, &chosen);
    return 0;
}
