/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/demo_facts.h"

const double demo_eta = 0.5;
const double demo_beta = 3.0;
const char demo_gpu[] = "v100-like";
