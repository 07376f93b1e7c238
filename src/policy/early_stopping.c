/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/early_stopping.h"

#include <math.h>

uint32_t early_stopping_epochs(double bound_j, double epoch_j, uint32_t max_epochs)
{
    double epochs;

    if (bound_j / epoch_j >= (double)max_epochs + 1.0)
        return max_epochs;
    /*
     * fmod is exact, so this is floor(bound / epoch) of the real numbers, up to one rounding near a
     * whole number.
     */
    epochs = (bound_j - fmod(bound_j, epoch_j)) / epoch_j;
    epochs = floor(epochs + 0.5);
    return epochs < max_epochs ? (uint32_t)epochs : max_epochs;
}
