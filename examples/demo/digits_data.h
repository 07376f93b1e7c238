/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_DIGITS_DATA_H
#define FLYBALL_EXAMPLES_DEMO_DIGITS_DATA_H

#include <stdint.h>

/*
 * Images of handwritten digits, 8 by 8 pixels of 0 .. 16: the test set of "Optical Recognition of
 * Handwritten Digits" by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0,
 * https://doi.org/10.24432/C50P49. The build makes the arrays from digits.txt;
 * README.md says where that file comes from.
 */
enum { DIGITS_COUNT = 1797, DIGITS_PIXELS = 64, DIGITS_CLASSES = 10, DIGITS_PIXEL_MAX = 16 };

extern const uint8_t digits_pixels[DIGITS_COUNT][DIGITS_PIXELS];
extern const uint8_t digits_labels[DIGITS_COUNT];

#endif
