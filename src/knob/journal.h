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
 * What was set before knobs were turned, on disk, for the next program that comes after a session
 * that could not put it back. There is a file for each GPU, "UUID.turned", and "UUID.kept" for
 * settings that were meant to outlive their session; each has a second one, "UUID.turned2" and
 * "UUID.kept2". "UUID.owed" has what could not be put back as it was (debt.h). A file is written whole,
 * synced, and removed once everything in it is put back:
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
 * pid and start time (in ticks since the boot) distinguish a process from a later one with the
 * same pid. A turn is the previous, the earlier and our value, and the way by which it was made:
 * none for the driver; a ceiling of 0 MHz is none. The daemon's place comes before the turns. A
 * file is not believed if it belongs to a user other than root and this one, or has several
 * names: otherwise anyone who may write there could make root set any value.
 *
 * Different versions run side by side. The first versions take a file with a turn that they do not
 * know for damaged and move it aside. So the kinds in their files never change: the quantities
 * power_limit_mw, clock_ceiling_mhz and persistence_mode, by the ways driver and daemon.
 * All other turns go into the second file, which those versions do not list. It begins with
 * "flyball-journal 2", and a set of workload profiles in it is a hexadecimal number, bit N of which is
 * profile N:
 *
 *     turn workload_profiles 0 0 82
 *     turn performance_level 0 0 1
 *
 * With a turn of memory_clock_ceiling_mhz it begins with "flyball-journal 3". The floor under a clock is not
 * written down: a clock is put back by freeing it.
 *
 * A change that this version could not read raises that number. A file of a higher number than it
 * knows is neither read nor moved: whoever wrote it puts back what it says. Thread-safe for different
 * GPUs.
 */
enum { JOURNAL_PROGRAM_MAX = 64, JOURNAL_BOOT_MAX = 40, JOURNAL_TEXT_MAX = 2048, JOURNAL_PATH_MAX = 512 };

/* The files; the second of two holds what the first versions do not know. */
enum journal_kind {
    JOURNAL_TURNED,
    JOURNAL_TURNED_2,
    JOURNAL_OWED, /* of all quantities; see debt.h */
    JOURNAL_KEPT,
    JOURNAL_KEPT_2,
    JOURNAL_KIND_COUNT
};

/* Returns the file that has turns of this quantity: of one session's two, of which `kind` is the first. */
enum journal_kind journal_kind_of(enum journal_kind kind, enum quantity quantity);

/* Returns whether the file is about settings that were meant to outlive their session. */
bool journal_is_kept(enum journal_kind kind);

struct journal_entry {
    char uuid[DEVICE_TEXT_MAX];
    char boot[JOURNAL_BOOT_MAX];
    pid_t pid;
    uint64_t start_ticks;
    char program[JOURNAL_PROGRAM_MAX];
    int64_t date_s;              /* since 1970 */
    char daemon[SITE_PLACE_MAX]; /* as in struct site; "" if no turn needs it */
    size_t turn_count;
    struct turn turns[TURNS_MAX]; /* in the order in which they were made */
};

/* Gives the file of a GPU; FLY_EUNSUPPORTED for a UUID that cannot be part of a file's name. */
int journal_path(const char *directory, const char *uuid, const char *suffix, char out_path[JOURNAL_PATH_MAX],
                 struct fly_error *out_error);

/* Makes an entry by this process at this moment, without turns. */
void journal_begin(const char *uuid, const char *program, struct journal_entry *out_entry);

/*
 * Writing, reading, looking and removing wait five seconds for the disk, and then no more until it answers:
 * that is FLY_EBUSY (runtime_directory_call).
 */

/*
 * Writes those turns of the entry that belong into this file, or removes it if there are none; that
 * is on disk when this returns. FLY_EWRITE, FLY_EPERM, FLY_ENOMEM, FLY_ENOTFOUND.
 */
int journal_write(const char *directory, enum journal_kind kind, const struct journal_entry *entry,
                  struct fly_error *out_error);

/*
 * Reads an entry. FLY_ENOTFOUND if there is none; FLY_EDATA for one that is incomplete or not of
 * this GPU, FLY_EPERM for one that may not be read or believed, FLY_EUNSUPPORTED for one of a newer
 * version, FLY_EREAD.
 */
int journal_read(const char *directory, enum journal_kind kind, const char *uuid,
                 struct journal_entry *out_entry, struct fly_error *out_error);

/*
 * For root: reads the entry of any user, and gives that user. Errors as journal_read. A file that
 * is no entry gives its owner in `out_owner` too, and 0 is root; for a file with several names
 * nobody knows who gave it this one.
 */
enum { JOURNAL_SOMEBODY = -2 };
int journal_read_any(const char *directory, enum journal_kind kind, const char *uuid,
                     struct journal_entry *out_entry, uid_t *out_owner, struct fly_error *out_error);

/* Returns whether something of that name exists; true also if the disk does not answer. */
bool journal_exists(const char *directory, enum journal_kind kind, const char *uuid);

/* Returns whether the directory has entries of that kind. */
bool journal_has(const char *directory, enum journal_kind kind);

/* Removes the entry, on disk when this returns; a missing entry is no error. FLY_EWRITE, FLY_EPERM. */
int journal_remove(const char *directory, enum journal_kind kind, const char *uuid,
                   struct fly_error *out_error);

/*
 * Moves a corrupt file aside, to "UUID.turned.corrupt", where it is never read again but people
 * can look at it. FLY_EWRITE.
 */
int journal_set_aside(const char *directory, enum journal_kind kind, const char *uuid,
                      struct fly_error *out_error);

/* Returns when a process began, in ticks since the boot; 0: it does not exist, or that is unknown. */
uint64_t journal_start_of(pid_t pid);

/* Returns whether the entry is of this boot: a restart of the machine resets what it describes. */
bool journal_is_of_this_boot(const struct journal_entry *entry);

/* Returns whether the process that made the entry is alive; unknown if its pid is of another namespace. */
bool journal_maker_lives(const struct journal_entry *entry);

/*
 * Write an entry as text, and parse it; the parser takes complete texts only. FLY_EDATA names the
 * line; FLY_EUNSUPPORTED for the text of a newer version.
 */
size_t journal_format(const struct journal_entry *entry, char text[JOURNAL_TEXT_MAX]);
int journal_parse(const char *text, struct journal_entry *out_entry, struct fly_error *out_error);

/* The name of an entry. */
struct journal_name {
    char uuid[DEVICE_TEXT_MAX];
    enum journal_kind kind;
};

/* Lists the entries of a directory, at most `maximum`; returns how many there are, or FLY_EREAD. */
int journal_list(const char *directory, struct journal_name *out_names, size_t maximum,
                 struct fly_error *out_error);

#endif
