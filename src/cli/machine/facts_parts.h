/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_FACTS_PARTS_H
#define FLYBALL_CLI_MACHINE_FACTS_PARTS_H

#include "cli/frame/call.h"
#include "device/recording/facts.h"
#include "device/recording/pseudonyms.h"

/*
 * The parts of which facts_maker.c makes facts, each by a file of its own. Every text goes
 * through facts_keep, which leaves out what names a person or a machine.
 */
enum { FACTS_NAME_MAX = 256, FACTS_SECRETS_MAX = 2 * DEVICES_MAX + 8 };

/* Texts that the rows of secrets borrow. */
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
    bool exhausted; /* of memory: what is missing then does not matter */
};

/* What names this machine, its user and its GPUs; before anything is kept. */
void facts_find_secrets(struct facts_maker *maker);

/* The text without what names somebody, in the facts' memory; NULL for NULL, and for none. */
const char *facts_keep(struct facts_maker *maker, const char *text);

/* Zeroed entries in the facts' memory; never NULL for a count of 0. */
void *facts_room(struct facts_maker *maker, size_t count, size_t size);

/* What each device answers and is. */
void facts_ask_devices(struct facts_maker *maker);

/* The energy counters of the CPU that the kernel shows. */
void facts_find_domains(struct facts_maker *maker);

/* The ways to turn knobs, where locks lie, and whether each device's limit may be set. */
void facts_find_knobs(struct facts_maker *maker);

/* Watches how the figures of all devices move. */
void facts_watch(struct facts_maker *maker);

#endif
