/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_tree.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "own_directory.h"
#include "test.h"

enum { NOBODY = 65534, TREE_PATH_MAX = 512 };

static char root[64];

void fake_tree_make(void)
{
    snprintf(root, sizeof root, "/tmp/flyball-tree-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(chmod(root, 0755), 0);
}

const char *fake_tree_root(void)
{
    return root;
}

void fake_tree_remove_at(const char *directory)
{
    assert_true(own_directory_remove(directory));
}

void fake_tree_remove(void)
{
    fake_tree_remove_at(root);
}

/* The path below the root, with its directories made. */
static const char *place(const char *path)
{
    static char full[TREE_PATH_MAX];

    assert_true(snprintf(full, sizeof full, "%s/%s", root, path) < (int)sizeof full);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    return full;
}

void fake_tree_put(const char *path, const char *text)
{
    FILE *file = fopen(place(path), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void fake_tree_put_in(const char *directory, const char *name, const char *text)
{
    char path[TREE_PATH_MAX];

    assert_true(snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path);
    fake_tree_put(path, text);
}

void fake_tree_put_u64(const char *path, unsigned long long value)
{
    char text[32];

    snprintf(text, sizeof text, "%llu\n", value);
    fake_tree_put(path, text);
}

void fake_tree_link(const char *path, const char *target)
{
    assert_int_equal(symlink(target, place(path)), 0);
}

void fake_tree_delete(const char *path)
{
    assert_int_equal(unlink(place(path)), 0);
}

void fake_tree_mode(const char *path, unsigned mode)
{
    assert_int_equal(chmod(place(path), mode), 0);
}

int fake_tree_open_files(void)
{
    DIR *entries = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(entries);
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}

void fake_tree_be_nobody(void)
{
    if (geteuid() == 0)
        assert_int_equal(seteuid(NOBODY), 0);
}

void fake_tree_be_myself_again(void)
{
    assert_int_equal(seteuid(getuid()), 0);
}
