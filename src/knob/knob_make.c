/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one turn, by the ways of the site: written down and told to the guard before anything is done. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "knob/knob_private.h"

/* Makes the turn with this intent, and tells it to the guard and the disk before anything is done. */
static int intend(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity, const struct setting *now,
                  const struct setting *value, enum way way, struct fly_error *out_error)
{
    struct turn *turn = knob_turn_of(gpu, quantity), debt;
    int code;

    if (turn == NULL) {
        turn = &gpu->entry.turns[gpu->entry.turn_count++];
        *turn = (struct turn){.quantity = quantity, .previous = *now};
        if (knob_owes(knob, gpu, quantity, now, &debt))
            turn->previous = debt.previous;
    }
    turn->earlier = *now;
    turn->ours = *value;
    turn->way = way;
    if (way == WAY_DAEMON)
        memcpy(gpu->entry.daemon, knob->site.daemon, SITE_PLACE_MAX);
    /*
     * The guard first: if this is the last thing done, the guard removes the journal's entry of what
     * it knows.
     */
    code = guard_tell(&knob->guard, gpu->device->info.uuid, turn, out_error);
    return code < 0 ? code : knob_write_entry(knob, gpu, quantity, out_error);
}

/* Adds a way's refusal to the error text for the case that all refuse. */
static void add_refusal(const struct knob_gpu *gpu, enum quantity quantity, enum way way,
                        const struct fly_error *refusal, struct fly_error *all, bool *is_first)
{
    size_t length = strlen(all->text);

    if (way == WAY_DRIVER)
        *all = *refusal;
    else if (*is_first)
        error_set(all, FLY_EPERM, "setting the %s of GPU %u failed: the driver lets root alone, and %.200s",
                  quantity_facts[quantity].title, gpu->device->info.index, refusal->text);
    else
        snprintf(all->text + length, sizeof all->text - length, "; %.200s", refusal->text);
    *is_first = way == WAY_DRIVER;
}

/* Turns the knob by the first way that accepts it. */
int knob_make_turn(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity, const struct setting *now,
                   const struct setting *value, struct way_result *out_result, struct fly_error *out_error)
{
    struct fly_error all = {.code = FLY_EPERM}, error;
    bool is_first = true;

    for (int i = gpu->denied ? WAY_DRIVER + 1 : WAY_DRIVER; i < WAY_COUNT; i++) {
        enum way way = (enum way)i;
        int code;

        if (!site_offers(&knob->site, way, gpu->device))
            continue;
        code = intend(knob, gpu, quantity, now, value, way, out_error);
        if (code < 0)
            return code;
        code = site_set(&knob->site, way, gpu->device, quantity, value, out_result, &error);
        if (code == 0) {
            gpu->report.way = way;
            gpu->denied = way != WAY_DRIVER;
            return 0;
        }
        if (!site_passes_on(way, code, out_result))
            return error_set(out_error, code, "%s", error.text);
        add_refusal(gpu, quantity, way, &error, &all, &is_first);
    }
    return error_set(out_error, all.code, "%s", all.text);
}
