/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/way/daemon_answer.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { PCI_PARTS = 4 };

/* "0000:07:00.0", of as many digits as either side likes; false for another text. */
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

    return one != NULL && read_pci(one, a) && read_pci(other, b) && memcmp(a, b, sizeof a) == 0;
}

static bool is_turned(const json_t *groups)
{
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const char *group = json_string_value(json_array_get(groups, i));

        if (group != NULL && strcmp(group, "gpu-control") == 0)
            return true;
    }
    return false;
}

/* The GPU's row, or NULL. */
static const json_t *find_row(const json_t *gpus, const struct device_info *gpu)
{
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *row = json_array_get(gpus, i);
        const char *name = json_string_value(json_object_get(row, "name"));

        if (is_same_place(json_string_value(json_object_get(row, "pci_address")), gpu->pci) &&
            (!gpu->emulated || (name != NULL && strcmp(name, gpu->name) == 0)))
            return row;
    }
    return NULL;
}

static int find_gpu(const json_t *answer, const struct device_info *gpu, bool has_token, unsigned *out_id,
                    struct fly_error *out_error)
{
    const json_t *gpus = json_object_get(answer, "gpus"),
                 *groups = json_object_get(answer, "enabled_api_groups");
    const json_t *row, *id;

    if (!json_is_array(gpus) || !json_is_array(groups))
        return error_set(
            out_error, FLY_EDATA,
            "it does not say which GPUs it has and what it does; is it Zeus's daemon, of version 0.5 "
            "or later?");
    if (!is_turned(groups))
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "it turns no knobs: start it as root, with 'gpu-control' among what it enables");
    if (json_is_true(json_object_get(answer, "auth_required")) && !has_token)
        return error_set(out_error, FLY_EPERM,
                         "it wants a token; put the path of a file with one into FLYBALL_KNOB_TOKEN_FILE");
    row = find_row(gpus, gpu);
    id = json_object_get(row, "id");
    if (row == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED, "it has no GPU at '%.31s'%s; is it this machine's?",
                         gpu->pci[0] != '\0' ? gpu->pci : "an unknown place of the PCI bus",
                         gpu->emulated ? " that is emulated" : "");
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= DEVICES_MAX)
        return error_set(out_error, FLY_EDATA, "the number by which it knows GPU %u is none", gpu->index);
    *out_id = (unsigned)json_integer_value(id);
    return 0;
}

int daemon_find_gpu(const char *text, size_t length, const struct device_info *gpu, bool has_token,
                    unsigned *out_id, struct fly_error *out_error)
{
    json_error_t where;
    json_t *answer = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    int code;

    if (answer == NULL)
        return error_set(out_error, FLY_EDATA, "it speaks no JSON (line %d: %.100s); what listens there?",
                         where.line, where.text);
    code = find_gpu(answer, gpu, has_token, out_id, out_error);
    json_decref(answer);
    return code;
}

/* Printable, with one blank for anything else. */
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
    json_t *answer = json_loadb(text, length, 0, NULL);
    json_t *errors = json_object_get(answer, "errors");
    const char *said = json_string_value(json_object_get(answer, "error"));

    /* Of one GPU that was asked about there is one. */
    if (said == NULL && errors != NULL)
        said = json_string_value(json_object_iter_value(json_object_iter(errors)));
    copy_reason(said != NULL ? said : text, said != NULL ? strlen(said) : length, reason);
    json_decref(answer);
}
