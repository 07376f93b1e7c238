# SPDX-License-Identifier: Apache-2.0
"""embed_text.py TEXT OUTPUT HEADER NAME: a text file as a C source with one array, so that a program needs no file.

HEADER declares `const char NAME[]`.
"""
import sys


BYTES_A_LINE = 24


def main():
    source, output, header, name = sys.argv[1:]
    with open(source, "rb") as file:
        content = file.read() + b"\0"
    with open(output, "w", encoding="ascii") as file:
        file.write(f'/* Made by embed_text.py. */\n#include "{header}"\n\nconst char {name}[] = {{\n')
        for start in range(0, len(content), BYTES_A_LINE):
            file.write("".join(f"{byte}," for byte in content[start:start + BYTES_A_LINE]) + "\n")
        file.write("};\n")


main()
