/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/way/daemon_answer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "shapes/shape_rows.h"

enum { PCI_PARTS = 4, ARENA_MAX = 64 << 20 };

/* ---- what it answers ---- */

struct gpu_row {
    const char *name, *pci;
    uint32_t id; /* DEVICES_MAX: an impossible one */
};
static const struct gpu_row row_usual = {.id = DEVICES_MAX};
static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(gpu_row, name), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true},
    {SHAPE_AT_AS("pci_address", gpu_row, pci), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL,
     .loose = true},
    {SHAPE_AT(gpu_row, id), SHAPE_IS_U32(0, DEVICES_MAX - 1), .need = SHAPE_OPTIONAL, .loose = true},
};
static const struct shape gpu_shape = {SHAPE_OF(gpu_row, gpu_rows), .defaults = &row_usual};

/* The answer to /discover. */
struct discovery {
    const struct gpu_row *gpus;
    size_t gpu_count;
    const char *const *groups;
    size_t group_count;
    bool wants_token;
    const char *daemon; /* flyballd says who it is; NULL: another one */
};
static const struct shape_field discovery_rows[] = {
    {SHAPE_AT(discovery, gpus), SHAPE_IS_STRUCTS(&gpu_shape, UINT32_MAX, discovery, gpu_count),
     .loose = true},
    {SHAPE_AT_AS("enabled_api_groups", discovery, groups), .kind = SHAPE_TEXTS, .longest = UINT32_MAX,
     .free_text = true, .beside = offsetof(struct discovery, group_count), .loose = true},
    {SHAPE_AT_AS("auth_required", discovery, wants_token), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL,
     .loose = true},
    {SHAPE_AT(discovery, daemon), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL,
     .loose = true},
};
static const struct shape discovery_shape = {SHAPE_OF(discovery, discovery_rows)};

/* Why the daemon refuses: one reason, or one for each GPU. */
struct gpu_error {
    const char *gpu, *text;
};
static const struct shape_field gpu_error_rows[] = {
    {SHAPE_AT(gpu_error, gpu), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(gpu_error, text), SHAPE_IS_TEXT(UINT32_MAX), .null = SHAPE_OR_NULL, .loose = true},
};
static const struct shape gpu_error_shape = {SHAPE_OF(gpu_error, gpu_error_rows)};
struct refusal {
    const char *text;
    const struct gpu_error *errors;
    size_t error_count;
};
static const struct shape_field refusal_rows[] = {
    {SHAPE_AT_AS("error", refusal, text), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL,
     .null = SHAPE_OR_NULL, .loose = true},
    {SHAPE_AT(refusal, errors), .kind = SHAPE_MAP, .shape = &gpu_error_shape, .longest = UINT32_MAX,
     .beside = offsetof(struct refusal, error_count), .need = SHAPE_OPTIONAL, .loose = true},
};
static const struct shape refusal_shape = {SHAPE_OF(refusal, refusal_rows)};

/* ---- which GPU ---- */

/* Reads "0000:07:00.0", with any number of digits per part; false for another text. */
static bool read_pci(const char *text, unsigned long parts[PCI_PARTS])
{
    static const char ends[PCI_PARTS] = {':', ':', '.', '\0'};

    for (int i = 0; i < PCI_PARTS; i++) {
        char *end;

        if (!isxdigit((unsigned char)*text))
            return false;
        parts[i] = strtoul(text, &end, 16);
        if (*end != ends[i])
            return false;
        text = end + 1;
    }
    return true;
}

static bool is_same_place(const char *one, const char *other)
{
    unsigned long a[PCI_PARTS], b[PCI_PARTS];

    return read_pci(one, a) && read_pci(other, b) && memcmp(a, b, sizeof a) == 0;
}

static bool is_turned(const struct discovery *found)
{
    for (size_t i = 0; i < found->group_count; i++) {
        if (strcmp(found->groups[i], "gpu-control") == 0)
            return true;
    }
    return false;
}

