/* SPDX-License-Identifier: Apache-2.0 */
#include "http/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/x509.h>

#include "base/error.h"

enum { PEM_MAX = 1 << 20, CHUNK_BYTES = 4096, CHAIN_MAX = 16, DATE_MAX = 32 };

static gnutls_datum_t datum_of(const struct buffer *text)
{
    return (gnutls_datum_t){(unsigned char *)text->data, (unsigned)text->length};
}

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

/* Checks here, since libmicrohttpd would only say that it does not start. */
static int check(const struct certificate *certificate, const char *chain_path, const char *key_path,
                 struct fly_error *out_error)
{
    const gnutls_datum_t chain = datum_of(&certificate->chain), key = datum_of(&certificate->key);
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

/* Reads from when to when the chain's first certificate is valid. */
static int read_dates(struct certificate *certificate, const char *path, struct fly_error *out_error)
{
    const gnutls_datum_t chain = datum_of(&certificate->chain);
    gnutls_x509_crt_t first;
    int result;

    if (gnutls_x509_crt_init(&first) < 0)
        return error_no_memory(out_error);
    result = gnutls_x509_crt_import(first, &chain, GNUTLS_X509_FMT_PEM);
    certificate->begins_s = gnutls_x509_crt_get_activation_time(first);
    certificate->expires_s = gnutls_x509_crt_get_expiration_time(first);
    gnutls_x509_crt_deinit(first);
    if (result < 0)
        return error_set(out_error, FLY_ECONFIG, "the certificate '%s' cannot be used: %s", path,
                         gnutls_strerror(result));
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
    if (code == 0)
        code = read_dates(&read, chain_path, out_error);
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

static char *show_date(int64_t time_s, char text[DATE_MAX])
{
    time_t seconds = (time_t)time_s;
    struct tm utc;

    if (gmtime_r(&seconds, &utc) == NULL || strftime(text, DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        text[0] = '\0';
    return text;
}

int certificate_check(const struct certificate *certificate, const char *path, int64_t now_s,
                      struct fly_error *out_error)
{
    char date[DATE_MAX];

    if (now_s > certificate->expires_s)
        return error_set(out_error, FLY_ECONFIG, "the certificate '%s' expired at %s", path,
                         show_date(certificate->expires_s, date));
    if (now_s < certificate->begins_s)
        return error_set(out_error, FLY_ECONFIG, "the certificate '%s' holds only from %s on", path,
                         show_date(certificate->begins_s, date));
    return 0;
}

/* ---- the certificate in use ---- */

int certificate_shelf_open(struct certificate_shelf *shelf, const char *chain_path, const char *key_path,
                           struct fly_error *out_error)
{
    struct certificate first;
    int code = certificate_read(chain_path, key_path, &first, out_error);

    if (code < 0)
        return code;
    *shelf = (struct certificate_shelf){.chain_path = chain_path, .key_path = key_path, .now = first};
    pthread_mutex_init(&shelf->lock, NULL);
    return 0;
}

void certificate_shelf_close(struct certificate_shelf *shelf)
{
    certificate_deinit(&shelf->now);
    pthread_mutex_destroy(&shelf->lock);
}

int certificate_shelf_renew(struct certificate_shelf *shelf, struct fly_error *out_error)
{
    struct certificate next, old;
    int code = certificate_read(shelf->chain_path, shelf->key_path, &next, out_error);

    if (code < 0)
        return code;
    pthread_mutex_lock(&shelf->lock);
    old = shelf->now;
    shelf->now = next;
    pthread_mutex_unlock(&shelf->lock);
    certificate_deinit(&old);
    return 0;
}

int certificate_shelf_check(struct certificate_shelf *shelf, int64_t now_s, struct fly_error *out_error)
{
    int code;

    pthread_mutex_lock(&shelf->lock);
    code = certificate_check(&shelf->now, shelf->chain_path, now_s, out_error);
    pthread_mutex_unlock(&shelf->lock);
    return code;
}

static bool import_key(const struct certificate *certificate, gnutls_privkey_t *out_key)
{
    const gnutls_datum_t text = datum_of(&certificate->key);

    if (gnutls_privkey_init(out_key) < 0)
        return false;
    if (gnutls_privkey_import_x509_raw(*out_key, &text, GNUTLS_X509_FMT_PEM, NULL, 0) == 0)
        return true;
    gnutls_privkey_deinit(*out_key);
    return false;
}

bool certificate_shelf_take(struct certificate_shelf *shelf, gnutls_pcert_st **out_chain, unsigned *out_count,
                            gnutls_privkey_t *out_key)
{
    gnutls_pcert_st *chain = gnutls_calloc(CHAIN_MAX, sizeof *chain);
    gnutls_datum_t text;
    unsigned count = CHAIN_MAX;
    bool taken;

    if (chain == NULL)
        return false;
    pthread_mutex_lock(&shelf->lock);
    text = datum_of(&shelf->now.chain);
    taken = import_key(&shelf->now, out_key);
    if (taken && gnutls_pcert_list_import_x509_raw(chain, &count, &text, GNUTLS_X509_FMT_PEM,
                                                   GNUTLS_X509_CRT_LIST_SORT) < 0) {
        gnutls_privkey_deinit(*out_key);
        taken = false;
    }
    pthread_mutex_unlock(&shelf->lock);
    if (!taken) {
        gnutls_free(chain);
        return false;
    }
    *out_chain = chain;
    *out_count = count;
    return true;
}
