/* SPDX-License-Identifier: Apache-2.0 */
#include "node/owner/owner_pod.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_MAX = 4096, PATH_BYTES = 512 };

static const char log_end[] = ".log";

/* Copies a name of that length if Kubernetes would allow it: small letters, digits, '-', and '.' in pods'. */
static bool copy_name(const char *text, size_t length, char *out, size_t size)
{
    if (length == 0 || length >= size || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") < length)
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

bool owner_pod_directory(const char *name, struct owner_pod *pod)
{
    struct owner_pod found = *pod;
    const char *first = strchr(name, '_');
    const char *second = first != NULL ? strchr(first + 1, '_') : NULL;

    if (second == NULL || strcmp(second + 1, pod->uid) != 0 ||
        !copy_name(name, (size_t)(first - name), found.pod_namespace, sizeof found.pod_namespace) ||
        !copy_name(first + 1, (size_t)(second - first - 1), found.pod, sizeof found.pod))
        return false;
    *pod = found;
    return true;
}

bool owner_pod_log(const char *name, struct owner_pod *pod)
{
    struct owner_pod found = *pod;
    const char *first = strchr(name, '_');
    const char *second = first != NULL ? strchr(first + 1, '_') : NULL;
    const char *last = second != NULL ? strrchr(second + 1, '-') : NULL;
    size_t id_length = strlen(pod->id);

    if (last == NULL || id_length == 0 || strncmp(last + 1, pod->id, id_length) != 0 ||
        strcmp(last + 1 + id_length, log_end) != 0 ||
        !copy_name(name, (size_t)(first - name), found.pod, sizeof found.pod) ||
        !copy_name(first + 1, (size_t)(second - first - 1), found.pod_namespace,
                   sizeof found.pod_namespace) ||
        !copy_name(second + 1, (size_t)(last - second - 1), found.container, sizeof found.container))
        return false;
    *pod = found;
    return true;
}

static DIR *open_directory(int above, const char *name)
{
    int file = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    DIR *entries = file >= 0 ? fdopendir(file) : NULL;

    if (entries == NULL && file >= 0)
        close(file);
    return entries;
}

/* Calls `fits` with each entry until it returns true; copies that entry's name. */
static bool find_entry(int above, const char *name, bool (*fits)(const char *name, struct owner_pod *pod),
                       struct owner_pod *pod, char out_name[NAME_MAX + 1])
{
    DIR *entries = open_directory(above, name);
    const struct dirent *entry;
    bool found = false;

    if (entries == NULL)
        return false;
    for (int i = 0; !found && i < ENTRIES_MAX && (entry = readdir(entries)) != NULL; i++) {
        found = fits(entry->d_name, pod);
        if (found)
            snprintf(out_name, NAME_MAX + 1, "%s", entry->d_name);
    }
    closedir(entries);
    return found;
}

/* Names the container of a pod that has only one. */
static void take_only(int above, const char *directory, struct owner_pod *pod)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *entries;
    int count = 0;

    if (snprintf(path, sizeof path, "pods/%s", directory) >= (int)sizeof path)
        return;
    entries = open_directory(above, path);
    if (entries == NULL)
        return;
    for (int i = 0; count < 2 && i < ENTRIES_MAX && (entry = readdir(entries)) != NULL; i++)
        if (entry->d_name[0] != '.') {
            count++;
            (void)copy_name(entry->d_name, strlen(entry->d_name), pod->container, sizeof pod->container);
        }
    closedir(entries);
    if (count != 1)
        pod->container[0] = '\0';
}

void owner_pod_find(int directory, struct owner_pod *pod)
{
    char name[NAME_MAX + 1];
    bool known = find_entry(directory, "pods", owner_pod_directory, pod, name);

    if (pod->id[0] != '\0' && find_entry(directory, "containers", owner_pod_log, pod, name))
        return;
    if (known)
        take_only(directory, name, pod);
}
