/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_JOURNAL_H
#define FLYBALL_KNOB_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "device/device.h"
#include "knob/turn.h"

/*
 * What stood before knobs were turned, on disk, for whoever comes after a session that
 * could not put it back. A file for each GPU, "UUID.turned", and "UUID.kept" for
 * what was meant to outlive its session; written whole, synced, and removed when it
 * is put back:
 *
 *     flyball-journal 1
 *     gpu GPU-8f3a...
 *     boot 2f6d...
 *     by 4711 123456 flyball power
 *     date 1700000000
 *     daemon /run/zeusd/zeusd.sock
 *     turn power_limit_mw 400000 250000 250000 daemon
 *     turn clock_ceiling_mhz 0 1200 1200
 *     end
 *
 * pid and start time (in ticks since the boot) tell a process from a later one of the
 * same pid; a turn is its previous, earlier and our value, and the way by which it was
 * made: none for the driver; a ceiling of 0 MHz is none. Where other ways are found stands
 * before the turns. A file of another user than root or ourselves is not believed, nor one
 * with several names: who may write there could otherwise have root set what he likes.
 *
 * Versions run beside each other, and one that finds a turn of a kind that it does not know takes
 * the file for damaged and moves it aside. So the kinds of this file stay what they are: the
 * quantities power_limit_mw, clock_ceiling_mhz and persistence_mode, by the ways driver, commands
 * and daemon. A new kind of turn goes into a file of another suffix (".turned2"), which older
 * versions do not list, and leaves their turns in this one. Thread-safe for different GPUs.
 */
enum { JOURNAL_PROGRAM_MAX = 64, JOURNAL_BOOT_MAX = 40, JOURNAL_TEXT_MAX = 2048, JOURNAL_PATH_MAX = 512 };

enum journal_kind { JOURNAL_TURNED, JOURNAL_KEPT, JOURNAL_KIND_COUNT };

struct journal_entry {
    char uuid[DEVICE_TEXT_MAX];
    char boot[JOURNAL_BOOT_MAX];
    pid_t pid;
    uint64_t start_ticks;
    char program[JOURNAL_PROGRAM_MAX];
    int64_t date_s;                         /* since 1970 */
    char places[WAY_COUNT][SITE_PLACE_MAX]; /* as in struct site; "" where no turn needs it */
    size_t turn_count;
    struct turn turns[TURNS_MAX]; /* in the order in which they were made */
};

/* The file of a GPU: FLY_EUNSUPPORTED for a UUID that can be no part of a file's name. */
int journal_path(const char *directory, const char *uuid, const char *suffix, char out_path[JOURNAL_PATH_MAX],
                 struct fly_error *out_error);

/* An entry by this process at this moment, without turns. */
void journal_begin(const char *uuid, const char *program, struct journal_entry *out_entry);

/* On disk when it returns. FLY_EWRITE, FLY_EPERM, FLY_ENOMEM, FLY_ENOTFOUND. */
int journal_write(const char *directory, enum journal_kind kind, const struct journal_entry *entry,
                  struct fly_error *out_error);

/*
 * FLY_ENOTFOUND without an entry; FLY_EDATA for one that is not whole or not of this
 * GPU, FLY_EPERM for one that may not be read or believed, FLY_EREAD.
 */
int journal_read(const char *directory, enum journal_kind kind, const char *uuid,
                 struct journal_entry *out_entry, struct fly_error *out_error);

/*
 * For root: the entry whoever wrote it, and the user who did. The errors of journal_read; a file
 * that is no entry leaves its owner in `out_owner` too, and 0 is root; of a file with several names it
 * is not known who gave it this one.
 */
enum { JOURNAL_SOMEBODY = -2 };
int journal_read_any(const char *directory, enum journal_kind kind, const char *uuid,
                     struct journal_entry *out_entry, uid_t *out_owner, struct fly_error *out_error);

/* Whether something of that name is there. */
bool journal_exists(const char *directory, enum journal_kind kind, const char *uuid);

/* Whether the directory has entries of that kind. */
bool journal_has(const char *directory, enum journal_kind kind);

/* Removes it, on disk when it returns; no entry is fine. FLY_EWRITE, FLY_EPERM. */
int journal_remove(const char *directory, enum journal_kind kind, const char *uuid,
                   struct fly_error *out_error);

/*
 * Moves a corrupt file aside, to "UUID.turned.corrupt", where it is never read again but
 * can be looked at. FLY_EWRITE.
 */
int journal_set_aside(const char *directory, enum journal_kind kind, const char *uuid,
                      struct fly_error *out_error);

/* Whether the entry is of this boot: a restart of the machine resets what it speaks of. */
bool journal_is_of_this_boot(const struct journal_entry *entry);

/* Whether the process that made it lives; with its pid in another namespace that cannot be told. */
bool journal_maker_lives(const struct journal_entry *entry);

/* The text of an entry, and back; the parser takes whole texts only. FLY_EDATA names the line. */
size_t journal_format(const struct journal_entry *entry, char text[JOURNAL_TEXT_MAX]);
int journal_parse(const char *text, struct journal_entry *out_entry, struct fly_error *out_error);

/* What an entry is called. */
struct journal_name {
    char uuid[DEVICE_TEXT_MAX];
    enum journal_kind kind;
};

/* The entries of a directory, at most `maximum`; returns how many there are, or FLY_EREAD. */
int journal_list(const char *directory, struct journal_name *out_names, size_t maximum,
                 struct fly_error *out_error);

#endif
