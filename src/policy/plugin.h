/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PLUGIN_H
#define FLYBALL_POLICY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/shared_object.h"

/*
 * What plug-ins of both kinds (flyball/plugin.h) have in common: opening, checking, and the mark
 * that says which of their functions a thread is in. Every error names the plug-in by the path
 * that the user wrote.
 */
struct plugin {
    char *path;    /* owned */
    char *name;    /* owned copy, since the plug-in may change its own at any time */
    char *content; /* owned: SHA-256 of the file, in hexadecimal */
    struct shared_object object;
};

/* The fields with which the tables of both kinds begin. */
struct plugin_head {
    uint32_t abi;
    uint32_t size;
    const char *name;
    uint32_t version;
};

/* plugin_at knows up to so many plug-ins; more can be open. */
enum { PLUGINS_KNOWN_MAX = 64 };

/*
 * Called right before each plug-in is loaded; NULL: nothing is. A program may set it while it has
 * one thread.
 */
extern void (*plugin_before_open)(void);

/*
 * Loads the file and finds the table `symbol`, which lives as long as the plug-in. It has `size`
 * bytes, or fewer if it was compiled with an older version of the header: then it lacks the last
 * slots. The header's first version had `first_size`. Errors as shared_object_open; FLY_EDATA if the symbol
 * is missing or the name unusable, FLY_EUNSUPPORTED for another interface version.
 */
int plugin_open(const char *path, const char *symbol, size_t first_size, size_t size,
                struct plugin *out_plugin, const struct plugin_head **out_head, struct fly_error *out_error);

/*
 * Checks a table of the program's own in the same way; its name stands for the path. Errors as above. The
 * table stays until plugin_close.
 */
int plugin_of_table(const struct plugin_head *head, size_t first_size, size_t size, struct plugin *out_plugin,
                    struct fly_error *out_error);

/* Harmless on a zeroed struct. */
void plugin_close(struct plugin *plugin);

/* Returns FLY_EDATA: the plug-in lacks a function that it must have. */
int plugin_lacks(const struct plugin *plugin, const char *function, struct fly_error *out_error);

/*
 * The plug-in call that the calling thread is in; `function` is NULL outside of any call. It is
 * written around every call. Only a program's signal handlers read it, which is
 * async-signal-safe.
 */
struct plugin_call {
    const char *path;
    const char *function; /* "propose", "loading" */
};

void plugin_enter(const struct plugin *plugin, const char *function);
void plugin_leave(void);
struct plugin_call plugin_current(void);

/*
 * Returns the path of the open plug-in whose code or data lies at the address, or NULL. It serves
 * for threads that a plug-in started. Async-signal-safe, on any thread.
 */
const char *plugin_at(uintptr_t address);

#endif
