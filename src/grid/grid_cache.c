/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/grid_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "base/file/user_directory.h"
#include "base/wait.h"
#include "grid/cache_text.h"

enum { FILE_PATH_MAX = CACHE_PATH_MAX + CACHE_NAME_MAX + 16, PAUSE_NS = 20000000 };

static const double service_wait_s = 10.0;

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "the carbon cache '%.300s' cannot be used: %s; name another directory with "
                     "FLYBALL_CARBON_CACHE",
                     path, strerror(cause));
}

static const char *given(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int find_directory(char path[CACHE_PATH_MAX], struct fly_error *out_error)
{
    const char *own = given("FLYBALL_CARBON_CACHE");

    if (own == NULL)
        return user_directory_find(USER_CACHE, "carbon", "the carbon cache", path, CACHE_PATH_MAX, out_error);
    if (snprintf(path, CACHE_PATH_MAX, "%s", own) >= CACHE_PATH_MAX)
        return error_set(out_error, FLY_ELIMIT, "the carbon cache '%.100s...' has too long a name", path);
    return 0;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

int grid_cache_open(struct grid_cache *cache, const char *provider, const char *base, const char *place,
                    const struct grid_kind *kind, struct fly_error *out_error)
{
    int cause, code = find_directory(cache->directory, out_error);

    if (code < 0)
        return code;
    cause = user_directory_make(cache->directory);
    if (cause != 0)
        return failed(cache->directory, cause, out_error);
    cache->abandon = NULL;
    snprintf(cache->service, sizeof cache->service, "%s %s", provider, base);
    snprintf(cache->source, sizeof cache->source, "%s %.300s %s %s %s", provider, base, place,
             grid_signal_name(kind->signal), grid_scope_name(kind->scope));
    snprintf(cache->service_name, sizeof cache->service_name, "%.32s-%016" PRIx64, provider,
             hash_of(cache->service));
    snprintf(cache->source_name, sizeof cache->source_name, "%.32s-%016" PRIx64, provider,
             hash_of(cache->source));
    return 0;
}

static void path_of(const struct grid_cache *cache, const char *name, const char *ending,
                    char path[FILE_PATH_MAX])
{
    snprintf(path, FILE_PATH_MAX, "%s/%s.%s", cache->directory, name, ending);
}

/* Reads a file; nothing if it cannot be read. */
static void read_file(const char *path, struct buffer *out)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char bytes[65536];
    ssize_t count;

    if (file < 0)
        return;
    while ((count = read(file, bytes, sizeof bytes)) > 0 && out->error == 0)
        buffer_append(out, bytes, (size_t)count);
    if (count < 0 || out->error < 0)
        buffer_clear(out);
    close(file);
}

static int write_file(const char *path, const struct buffer *text, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = atomic_file_open(path, &file, out_error);

    if (code < 0)
        return code;
    (void)fwrite(text->data, 1, text->length, file.stream); /* commit reports errors */
    return atomic_file_commit(&file, out_error);
}

void grid_cache_load(const struct grid_cache *cache, const struct grid_kind *kind,
                     struct cache_content *out_content)
{
    char path[FILE_PATH_MAX];
    struct buffer text;

    path_of(cache, cache->source_name, "source", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    read_file(path, &text);
    if (text.length == 0 || !cache_content_read(text.data, text.length, cache->source, kind, out_content))
        cache_content_init(out_content, kind);
    buffer_deinit(&text);
}

int grid_cache_save(const struct grid_cache *cache, const struct cache_content *content,
                    struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];
    struct buffer text;
    int code;

    path_of(cache, cache->source_name, "source", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    code = cache_content_write(content, cache->source, &text, out_error);
    if (code == 0)
        code = write_file(path, &text, out_error);
    buffer_deinit(&text);
    return code;
}

/* Uses flock(2), which is released however its holder ends. */
static int take_lock(const char *path, double wait_s, const atomic_bool *abandon, int *out_lock,
                     struct fly_error *out_error)
{
    const struct mono_time start = mono_now();
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (lock < 0)
        return failed(path, errno, out_error);
    while (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        int cause = errno;

        if (cause != EWOULDBLOCK && cause != EINTR) {
            close(lock);
            return failed(path, cause, out_error);
        }
        if (mono_elapsed_s(start, mono_now()) > wait_s || (abandon != NULL && atomic_load(abandon))) {
            close(lock);
            return error_set(out_error, FLY_EBUSY,
                             "another process has held '%.300s' for more than %g s; see what it waits for",
                             path, wait_s);
        }
        mono_sleep_s(PAUSE_NS * 1e-9);
    }
    *out_lock = lock;
    return 0;
}

int grid_cache_lock(const struct grid_cache *cache, double wait_s, int *out_lock, struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];

    path_of(cache, cache->source_name, "lock", path);
    return take_lock(path, wait_s, cache->abandon, out_lock, out_error);
}

int grid_cache_take_service(const struct grid_cache *cache, struct ask_service *out_service, int *out_lock,
                            struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];
    struct buffer text;
    int code;

    path_of(cache, cache->service_name, "turn", path);
    code = take_lock(path, service_wait_s, cache->abandon, out_lock, out_error);
    if (code < 0)
        return code;
    path_of(cache, cache->service_name, "service", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    read_file(path, &text);
    if (text.length == 0 || !cache_service_read(text.data, text.length, cache->service, out_service))
        *out_service = (struct ask_service){0};
    buffer_deinit(&text);
    return 0;
}

int grid_cache_give_service(const struct grid_cache *cache, const struct ask_service *service, int lock,
                            struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];
    struct buffer text;
    int code;

    path_of(cache, cache->service_name, "service", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    cache_service_write(service, cache->service, &text);
    code = text.error == 0 ? write_file(path, &text, out_error) : error_no_memory(out_error);
    buffer_deinit(&text);
    close(lock);
    return code;
}
