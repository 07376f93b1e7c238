# SPDX-License-Identifier: Apache-2.0
"""check_symbols.py LIBRARY ROOT: the library's face is exactly what its headers promise.

LIBRARY is libflyball.so; the headers are ROOT/include/flyball, the manual is
ROOT/docs/reference/api.md. Prints TAP.
"""
import glob
import os
import re
import subprocess
import sys

DECLARATION = re.compile(r"^FLY_API\b[^;]*?\b(\w+)\s*[(;\[]", re.MULTILINE)


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def declarations(root):
    """Every FLY_API name, and whether a comment stands over it or over its group of lines."""
    found = {}
    for path in sorted(glob.glob(os.path.join(root, "include/flyball/*.h"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for match in DECLARATION.finditer(text):
            group = text[:match.start()].rsplit("\n\n", 1)[-1]
            found[match.group(1)] = bool(re.search(r"\*/$", group, re.MULTILINE))
    return found


def manual_words(root):
    try:
        with open(os.path.join(root, "docs/reference/api.md"), encoding="utf-8") as file:
            return set(re.findall(r"\w+", file.read()))
    except FileNotFoundError:
        return set()


def main():
    library, root = sys.argv[1:]
    symbols, declared = exported(library), declarations(root)
    points = [
        ("the library exports something", set() if symbols else {library}),
        ("exported symbols begin with fly_", {name for name in symbols if not name.startswith("fly_")}),
        ("exported symbols are declared in a public header", symbols - set(declared)),
        ("declared functions are exported", set(declared) - symbols),
        ("declared functions have a comment", {name for name, commented in declared.items() if not commented}),
        ("exported symbols are in docs/reference/api.md", symbols - manual_words(root)),
    ]
    print(f"1..{len(points)}")
    for number, (what, faults) in enumerate(points, 1):
        print(f"{'not ok' if faults else 'ok'} {number} - {what}")
        for fault in sorted(faults):
            print(f"# {fault}")
    return any(faults for _, faults in points)


if __name__ == "__main__":
    sys.exit(main())
