/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's configuration: any bytes either give settings and rules within their ranges, or are
 * refused with the file's name.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/node_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check(const struct config *config)
{
    size_t count;
    const struct rights_rule *rules = config_rules(config, &count);

    require(count <= RIGHTS_RULES_MAX);
    for (size_t i = 0; i < count; i++) {
        require(rules[i].gpu[0] != '\0' && rules[i].who < RIGHTS_WHO_COUNT);
        require(rules[i].who != RIGHTS_ANYONE || (rules[i].scopes & ~(unsigned)RIGHTS_READ) == 0);
        require(rules[i].floor.share >= 0 && rules[i].floor.share <= 1 && rules[i].ceiling.share <= 1);
    }
    require(config_real(config, KEY_POLL) >= 0.01 && config_real(config, KEY_POLL) <= 60);
    require(config_list(config, KEY_LISTEN)->count > 0);
    for (int key = 0; key < KEY_COUNT; key++)
        require(config_origin(config, (enum node_key)key)[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    const struct config_source source = {.path = path, .must_exist = true};
    struct fly_error error = {.text = ""};
    struct config *config;
    int fd = memfd_create("config", MFD_CLOEXEC), code;

    require(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    code = config_load(&source, &config, &error);
    if (code == 0) {
        check(config);
        config_free(config);
    } else {
        require((code == FLY_ECONFIG || code == FLY_ELIMIT) && error.text[0] != '\0');
    }
    close(fd);
    return 0;
}