static bool is_flyballd(const struct discovery *found)
{
    return found->daemon != NULL && strcmp(found->daemon, "flyballd") == 0;
}

/* Returns the GPU's row, or NULL. */
static const struct gpu_row *find_row(const struct discovery *found, const struct device_info *gpu)
{
    for (size_t i = 0; i < found->gpu_count; i++) {
        const struct gpu_row *row = &found->gpus[i];

        if (is_same_place(row->pci, gpu->pci) && (!gpu->emulated || strcmp(row->name, gpu->name) == 0))
            return row;
    }
    return NULL;
}

static int find_gpu(const struct discovery *found, const struct device_info *gpu, bool has_token,
                    unsigned *out_id, struct fly_error *out_error)
{
    const struct gpu_row *row = find_row(found, gpu);

    if (!is_turned(found))
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "it turns no knobs: start it as root, with 'gpu-control' among what it enables");
    /* flyballd wants none from those to whom it gives rights otherwise, and says so itself if it does. */
    if (found->wants_token && !has_token && !is_flyballd(found))
        return error_set(out_error, FLY_EPERM,
                         "it wants a token; put the path of a file with one into FLYBALL_KNOB_TOKEN_FILE");
    if (row == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED, "it has no GPU at '%.31s'%s; is it this machine's?",
                         gpu->pci[0] != '\0' ? gpu->pci : "an unknown place of the PCI bus",
                         gpu->emulated ? " that is emulated" : "");
    if (row->id == DEVICES_MAX)
        return error_set(out_error, FLY_EDATA, "the number by which it knows GPU %u is none", gpu->index);
    *out_id = row->id;
    return 0;
}

int daemon_find_gpu(const char *text, size_t length, const struct device_info *gpu, bool has_token,
                    unsigned *out_id, bool *out_flyballd, struct fly_error *out_error)
{
    struct discovery found = {.daemon = NULL};
    struct shape_fault fault;
    struct arena arena;
    int code;

    arena_init(&arena, ARENA_MAX);
    code = shape_read_text(&discovery_shape, text, length, SHAPE_LENIENT, &arena, &found, &fault, out_error);
    if (code == 0)
        *out_flyballd = is_flyballd(&found);
    if (code == 0)
        code = find_gpu(&found, gpu, has_token, out_id, out_error);
    else if (code != FLY_ENOMEM && fault.no_json)
        code = error_set(out_error, FLY_EDATA, "it speaks no JSON (line %zu: %.100s); what listens there?",
                         fault.line, fault.expected);
    else if (code != FLY_ENOMEM)
        code = error_set(
            out_error, FLY_EDATA,
            "it does not say which GPUs it has and what it does; is it Zeus's daemon, of version 0.5 "
            "or later?");
    arena_deinit(&arena);
    return code;
}

/* ---- why not ---- */

/* Copies printable characters, and one blank for anything else. */
static void copy_reason(const char *text, size_t length, char reason[DAEMON_REASON_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < length && count + 1 < DAEMON_REASON_MAX; i++) {
        char c = text[i];

        if ((unsigned char)c < ' ' || c == 0x7F)
            c = ' ';
        if (c != ' ' || (count > 0 && reason[count - 1] != ' '))
            reason[count++] = c;
    }
    while (count > 0 && reason[count - 1] == ' ')
        count--;
    reason[count] = '\0';
}

void daemon_reason(const char *text, size_t length, char reason[DAEMON_REASON_MAX])
{
    struct refusal refusal = {.text = NULL};
    const char *said;
    struct arena arena;

    arena_init(&arena, ARENA_MAX);
    (void)shape_read_text(&refusal_shape, text, length, SHAPE_FOREIGN, &arena, &refusal, NULL, NULL);
    said = refusal.text;
    /* Only one GPU was asked about, so there is one. */
    if (said == NULL && refusal.error_count > 0)
        said = refusal.errors[0].text;
    copy_reason(said != NULL ? said : text, said != NULL ? strlen(said) : length, reason);
    arena_deinit(&arena);
}
