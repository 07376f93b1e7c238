# SPDX-License-Identifier: Apache-2.0
"""embed_digits.py DIGITS OUTPUT: digits.txt as a C source, so that the program needs no file to run.

A line of DIGITS is the digit, a blank, and its 64 pixels row by row, each 0 .. G
(16) in base 17; lines that begin with # are comments.
"""
import sys

PIXELS = "0123456789ABCDEFG"


def read(path):
    with open(path, encoding="ascii") as file:
        for line in file:
            if not line.startswith("#"):
                label, image = line.split()
                yield int(label), [PIXELS.index(pixel) for pixel in image]


def main():
    rows = list(read(sys.argv[1]))
    if any(len(image) != 64 for _, image in rows):
        sys.exit(f"{sys.argv[1]}: an image has not 64 pixels")
    with open(sys.argv[2], "w", encoding="ascii") as file:
        file.write('/* Made by embed_digits.py; see README.md. */\n#include "demo/digits_data.h"\n\n')
        file.write(f'_Static_assert(DIGITS_COUNT == {len(rows)}, "as many as in the file");\n')
        file.write("const uint8_t digits_labels[DIGITS_COUNT] = {\n")
        file.writelines(f"{label},\n" for label, _ in rows)
        file.write("};\nconst uint8_t digits_pixels[DIGITS_COUNT][DIGITS_PIXELS] = {\n")
        file.writelines("{" + ",".join(map(str, image)) + "},\n" for _, image in rows)
        file.write("};\n")


main()
