/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/memory_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char header[] = "Traceback (most recent call last):";

static const char *const chains[] = {"During handling of the above exception",
                                     "The above exception was the direct cause"};

/* What a launcher or another rank raises after a process has failed. */
static const char *const relays[] = {"ChildFailedError",
                                     "CalledProcessError",
                                     "ProcessRaisedException",
                                     "ProcessExitedException",
                                     "DistBackendError",
                                     "DistNetworkError",
                                     "RayTaskError",
                                     "WorkerCrashedError",
                                     "ActorDiedError",
                                     "BrokenProcessPool",
                                     "BrokenPipeError",
                                     "ConnectionResetError",
                                     "ConnectionError",
                                     "EOFError",
                                     "Connection closed by",
                                     "Connection reset by",
                                     "KeyboardInterrupt",
                                     "SystemExit",
                                     "NCCL",
                                     "DataLoader worker"};

static bool has_one(const char *line, const char *const *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(line, pieces[i]) != NULL)
            return true;
    }
    return false;
}

/*
 * Whether the line begins with an exception's name: "torch.OutOfMemoryError: ..." or "KeyError". A name has
 * letters of both cases, so "INFO: ..." is none.
 */
static bool names_exception(const char *line)
{
    bool upper = false, lower = false;

    for (; isalnum((unsigned char)*line) || *line == '_' || *line == '.'; line++) {
        upper |= isupper((unsigned char)*line) != 0;
        lower |= islower((unsigned char)*line) != 0;
    }
    return upper && lower && (*line == ':' || *line == '\0');
}

static void begin(struct traceback *traceback, const char *line, const char *at)
{
    traceback->prefix_length = (size_t)(at - line);
    traceback->open = traceback->prefix_length <= TRACEBACK_PREFIX_MAX;
    if (traceback->open)
        memcpy(traceback->prefix, line, traceback->prefix_length);
}

static enum traceback_line traceback_take(struct traceback *traceback, const char *line)
{
    const char *at = strstr(line, header);
    bool follows;

    if (at != NULL) {
        begin(traceback, line, at);
        return TRACEBACK_CODE;
    }
    traceback->chained |= has_one(line, chains, sizeof chains / sizeof chains[0]);
    if (!traceback->open || strncmp(line, traceback->prefix, traceback->prefix_length) != 0)
        return TRACEBACK_NONE;
    line += traceback->prefix_length;
    if (*line == ' ' || *line == '\t')
        return TRACEBACK_CODE;
    if (!names_exception(line))
        return TRACEBACK_NONE;
    follows = traceback->chained || has_one(line, relays, sizeof relays / sizeof relays[0]);
    traceback->open = traceback->chained = false;
    return follows ? TRACEBACK_RELAY : TRACEBACK_RAISED;
}

enum { ALSO_MAX = 8 };

/*
 * The first row that fits decides. A line fits when it has `words`, one of `also` if there are any, and none
 * of `unless`. `starts`: the words must begin the line, or follow a dot or ": ".
 */
