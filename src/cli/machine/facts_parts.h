/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_FACTS_PARTS_H
#define FLYBALL_CLI_MACHINE_FACTS_PARTS_H

#include "cli/frame/call.h"
#include "device/recording/facts.h"
#include "device/recording/pseudonyms.h"

/*
 * The parts of facts_maker.c, each in a file of its own. Every text goes through facts_keep,
 * which removes what names a person or a machine.
 */
enum { FACTS_NAME_MAX = 256, FACTS_SECRETS_MAX = 2 * DEVICES_MAX + 8 };

/* Texts that the list of secrets borrows. */
struct facts_names {
    char host[FACTS_NAME_MAX], label[FACTS_NAME_MAX], user[FACTS_NAME_MAX], account[FACTS_NAME_MAX];
    char home[FACTS_NAME_MAX];
    char gpus[DEVICES_MAX][16], buses[DEVICES_MAX][16];
};

struct facts_maker {
    const struct cli_call *call;
    const struct device_list *list;
    const char *root; /* where sys, proc and dev are */
    struct facts *facts;
    struct pseudonym secrets[FACTS_SECRETS_MAX];
    size_t secret_count;
    struct facts_names names;
    bool exhausted; /* out of memory: then it does not matter what else is missing */
};

/* Finds what names this machine, its user and its GPUs. Call it before any text is kept. */
void facts_find_secrets(struct facts_maker *maker);

/* Returns the text without identifying parts, in the facts' memory; NULL for NULL, and without memory. */
const char *facts_keep(struct facts_maker *maker, const char *text);

/* Returns zeroed entries in the facts' memory; never NULL for a count of 0. */
void *facts_room(struct facts_maker *maker, size_t count, size_t size);

/* Collects what each device is and answers. */
void facts_ask_devices(struct facts_maker *maker);

/* Finds the CPU's energy counters that the kernel shows. */
void facts_find_domains(struct facts_maker *maker);

/* Finds the ways to set limits, where locks lie, and whether each device's limit may be set. */
void facts_find_knobs(struct facts_maker *maker);

/* Watches how the figures of all devices change. */
void facts_watch(struct facts_maker *maker);

#endif
