/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/unpacked.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/patient_file.h"

enum { CHUNK = 1 << 16, PATH_BYTES = 4096 };
static const uint64_t memory_max = 256 << 20;

/* The state of unpacking. */
struct unpacking {
    const char *path;
    FILE *from, *to;
    lzma_stream stream;
    size_t lines; /* unpacked so far */
    uint8_t packed[CHUNK], plain[CHUNK];
};

static FILE *nameless_file(void)
{
    const char *directory = getenv("TMPDIR");
    char path[PATH_BYTES];
    FILE *file;
    int fd;

    if (snprintf(path, sizeof path, "%s/flyball-XXXXXX",
                 directory != NULL && *directory != '\0' ? directory : "/tmp") >= (int)sizeof path)
        return NULL;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return NULL;
    unlink(path);
    file = fdopen(fd, "w+");
    if (file == NULL)
        close(fd);
    return file;
}

static int write_chunk(struct unpacking *unpacking, const uint8_t *bytes, size_t count,
                       struct fly_error *out_error)
{
    for (size_t i = 0; i < count; i++)
        unpacking->lines += bytes[i] == '\n';
    if (fwrite(bytes, 1, count, unpacking->to) == count)
        return 0;
    return error_set(
        out_error, FLY_EWRITE,
        "%s: unpacking to a temporary file failed: %s; free space there or set TMPDIR to another directory",
        unpacking->path, patient_file_cause(errno));
}

static int refuse_stream(const struct unpacking *unpacking, lzma_ret result, struct fly_error *out_error)
{
    if (result == LZMA_MEM_ERROR || result == LZMA_MEMLIMIT_ERROR)
        return error_no_memory(out_error);
    return error_set(out_error, FLY_EDATA, "%s:%zu: %s; copy the file again", unpacking->path,
                     unpacking->lines + 1,
                     result == LZMA_FORMAT_ERROR ? "the file is not compressed by xz"
                     : result == LZMA_BUF_ERROR  ? "the compressed file ends early"
                                                 : "the compressed file is damaged");
}

/* Unpacks everything; the stream must be initialised. */
static int unpack(struct unpacking *unpacking, struct fly_error *out_error)
{
    lzma_ret result = LZMA_OK;
    lzma_action action = LZMA_RUN;

    while (result == LZMA_OK) {
        int code;

        if (unpacking->stream.avail_in == 0 && action == LZMA_RUN) {
            unpacking->stream.next_in = unpacking->packed;
            unpacking->stream.avail_in =
                fread(unpacking->packed, 1, sizeof unpacking->packed, unpacking->from);
            if (ferror(unpacking->from))
                return error_set(out_error, FLY_EREAD, "%s: reading failed: %s", unpacking->path,
                                 patient_file_cause(errno));
            action = feof(unpacking->from) ? LZMA_FINISH : LZMA_RUN;
        }
        unpacking->stream.next_out = unpacking->plain;
        unpacking->stream.avail_out = sizeof unpacking->plain;
        result = lzma_code(&unpacking->stream, action);
        code = write_chunk(unpacking, unpacking->plain, sizeof unpacking->plain - unpacking->stream.avail_out,
                           out_error);
        if (code < 0)
            return code;
    }
    if (result != LZMA_STREAM_END)
        return refuse_stream(unpacking, result, out_error);
    return fflush(unpacking->to) == 0 ? 0 : write_chunk(unpacking, unpacking->plain, 1, out_error);
}

static int unpack_to(struct unpacked *file, const char *path, FILE *from, struct fly_error *out_error)
{
    struct unpacking unpacking = {
        .path = path, .from = from, .to = nameless_file(), .stream = LZMA_STREAM_INIT};
    int code;

    if (unpacking.to == NULL)
        return error_set(
            out_error, FLY_EWRITE,
            "%s: making a temporary file failed: %s; set TMPDIR to a directory that can be written to", path,
            patient_file_cause(errno));
    if (lzma_stream_decoder(&unpacking.stream, memory_max, LZMA_CONCATENATED) != LZMA_OK) {
        fclose(unpacking.to);
        return error_no_memory(out_error);
    }
    code = unpack(&unpacking, out_error);
    lzma_end(&unpacking.stream);
    if (code < 0) {
        fclose(unpacking.to);
        return code;
    }
    file->temporary = unpacking.to;
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", fileno(unpacking.to));
    file->open = file->path;
    return 0;
}

int unpacked_open(struct unpacked *file, const char *path, struct fly_error *out_error)
{
    size_t length = strlen(path);
    FILE *from;
    int code;

    *file = (struct unpacked){.open = path};
    if (length < 4 || strcmp(path + length - 3, ".xz") != 0)
        return 0;
    from = patient_file_read(path);
    if (from == NULL)
        return error_set(out_error, errno == ENOENT ? FLY_ENOTFOUND : FLY_EREAD,
                         "%s: opening failed: %s; check the path", path, patient_file_cause(errno));
    code = unpack_to(file, path, from, out_error);
    fclose(from);
    return code;
}

void unpacked_close(struct unpacked *file)
{
    if (file->temporary != NULL)
        fclose(file->temporary);
    file->temporary = NULL;
}
