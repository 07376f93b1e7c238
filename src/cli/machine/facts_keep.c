/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what names this machine, its user and its GPUs, and removes it from texts. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/harmless.h"
#include "cli/machine/facts_parts.h"

enum { TEXT_MAX = 2 * FLY_ERROR_TEXT_MAX, ACCOUNT_TEXTS_MAX = 4096 };

/*
 * Makes the text no longer than it was, so that it still fits, and removes characters that a file
 * of facts may not hold.
 */
static void make_fit(struct buffer *kept, size_t maximum)
{
    kept->length = kept->length < maximum ? kept->length : maximum;
    kept->data[kept->length] = '\0';
    kept->length = harmless_make(kept->data, kept->length, false);
}

const char *facts_keep(struct facts_maker *maker, const char *text)
{
    struct buffer kept;
    const char *copy;

    if (text == NULL || text[0] == '\0')
        return NULL;
    buffer_init(&kept, TEXT_MAX);
    pseudonyms_put(maker->secrets, maker->secret_count, text, &kept);
    if (kept.error == 0 && kept.length > 0)
        make_fit(&kept, strlen(text));
    copy = kept.error == 0 ? arena_strdup(&maker->facts->arena, kept.data) : NULL;
    maker->exhausted = maker->exhausted || copy == NULL;
    buffer_deinit(&kept);
    return copy;
}

void *facts_room(struct facts_maker *maker, size_t count, size_t size)
{
    void *room = arena_alloc(&maker->facts->arena, count > 0 ? count : 1, size);

    maker->exhausted = maker->exhausted || room == NULL;
    return room;
}

/* ---- what names somebody ---- */

static void add_secret(struct facts_maker *maker, const char *secret, const char *instead)
{
    maker->secrets[maker->secret_count++] = (struct pseudonym){secret, instead};
}

/* Skips the user root, who is on every machine, and a home directory "/". */
static void find_people(struct facts_names *names)
{
    const char *user = getenv("USER"), *home = getenv("HOME");
    char texts[ACCOUNT_TEXTS_MAX];
    struct passwd entry, *account = NULL;

    if (gethostname(names->host, sizeof names->host - 1) == 0)
        snprintf(names->label, sizeof names->label, "%.*s", (int)strcspn(names->host, "."), names->host);
    if (user != NULL && strcmp(user, "root") != 0)
        snprintf(names->user, sizeof names->user, "%s", user);
    if (getpwuid_r(getuid(), &entry, texts, sizeof texts, &account) == 0 && account != NULL &&
        strcmp(account->pw_name, "root") != 0)
        snprintf(names->account, sizeof names->account, "%s", account->pw_name);
    if (home != NULL && strlen(home) > 1)
        snprintf(names->home, sizeof names->home, "%s", home);
}

/* Returns how many GPUs come before it on the bus. */
static size_t bus_order(const struct device_list *list, const struct device_info *info)
{
    size_t order = 0;

    for (size_t i = 0; i < list->count; i++)
        order += list->devices[i].info.pci[0] != '\0' && strcmp(list->devices[i].info.pci, info->pci) < 0;
    return order;
}

void facts_find_secrets(struct facts_maker *maker)
{
    struct facts_names *names = &maker->names;

    find_people(names);
    if (strcmp(maker->root, "/") != 0)
        add_secret(maker, maker->root, "");
    add_secret(maker, names->host, "HOST");
    add_secret(maker, names->label, "HOST");
    add_secret(maker, names->user, "USER");
    add_secret(maker, names->account, "USER");
    add_secret(maker, names->home, "PATH");
    for (size_t i = 0; i < maker->list->count; i++) {
        const struct device_info *info = &maker->list->devices[i].info;

        if (info->kind != DEVICE_GPU)
            continue;
        snprintf(names->gpus[i], sizeof names->gpus[i], "GPU-%u", info->index);
        snprintf(names->buses[i], sizeof names->buses[i], "bus-%zu", bus_order(maker->list, info));
        add_secret(maker, info->uuid, names->gpus[i]);
        add_secret(maker, info->pci, names->buses[i]);
    }
}
