/* SPDX-License-Identifier: Apache-2.0 */
/* flyball-guard: nothing for people; see guard.h. */
#include "knob/guard.h"

int main(int argc, char **argv)
{
    return guard_main(argc, argv);
}
