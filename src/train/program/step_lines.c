/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/process_stat.h"
#include "train/program/step_words.h"

/*
 * Reads the lines of a file of steps that were not taken yet, to find who wrote them: at most one MiB. Calls
 * `go_on` with each line's sender; `go_on` returns false to stop. Returns false when it was stopped.
 */
typedef bool step_ahead_look(void *state, const struct step_sender *sender);

static bool names_nobody(const struct step_sender *sender)
{
    return sender->rank < 0 && sender->pid < 0;
}

/* The order of ranks; a sender without a rank comes last. */
static int order_of(const struct step_sender *sender)
{
    return sender->rank >= 0 ? sender->rank : INT_MAX;
}

static bool is_ignored(const struct step_streams *streams, int pid)
{
    for (size_t i = 0; i < streams->ignored_count && i < STEP_IGNORED_MAX; i++) {
        if (streams->ignored[i] == pid)
            return true;
    }
    return false;
}

/* Whether both are the same process: the program may not know the rank that its hook knows. */
static bool step_sender_is(const struct step_sender *sender, const struct step_sender *other)
{
    return sender->pid == other->pid &&
           (sender->rank == other->rank || (sender->pid >= 0 && (sender->rank < 0 || other->rank < 0)));
}

/* Whether the sender comes before the process that counts, or none counts yet. */
static bool step_streams_is_lower(const struct step_streams *streams, const struct step_sender *sender)
{
    return !names_nobody(sender) && (!streams->any || order_of(sender) < order_of(&streams->counted));
}

/* How a sender relates to the process that counts. A sender that comes before that takes its place. */
static enum step_relation step_streams_relation(struct step_streams *streams,
                                                const struct step_sender *sender)
{
    if (names_nobody(sender))
        return STEP_COUNTED;
    if (streams->any && step_sender_is(sender, &streams->counted)) {
        if (streams->counted.rank < 0)
            streams->counted.rank = sender->rank;
        return STEP_COUNTED;
    }
    if (step_streams_is_lower(streams, sender)) {
        streams->any = true;
        streams->counted = *sender;
        streams->ignored_count = 0;
        streams->skip_steps = streams->steps;
        streams->skip_reports = streams->reports;
        streams->hook_steps = false;
        return STEP_COUNTED;
    }
    if (sender->rank != streams->counted.rank)
        return STEP_OTHER;
    return is_ignored(streams, sender->pid) ? STEP_OTHER : STEP_NEXT_PROCESS;
}

static void step_streams_ignore(struct step_streams *streams, const struct step_sender *sender)
{
    streams->ignored[streams->ignored_count++ % STEP_IGNORED_MAX] = sender->pid;
}

/* A STEP_NEXT_PROCESS takes the place of a process that has ended, or is ignored because that one lives. */
static void step_streams_follow(struct step_streams *streams, const struct step_sender *sender)
{
    int before = streams->counted.pid;

    streams->counted = *sender;
    streams->own_steps = streams->own_reports = streams->hook_steps = false;
    streams->steps = streams->reports = streams->skip_steps = streams->skip_reports = 0;
    step_streams_ignore(streams, &(struct step_sender){.rank = sender->rank, .pid = before});
}

/* Leaves out one more line if any is left to leave out; returns whether it did. */
static bool skip(uint64_t *left)
{
    if (*left == 0)
        return false;
    --*left;
    return true;
}

/* Whether a step of the program, or of its hook, is not one that the other has told. */
static bool is_step_of_one(struct step_streams *streams, bool hook)
{
    bool first = !hook && !streams->own_steps, again = first && streams->hook_steps;

    if (hook)
        streams->hook_steps |= !streams->own_steps;
    else
        streams->own_steps = true;
    return hook ? !streams->own_steps : !again;
}

static bool is_report_of_one(struct step_streams *streams, bool hook)
{
    streams->own_reports |= !hook;
    return !hook || !streams->own_reports;
}

