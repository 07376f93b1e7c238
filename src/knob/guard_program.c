/* SPDX-License-Identifier: Apache-2.0 */
/* flyball-guard: not for people to run; see guard.h and behalf.h. */
#include <string.h>

#include "knob/behalf.h"
#include "knob/guard.h"

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], BEHALF_ROLE) == 0 ? behalf_main(argc, argv) : guard_main(argc, argv);
}