static const struct row {
    enum memory_kind kind;
    const char *words;
    const char *also[ALSO_MAX], *unless[ALSO_MAX];
    bool starts;
} rows[] = {
    /* Host memory: words that would also fit the GPU's rows. */
    {MEMORY_HOST, "java.lang.OutOfMemoryError", {0}, {0}, false},
    {MEMORY_HOST, "HOST_ALLOCATION_FAILED", {0}, {0}, false},
    {MEMORY_HOST, "DefaultCPUAllocator", {"memory"}, {0}, false},
    {MEMORY_HOST,
     "OOM when allocating",
     {"device:CPU", "by allocator cpu", "by allocator mklcpu"},
     {0},
     false},
    /* PyTorch and CuPy, and what they pass on from CUDA and ROCm. */
    {MEMORY_GPU, "CUDA out of memory", {0}, {0}, false},
    {MEMORY_GPU, "OutOfMemoryError", {0}, {0}, false},
    {MEMORY_GPU,
     "out of memory",
     {"CUDA", "Cuda", "cuda", "HIP ", "hipError", "XPU ", "MPS ", "NPU "},
     {0},
     false},
    {MEMORY_GPU, "CUDA_ERROR_OUT_OF_MEMORY", {0}, {0}, false},
    {MEMORY_GPU, "cudaErrorMemoryAllocation", {0}, {0}, false},
    {MEMORY_GPU, "hipErrorOutOfMemory", {0}, {0}, false},
    {MEMORY_GPU, "hipErrorMemoryAllocation", {0}, {0}, false},
    {MEMORY_GPU, "out_of_memory: CUDA", {0}, {0}, false},
    {MEMORY_GPU, "OUT_OF_DEVICE_MEMORY", {0}, {0}, false},
    /* CUDNN_, CUBLAS_, CUSOLVER_, CUSPARSE_, HIPBLAS_; then libraries with their own names for it. */
    {MEMORY_GPU, "STATUS_ALLOC_FAILED", {0}, {0}, false},
    {MEMORY_GPU, "DEVICE_ALLOCATION_FAILED", {0}, {0}, false},
    {MEMORY_GPU, "CUFFT_ALLOC_FAILED", {0}, {0}, false},
    {MEMORY_GPU, "miopenStatusAllocFailed", {0}, {0}, false},
    {MEMORY_GPU, "rocblas_status_memory_error", {0}, {0}, false},
    /* JAX, XLA and TensorFlow; remote calls also answer with this word. */
    {MEMORY_GPU,
     "RESOURCE_EXHAUSTED",
     {0},
     {"StatusCode", "grpc", "gRPC", "uota", "ate limit", "essage larger", "oo many"},
     false},
    {MEMORY_GPU, "ResourceExhaustedError", {0}, {"StatusCode", "grpc", "gRPC", "uota"}, false},
    {MEMORY_GPU, "OOM when allocating", {0}, {0}, false},
    {MEMORY_GPU, "Out of memory while trying to allocate", {0}, {"not a failure"}, false},
    {MEMORY_GPU, "ran out of memory trying to allocate", {0}, {"not a failure"}, false},
    /* Host memory: Python, NumPy, C++, the C library, data loaders, Slurm. */
    {MEMORY_HOST, "MemoryError", {0}, {0}, true},
    {MEMORY_HOST, "_ArrayMemoryError", {0}, {0}, false},
    {MEMORY_HOST, "std::bad_alloc", {0}, {0}, false},
    {MEMORY_HOST, "Cannot allocate memory", {0}, {0}, false},
    {MEMORY_HOST, "out of shared memory", {0}, {0}, false},
    {MEMORY_HOST, "DataLoader worker", {"killed by signal: Killed", "killed by signal: Bus"}, {0}, false},
    {MEMORY_HOST, "Out of memory: Killed process", {0}, {0}, false},
    {MEMORY_HOST, "oom_kill event", {0}, {0}, false},
    {MEMORY_HOST, "OOM Killed", {0}, {0}, false},
    {MEMORY_HOST, "out-of-memory handler", {0}, {0}, false},
    {MEMORY_HOST, "job memory limit", {"xceeded"}, {0}, false},
};

/* Each row's words contain one of these pieces; most lines contain none. */
static const char *const hints[] = {"emory",    "EMORY",    "LLOC",     "llocFail",  "bad_alloc", "OOM",
                                    "oom_kill", "XHAUSTED", "xhausted", "LLOCATION", "DataLoader"};

static bool has_any(const char *line, const char *const pieces[], size_t count)
{
    for (size_t i = 0; i < count && pieces[i] != NULL; i++) {
        if (strstr(line, pieces[i]) != NULL)
            return true;
    }
    return false;
}

static bool begins(const char *line, const char *at)
{
    return at == line || at[-1] == '.' || (at - line >= 2 && at[-1] == ' ' && at[-2] == ':');
}

/* What precedes the words in advice: "lower the batch size if you see ...". */
static const char *const advice[] = {"f you ", "you see", "n case ", "void ", "revent", "uch as "};

/* What precedes the words in a message in plain English. */
static const char *const failures[] = {"rror",    "ERROR",  "xception", "ailure", "ailed",
                                       "FAILURE", "FAILED", "atal",     "FATAL",  "caught"};