/* Whether an event of the counted process is new. */
static bool is_new(struct step_streams *streams, bool hook, enum step_event event)
{
    switch (event) {
    case STEP_BEGIN:
        if (!is_step_of_one(streams, hook) || skip(&streams->skip_steps))
            return false;
        streams->steps++;
        return true;
    case STEP_REPORT:
        if (!is_report_of_one(streams, hook) || skip(&streams->skip_reports))
            return false;
        streams->reports++;
        return true;
    case STEP_EPOCH_BEGIN:
    case STEP_EPOCH_END:
        return streams->skip_steps == 0;
    case STEP_OUT_OF_MEMORY:
    case STEP_SESSION:
    case STEP_HOOK:
    case STEP_MALFORMED:
        break;
    }
    return true;
}

/* Whether a line of the sender counts. Call it once for each line. */
static bool step_streams_counts(struct step_streams *streams, const struct step_sender *sender,
                                enum step_event event)
{
    bool of_anybody = event == STEP_OUT_OF_MEMORY || event == STEP_SESSION || event == STEP_MALFORMED;

    if (of_anybody)
        return true;
    if (names_nobody(sender))
        return event == STEP_BEGIN ? is_step_of_one(streams, false)
                                   : event != STEP_REPORT || is_report_of_one(streams, false);
    if (!step_sender_is(sender, &streams->counted))
        return false;
    return is_new(streams, sender->hook, event);
}

enum { AHEAD_MAX = 1 << 20, PIECE_MAX = 4096, SENDER_TEXT_MAX = 64 };

/* The begin of a line, which names its sender. */
struct beginning {
    char text[SENDER_TEXT_MAX];
    size_t length;
};

static bool take_byte(struct beginning *line, char byte, step_ahead_look *go_on, void *state)
{
    struct step_sender sender;

    if (byte != '\n') {
        if (line->length < sizeof line->text - 1)
            line->text[line->length++] = byte;
        return true;
    }
    line->text[line->length] = '\0';
    line->length = 0;
    (void)step_line_sender(line->text, &sender);
    return go_on(state, &sender);
}

static bool step_ahead(int file, off_t from, step_ahead_look *go_on, void *state)
{
    struct beginning line = {.length = 0};
    char piece[PIECE_MAX];
    ssize_t count;

    for (off_t at = from; at < from + AHEAD_MAX; at += count) {
        count = pread(file, piece, sizeof piece, at);
        if (count <= 0)
            break;
        for (ssize_t i = 0; i < count; i++) {
            if (!take_byte(&line, piece[i], go_on, state))
                return false;
        }
    }
    return true;
}

enum { PATH_BYTES_MAX = 64, FREE_EVERY = 1 << 15, LINE_COST = 16 };

static const double budget_most_bytes = 1 << 24, budget_bytes_per_s = 1 << 21;

/* For a lower rank; between two looks when the system cannot tell of writes; and during a flood. */
static const double hold_s = 0.5, ask_s = 0.005, discard_s = 0.02;

const char step_lines_flood[] =
    "the program wrote more lines than any training has steps, over 2 MiB a second; from there on they were "
    "thrown away unread; write one line for each step";

static void watch(struct step_lines *lines)
{
    char path[PATH_BYTES_MAX];

    lines->notice = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    snprintf(path, sizeof path, "/proc/self/fd/%d", lines->file.file);
    if (lines->notice >= 0)
        lines->watched = inotify_add_watch(lines->notice, path, IN_MODIFY);
    if (lines->notice >= 0 && lines->watched < 0) {
        close(lines->notice);
        lines->notice = -1;
    }
}

int step_lines_open(struct step_lines *out_lines, struct fly_error *out_error)
{
    int result;

    *out_lines = (struct step_lines)STEP_LINES_NONE;
    result = step_file_open(&out_lines->file, out_error);
    if (result < 0)
        return result;
    out_lines->budget_bytes = budget_most_bytes;
    out_lines->budgeted = mono_now();
    watch(out_lines);
    return 0;
}

