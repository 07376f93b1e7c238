/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/windows.h"

#include <stdlib.h>
#include <string.h>

bool windows_init(struct windows *windows, uint32_t count)
{
    *windows = (struct windows){.count = count, .slots = calloc(count, sizeof windows->slots[0])};
    if (windows->slots == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        windows->slots[i].next_free = i + 1;
    pthread_mutex_init(&windows->lock, NULL);
    return true;
}

void windows_deinit(struct windows *windows)
{
    free(windows->slots);
    windows->slots = NULL;
}

/* Copies a name, cut at the end of a UTF-8 character. */
static void copy_name(char *out, size_t size, const char *name)
{
    size_t length = name != NULL ? strnlen(name, size) : 0;

    if (length == size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--;
    }
    if (length > 0)
        memcpy(out, name, length);
    out[length] = '\0';
}

bool windows_take(struct windows *windows, const char *name, uint32_t *out_slot)
{
    uint32_t slot;

    pthread_mutex_lock(&windows->lock);
    slot = windows->first_free;
    if (slot < windows->count)
        windows->first_free = windows->slots[slot].next_free;
    pthread_mutex_unlock(&windows->lock);
    if (slot == windows->count)
        return false;
    copy_name(windows->slots[slot].name, sizeof windows->slots[slot].name, name);
    *out_slot = slot;
    return true;
}

fly_window windows_open(struct windows *windows, uint32_t slot)
{
    struct window *window = &windows->slots[slot];
    fly_window handle;

    pthread_mutex_lock(&windows->lock);
    window->turn++;
    window->open = true;
    handle = (fly_window)window->turn << 32 | ((fly_window)slot + 1);
    pthread_mutex_unlock(&windows->lock);
    return handle;
}

bool windows_claim(struct windows *windows, fly_window window, uint32_t *out_slot)
{
    fly_window place = window & UINT32_MAX;
    struct window *found;
    bool claimed;

    if (place == 0 || place > windows->count)
        return false;
    found = &windows->slots[place - 1];
    pthread_mutex_lock(&windows->lock);
    claimed = found->open && found->turn == window >> 32;
    if (claimed)
        found->open = false;
    pthread_mutex_unlock(&windows->lock);
    *out_slot = (uint32_t)(place - 1);
    return claimed;
}

void windows_reopen(struct windows *windows, uint32_t slot)
{
    pthread_mutex_lock(&windows->lock);
    windows->slots[slot].open = true;
    pthread_mutex_unlock(&windows->lock);
}

void windows_give_back(struct windows *windows, uint32_t slot)
{
    pthread_mutex_lock(&windows->lock);
    windows->slots[slot].next_free = windows->first_free;
    windows->first_free = slot;
    pthread_mutex_unlock(&windows->lock);
}
