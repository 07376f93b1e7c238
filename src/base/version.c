/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/version.h>

const char *fly_version(void)
{
    return FLY_VERSION;
}