void step_lines_passed(struct step_lines *lines)
{
    step_file_passed(&lines->file);
}

int step_lines_fd(const struct step_lines *lines)
{
    return lines->notice;
}

double step_lines_wait_s(const struct step_lines *lines, double usual_s)
{
    if (lines->flooded)
        return fmin(usual_s, discard_s);
    if (lines->held)
        return fmin(usual_s, fmax(mono_elapsed_s(mono_now(), lines->held_until), 0));
    return lines->notice >= 0 ? usual_s : fmin(usual_s, ask_s);
}

void step_lines_noticed(struct step_lines *lines)
{
    char events[STEP_BYTES_MAX];

    while (lines->notice >= 0 && read(lines->notice, events, sizeof events) > 0)
        ;
}

/* Empties the file. A line written at the same moment is lost. */
static void cut(struct step_lines *lines)
{
    (void)!ftruncate(lines->file.file, 0);
    lines->read_to = lines->freed_to = 0;
}

/* Reads no more of the file, and gives back its memory again and again. */
static void discard(struct step_lines *lines)
{
    if (lines->notice >= 0 && lines->watched >= 0)
        (void)inotify_rm_watch(lines->notice, lines->watched);
    lines->watched = -1;
    lines->flooded = true;
    lines->at = lines->count = lines->length = 0;
    lines->complete = lines->held = false;
    cut(lines);
}

/* Accepts more as time passes, but no more at once when everything has been read. */
static void budget(struct step_lines *lines, bool all_read)
{
    struct mono_time now = mono_now();

    lines->budget_bytes += budget_bytes_per_s * mono_elapsed_s(lines->budgeted, now);
    lines->budgeted = now;
    if (all_read)
        lines->budget_bytes = fmin(lines->budget_bytes, budget_most_bytes);
}

/* Stays below the user's limit on file sizes (ulimit -f): it would end a program that writes beyond it. */
static void heed_limit(struct step_lines *lines, off_t size)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (rlim_t)size > limit.rlim_cur / 2)
        cut(lines);
}

static void give_back(struct step_lines *lines)
{
    if (lines->read_to - lines->freed_to < FREE_EVERY)
        return;
    (void)fallocate(lines->file.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, lines->freed_to,
                    lines->read_to - lines->freed_to);
    lines->freed_to = lines->read_to;
    step_file_reserve(&lines->file, lines->read_to);
}

/* Reads on; false when nothing is there. When the program cut the file short, starts from its begin. */
static bool fill(struct step_lines *lines)
{
    off_t size = step_lines_end(lines);
    ssize_t count;

    give_back(lines);
    if (size < lines->read_to)
        lines->read_to = lines->freed_to = size;
    budget(lines, size == lines->read_to);
    if (lines->budget_bytes < 0 || (double)(size - lines->read_to) > lines->budget_bytes) {
        discard(lines);
        return false;
    }
    count = pread(lines->file.file, lines->bytes, sizeof lines->bytes, lines->read_to);
    lines->at = lines->count = 0;
    if (count <= 0) {
        heed_limit(lines, size);
        return false;
    }
    lines->count = (size_t)count;
    lines->read_to += count;
    lines->budget_bytes -= (double)count;
    return true;
}

/* Completes a whole line in `line`; false when there is none yet. */
static bool complete_line(struct step_lines *lines)
{
    while (!lines->complete) {
        char byte;

        if (lines->at == lines->count && !fill(lines))
            return false;
        byte = lines->bytes[lines->at++];
        if (byte != '\n' && lines->length < sizeof lines->line)
            lines->line[lines->length++] = byte;
        lines->complete = byte == '\n';
    }
    return true;
}

/* Finds the lowest rank among the lines that have come. */
static bool find_lowest(void *state, const struct step_sender *sender)
{
    struct step_sender *lowest = state;

    if (sender->rank >= 0 && sender->rank < lowest->rank)
        *lowest = *sender;
    return lowest->rank > 0;
}

