/* SPDX-License-Identifier: Apache-2.0 */
#include "faulty_vfs.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

static sqlite3_vfs faulty;
static const sqlite3_vfs *real_vfs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counts[FAULTY_OPERATIONS], byte_counts[FAULTY_OPERATIONS];
static struct {
    bool set, struck;
    enum faulty_operation operation;
    unsigned long at;
    int code;
} fault;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct faulty_file *)file)->real;
}

/* The fault's code when it strikes, else SQLITE_OK. */
static int count(enum faulty_operation operation, int bytes)
{
    int code = SQLITE_OK;

    pthread_mutex_lock(&lock);
    counts[operation]++;
    byte_counts[operation] += (unsigned long)bytes;
    if (fault.set && fault.operation == operation && counts[operation] >= fault.at) {
        fault.struck = true;
        code = fault.code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int faulty_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int faulty_read(sqlite3_file *file, void *data, int bytes, sqlite3_int64 offset)
{
    int code = count(FAULTY_READ, bytes);

    return code != SQLITE_OK ? code : real_of(file)->pMethods->xRead(real_of(file), data, bytes, offset);
}

static int faulty_write(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset)
{
    int code = count(FAULTY_WRITE, bytes);

    return code != SQLITE_OK ? code : real_of(file)->pMethods->xWrite(real_of(file), data, bytes, offset);
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int faulty_sync(sqlite3_file *file, int flags)
{
    int code = count(FAULTY_SYNC, 0);

    return code != SQLITE_OK ? code : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int faulty_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int faulty_lock(sqlite3_file *file, int level)
{
    int code = count(FAULTY_LOCK, 0);

    return code != SQLITE_OK ? code : real_of(file)->pMethods->xLock(real_of(file), level);
}

static int faulty_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int faulty_check_lock(sqlite3_file *file, int *held)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), held);
}

static int faulty_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int faulty_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int faulty_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int faulty_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **out)
{
    int code = count(FAULTY_MAP, 0);

    return code != SQLITE_OK ? code
                             : real_of(file)->pMethods->xShmMap(real_of(file), page, bytes, extend, out);
}

static int faulty_map_lock(sqlite3_file *file, int offset, int slots, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, slots, flags);
}

static void faulty_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int faulty_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = faulty_close,
    .xRead = faulty_read,
    .xWrite = faulty_write,
    .xTruncate = faulty_truncate,
    .xSync = faulty_sync,
    .xFileSize = faulty_size,
    .xLock = faulty_lock,
    .xUnlock = faulty_unlock,
    .xCheckReservedLock = faulty_check_lock,
    .xFileControl = faulty_control,
    .xSectorSize = faulty_sector,
    .xDeviceCharacteristics = faulty_traits,
    .xShmMap = faulty_map,
    .xShmLock = faulty_map_lock,
    .xShmBarrier = faulty_barrier,
    .xShmUnmap = faulty_unmap,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    struct faulty_file *opened = (struct faulty_file *)file;
    sqlite3_vfs *below = sqlite3_vfs_find(real_vfs->zName);
    int code;

    (void)vfs;
    opened->real = (sqlite3_file *)(opened + 1);
    opened->base.pMethods = NULL;
    code = below->xOpen(below, name, opened->real, flags, out_flags);
    if (opened->real->pMethods != NULL)
        opened->base.pMethods = &methods;
    return code;
}

void faulty_vfs_install(void)
{
    sqlite3_initialize();
    if (real_vfs == NULL) {
        real_vfs = sqlite3_vfs_find(NULL);
        faulty = *real_vfs;
        faulty.zName = "faulty";
        faulty.pNext = NULL;
        faulty.szOsFile = (int)sizeof(struct faulty_file) + real_vfs->szOsFile;
        faulty.xOpen = faulty_open;
    }
    if (sqlite3_vfs_register(&faulty, 1) != SQLITE_OK)
        abort();
}

void faulty_vfs_remove(void)
{
    faulty_vfs_heal();
    sqlite3_vfs_unregister(&faulty);
}

void faulty_vfs_fail(enum faulty_operation operation, unsigned long when, int code)
{
    pthread_mutex_lock(&lock);
    fault.set = true;
    fault.struck = false;
    fault.operation = operation;
    fault.at = counts[operation] + when;
    fault.code = code;
    pthread_mutex_unlock(&lock);
}

void faulty_vfs_heal(void)
{
    fault.set = false;
}

bool faulty_vfs_struck(void)
{
    return fault.struck;
}

unsigned long faulty_vfs_count(enum faulty_operation operation)
{
    return counts[operation];
}

unsigned long faulty_vfs_bytes(enum faulty_operation operation)
{
    return byte_counts[operation];
}