/*
 * Whether the words at `at` are an error, and not text about errors. The name of an error counts unless it is
 * in advice. Plain English counts when it begins the line or the line's last part, or follows the name of a
 * failure.
 */
static bool is_error(const struct row *row, const char *line, const char *at)
{
    char before[MEMORY_LINE_MAX + 1];
    const size_t length = (size_t)(at - line);
    bool plain = strstr(row->words, "out of memory") != NULL;

    if (length > MEMORY_LINE_MAX)
        return false;
    memcpy(before, line, length);
    before[length] = '\0';
    if (has_any(before, advice, sizeof advice / sizeof advice[0]))
        return false;
    return !plain || length == 0 || (length >= 2 && strcmp(before + length - 2, ": ") == 0) ||
           has_any(before, failures, sizeof failures / sizeof failures[0]) ||
           strstr(at, "Tried to allocate") != NULL;
}

static bool fits(const struct row *row, const char *line)
{
    const char *at = strstr(line, row->words);

    while (row->starts && at != NULL && !begins(line, at))
        at = strstr(at + 1, row->words);
    return at != NULL && is_error(row, line, at) &&
           (row->also[0] == NULL || has_any(line, row->also, ALSO_MAX)) &&
           !has_any(line, row->unless, ALSO_MAX);
}

enum memory_kind memory_words_in(const char *line, const char **out_words)
{
    if (!has_any(line, hints, sizeof hints / sizeof hints[0]))
        return MEMORY_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!fits(&rows[i], line))
            continue;
        *out_words = rows[i].words;
        return rows[i].kind;
    }
    return MEMORY_NONE;
}

/*
 * Withdraws what the newest line counted: another exception came after it, so it was no failure. Lines of
 * other ranks stay.
 */
static void withdraw(const struct memory_words *words, struct memory_seen *seen)
{
    const struct traceback *traceback = &words->traceback;

    if (words->said_by[0] == '[' && traceback->prefix_length > 0 &&
        strncmp(words->said_by, traceback->prefix, traceback->prefix_length) != 0)
        return;
    seen->withdrawn[MEMORY_GPU] = seen->count[MEMORY_GPU];
    seen->withdrawn[MEMORY_HOST] = seen->count[MEMORY_HOST];
}

void memory_words_line(struct memory_words *words, const char *line, struct memory_seen *seen)
{
    const char *found = "";
    enum traceback_line place = traceback_take(&words->traceback, line);
    enum memory_kind kind = place != TRACEBACK_CODE ? memory_words_in(line, &found) : MEMORY_NONE;

    if (kind != MEMORY_NONE) {
        seen->count[kind]++;
        seen->words[kind] = found;
        snprintf(words->said_by, sizeof words->said_by, "%.*s", TRACEBACK_PREFIX_MAX, line);
    } else if (place == TRACEBACK_RAISED) {
        withdraw(words, seen);
    }
    if (words->told != NULL && regexec(words->told, line, 0, NULL, 0) == 0)
        seen->count[MEMORY_TOLD]++;
}

uint64_t memory_seen_since(const struct memory_seen *seen, enum memory_kind kind, uint64_t before)
{
    uint64_t from = seen->withdrawn[kind] > before ? seen->withdrawn[kind] : before;

    return seen->count[kind] > from ? seen->count[kind] - from : 0;
}

static void look(struct memory_words *words, struct memory_seen *seen)
{
    words->line[words->length] = '\0';
    memory_words_line(words, words->line, seen);
}

void memory_words_take(struct memory_words *words, const char *bytes, size_t count, struct memory_seen *seen)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            memory_words_end(words, seen);
            continue;
        }
        if (words->length == MEMORY_LINE_MAX) {
            look(words, seen);
            words->length = MEMORY_OVERLAP;
            memmove(words->line, words->line + MEMORY_LINE_MAX - MEMORY_OVERLAP, MEMORY_OVERLAP);
        }
        words->line[words->length++] = bytes[i];
        if (bytes[i] == '\0')
            words->line[words->length - 1] = ' ';
    }
}

void memory_words_end(struct memory_words *words, struct memory_seen *seen)
{
    if (words->length > 0)
        look(words, seen);
    words->length = 0;
}