/* Whether to wait for a lower rank than the first that reported. When not, the lowest so far counts. */
static bool is_held(struct step_lines *lines, const struct step_sender *sender)
{
    struct step_sender lowest = *sender;

    if (lines->streams.any || sender->rank <= 0)
        return false;
    if (!lines->held)
        lines->held_until = mono_after_s(mono_now(), hold_s);
    lines->held = true;
    step_ahead(lines->file.file, step_lines_at(lines), find_lowest, &lowest);
    if (lowest.rank > 0 && !lines->last && mono_elapsed_s(mono_now(), lines->held_until) > 0)
        return true;
    lines->held = false;
    (void)step_streams_relation(&lines->streams, &lowest);
    return false;
}

/* Goes on until a line of that process comes. */
static bool is_other(void *state, const struct step_sender *sender)
{
    const struct step_sender *wanted = state;

    return !step_sender_is(sender, wanted);
}

/* Whether no more lines can come from the process that counts. */
static bool is_over(struct step_lines *lines)
{
    struct step_sender counted = lines->streams.counted;
    struct process_stat stat;

    if (counted.pid > 0 && process_stat_read(counted.pid, &stat) && !process_stat_is_over(&stat))
        return false;
    return step_ahead(lines->file.file, step_lines_at(lines), is_other, &counted);
}

static bool counts(struct step_lines *lines, const struct step_sender *sender, enum step_event event)
{
    bool is_of_training =
        event == STEP_BEGIN || event == STEP_EPOCH_BEGIN || event == STEP_EPOCH_END || event == STEP_REPORT;

    if (is_of_training && step_streams_relation(&lines->streams, sender) == STEP_NEXT_PROCESS) {
        if (is_over(lines))
            step_streams_follow(&lines->streams, sender);
        else
            step_streams_ignore(&lines->streams, sender);
    }
    return step_streams_counts(&lines->streams, sender, event);
}

/* Takes what the hook says of itself; it is no event for the caller. */
static void take_hook(struct step_lines *lines, const struct step_sender *sender)
{
    struct step_sender again;
    bool counted = !lines->streams.any || step_sender_is(sender, &lines->streams.counted);

    lines->line[lines->length] = '\0';
    step_hook_take(&lines->hook, step_line_sender(lines->line, &again), counted);
    lines->events[STEP_HOOK]++;
}

bool step_lines_next(struct step_lines *lines, enum step_event *out_event)
{
    if (lines->file.file < 0)
        return false;
    if (lines->flooded)
        cut(lines);
    while (!lines->flooded && complete_line(lines)) {
        struct step_report report = lines->report;
        struct step_sender sender;
        enum step_event event = step_line_event(lines->line, lines->length, &sender, &report);

        if (is_held(lines, &sender))
            return false;
        if (event == STEP_HOOK)
            take_hook(lines, &sender);
        lines->complete = false;
        lines->length = 0;
        lines->budget_bytes -= LINE_COST;
        if (event != STEP_HOOK && counts(lines, &sender, event)) {
            lines->report = report;
            lines->events[event]++;
            lines->hook.steps += event == STEP_BEGIN && sender.hook;
            *out_event = event;
            return true;
        }
    }
    return false;
}

void step_lines_last(struct step_lines *lines)
{
    lines->last = true;
}

off_t step_lines_at(const struct step_lines *lines)
{
    return lines->read_to - (off_t)(lines->count - lines->at);
}

off_t step_lines_end(const struct step_lines *lines)
{
    struct stat status;

    return lines->file.file >= 0 && fstat(lines->file.file, &status) == 0 ? status.st_size : 0;
}

void step_lines_close(struct step_lines *lines)
{
    step_file_close(&lines->file);
    if (lines->notice >= 0)
        close(lines->notice);
    lines->notice = lines->watched = -1;
}
