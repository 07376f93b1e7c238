/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "base/error.h"

enum { PEM_MAX = 1 << 20, CHUNK_BYTES = 4096 };

static int read_pem(const char *path, bool secret, struct buffer *text, struct fly_error *out_error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char chunk[CHUNK_BYTES];
    struct stat status;
    ssize_t count = 0;
    int code = 0;

    if (fd < 0)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_ENOTFOUND, "reading '%s' failed: %s",
                         path, strerror(errno));
    if (fstat(fd, &status) == 0 && secret && (status.st_mode & S_IRWXO) != 0)
        code = error_set(out_error, FLY_EPERM, "everybody may read the key '%s'; chmod it to 0600", path);
    while (code == 0 && (count = read(fd, chunk, sizeof chunk)) > 0)
        buffer_append(text, chunk, (size_t)count);
    if (code == 0 && (count < 0 || text->error < 0))
        code = error_set(out_error, FLY_EREAD, "reading '%s' failed: %s", path,
                         count < 0 ? strerror(errno) : "it is longer than a MiB");
    explicit_bzero(chunk, sizeof chunk);
    close(fd);
    return code;
}

/* libmicrohttpd would only say that it does not start. */
static int check(const struct certificate *certificate, const char *chain_path, const char *key_path,
                 struct fly_error *out_error)
{
    const gnutls_datum_t chain = {(unsigned char *)certificate->chain.data,
                                  (unsigned)certificate->chain.length};
    const gnutls_datum_t key = {(unsigned char *)certificate->key.data, (unsigned)certificate->key.length};
    gnutls_certificate_credentials_t credentials;
    int result;

    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return error_no_memory(out_error);
    result = gnutls_certificate_set_x509_key_mem(credentials, &chain, &key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(credentials);
    if (result < 0)
        return error_set(out_error, FLY_ECONFIG,
                         "the certificate '%s' and the key '%s' cannot be used: %s; both have to be PEM, and "
                         "belong together",
                         chain_path, key_path, gnutls_strerror(result));
    return 0;
}

int certificate_read(const char *chain_path, const char *key_path, struct certificate *out_certificate,
                     struct fly_error *out_error)
{
    struct certificate read;
    int code;

    buffer_init(&read.chain, PEM_MAX);
    buffer_init(&read.key, PEM_MAX);
    code = read_pem(chain_path, false, &read.chain, out_error);
    if (code == 0)
        code = read_pem(key_path, true, &read.key, out_error);
    if (code == 0)
        code = check(&read, chain_path, key_path, out_error);
    if (code < 0)
        certificate_deinit(&read);
    else
        *out_certificate = read;
    return code;
}

void certificate_deinit(struct certificate *certificate)
{
    if (certificate->key.capacity > 0)
        explicit_bzero(certificate->key.data, certificate->key.capacity);
    buffer_deinit(&certificate->chain);
    buffer_deinit(&certificate->key);
}
