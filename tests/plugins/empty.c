/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plug-in. */
extern int empty;
__attribute__((visibility("default"))) int empty = 1;
