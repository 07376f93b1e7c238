/* SPDX-License-Identifier: Apache-2.0 */
#include "http/signing_key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static int failed(const char *path, struct fly_error *out_error)
{
    int cause = errno;
    int code = cause == ENOENT ? FLY_ENOTFOUND : cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EREAD;

    return error_set(out_error, code, "the signing key '%.300s' cannot be read: %s; correct its path", path,
                     strerror(cause));
}

static int check_owner(int fd, const char *path, struct fly_error *out_error)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return failed(path, out_error);
    if (!S_ISREG(status.st_mode))
        return error_set(out_error, FLY_ECONFIG, "'%.300s' is no file; the signing key stands in one", path);
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return error_set(out_error, FLY_EPERM,
                         "the signing key '%.300s' belongs to another user, who may make any token; chown it",
                         path);
    if ((status.st_mode & (S_IWGRP | S_IRWXO)) != 0)
        return error_set(out_error, FLY_EPERM,
                         "the signing key '%.300s' may be read or written by others; chmod it to 0600, or to "
                         "0640 for a group",
                         path);
    return 0;
}

/* How much of a key counts: an editor's newline keeps no secret. The last byte of random ones may look so. */
static size_t secret_bytes(const unsigned char *bytes, size_t length)
{
    size_t end = length;

    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < ' ' ? strchr("\t\n\r", bytes[i]) == NULL || bytes[i] == '\0' : bytes[i] > '~')
            return length;
    }
    while (end > 0 && bytes[end - 1] <= ' ')
        end--;
    return end;
}

/* Reads at most one byte more than a key may have. */
static int read_all(int fd, const char *path, unsigned char *bytes, size_t *out_length,
                    struct fly_error *out_error)
{
    size_t length = 0;
    ssize_t count;

    while ((count = read(fd, bytes + length, SIGNING_KEY_MAX + 1 - length)) > 0)
        length += (size_t)count;
    if (count < 0)
        return failed(path, out_error);
    if (length > SIGNING_KEY_MAX)
        return error_set(out_error, FLY_ECONFIG, "the signing key '%.300s' is longer than %d bytes", path,
                         SIGNING_KEY_MAX);
    if (secret_bytes(bytes, length) < SIGNED_KEY_MIN)
        return error_set(
            out_error, FLY_ECONFIG,
            "the signing key '%.300s' has %zu bytes without space at its end, and HS256 takes %d "
            "or more; make one with 'head -c 32 /dev/urandom'",
            path, secret_bytes(bytes, length), SIGNED_KEY_MIN);
    *out_length = length;
    return 0;
}

int signing_key_renew(struct signing_key *key, struct fly_error *out_error)
{
    unsigned char bytes[SIGNING_KEY_MAX + 1];
    size_t length = 0;
    int fd = open(key->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;

    if (fd < 0)
        return failed(key->path, out_error);
    code = check_owner(fd, key->path, out_error);
    if (code == 0)
        code = read_all(fd, key->path, bytes, &length, out_error);
    close(fd);
    if (code == 0) {
        pthread_mutex_lock(&key->lock);
        memcpy(key->bytes, bytes, length);
        key->length = length;
        pthread_mutex_unlock(&key->lock);
    }
    explicit_bzero(bytes, sizeof bytes);
    return code;
}

int signing_key_open(struct signing_key *key, const char *path, struct fly_error *out_error)
{
    int code;

    key->path = path;
    key->length = 0;
    pthread_mutex_init(&key->lock, NULL);
    code = signing_key_renew(key, out_error);
    if (code < 0)
        pthread_mutex_destroy(&key->lock);
    return code;
}

void signing_key_close(struct signing_key *key)
{
    explicit_bzero(key->bytes, sizeof key->bytes);
    pthread_mutex_destroy(&key->lock);
}

int signing_key_ask(struct signing_key *key, const char *text, int64_t now_s, struct signed_token *out_token,
                    struct fly_error *out_error)
{
    int code;

    pthread_mutex_lock(&key->lock);
    code = signed_token_read(text, key->bytes, key->length, now_s, out_token, out_error);
    pthread_mutex_unlock(&key->lock);
    return code;
}
