/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_CACHE_TEXT_H
#define FLYBALL_GRID_CACHE_TEXT_H

#include "grid/cache_content.h"

/*
 * Write the text of a source's file, and read it back; false for a text that is not of this
 * source. Pure except for memory.
 */
int cache_content_write(const struct cache_content *content, const char *source, struct buffer *out,
                        struct fly_error *out_error);
bool cache_content_read(const char *text, size_t length, const char *source, const struct grid_kind *kind,
                        struct cache_content *out_content);
void cache_service_write(const struct ask_service *service, const char *name, struct buffer *out);
bool cache_service_read(const char *text, size_t length, const char *name, struct ask_service *out_service);

#endif
