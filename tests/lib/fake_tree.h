/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_FAKE_TREE_H
#define FLYBALL_TESTS_LIB_FAKE_TREE_H

/*
 * A made-up /sys and /proc in its own directory.
 *
 *     fake_tree_make();
 *     fake_tree_put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
 *     options.sysfs_root = fake_tree_root();
 *     fake_tree_remove();
 *
 * Any failure fails the test.
 */
void fake_tree_make(void);
const char *fake_tree_root(void);
void fake_tree_remove(void);
/* Removes any directory with all that is in it. */
void fake_tree_remove_at(const char *directory);

/* Writes a file, and makes the directories that it needs. */
void fake_tree_put(const char *path, const char *text);
void fake_tree_put_in(const char *directory, const char *name, const char *text);
void fake_tree_put_u64(const char *path, unsigned long long value);
void fake_tree_link(const char *path, const char *target);
void fake_tree_delete(const char *path);
void fake_tree_mode(const char *path, unsigned mode);

/* How many descriptors the process has open: finds forgotten ones. */
int fake_tree_open_files(void);

/*
 * Makes permissions matter: root becomes nobody until `again`; an ordinary user stays. Tear-down calls
 * `again`, so that a failed test does not stay nobody.
 */
void fake_tree_be_nobody(void);
void fake_tree_be_myself_again(void);

#endif
