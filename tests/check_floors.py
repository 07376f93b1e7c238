# SPDX-License-Identifier: Apache-2.0
"""check_floors.py ROOT: the rules of the source tree that a compiler does not see.

Every file includes only what stands on a floor below its own; guards follow
paths; each file opens with its licence, has a name of its own and stays short.
The last test breaks each rule in a tree made up for that. Prints TAP.
"""
import os
import re
import sys
import tempfile

# From the ground up: a directory of src/ includes itself and what stands before it.
FLOORS = ["base", "model", "policy", "device", "meter", "knob", "grid", "store", "job", "train", "sim", "demo", "serve"]
PROGRAMS = ["cli", "node"]  # on top of all floors, and not of each other

# On which floor a public header <flyball/NAME.h> stands. The umbrella stands
# above all floors: programs, tests and examples may include it.
PUBLIC = {
    "error": "base", "export": "base", "version": "base",
    "cost": "model", "objective": "model", "operating_point": "model", "pareto": "model",
    "power_profile": "model",
    "plugin": "policy", "power_search": "policy", "power_selector": "policy",
    "meter": "meter", "record": "meter",
    "carbon": "train", "session": "train", "tuner": "train",
}
UMBRELLA = "flyball"

SOURCE_DIRECTORIES = ["bench", "emulator", "examples", "fuzz", "include", "integrations", "src", "tests"]
SCRIPT_DIRECTORIES = [".ci", "scripts", "tests"]
LINES_MAX = 500
SPDX = "SPDX-License-Identifier: Apache-2.0"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def walk(root, directories):
    for directory in directories:
        for path, subdirectories, names in os.walk(os.path.join(root, directory)):
            subdirectories[:] = sorted(set(subdirectories) - {"corpus", "data", "__pycache__"})
            for name in sorted(names):
                yield os.path.relpath(os.path.join(path, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def c_files(root):
    return [path for path in walk(root, SOURCE_DIRECTORIES) if path.endswith((".c", ".h"))]


def floor_of(path):
    """The floor a file stands on, or None for what may include anything (tests, examples, ...)."""
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1]
    if path.startswith("include/flyball/"):
        return PUBLIC.get(parts[-1][:-2], UMBRELLA)
    return None


def height(floor):
    return FLOORS.index(floor) if floor in FLOORS else len(FLOORS)


def included_floor(root, mark, name):
    """The floor of an included header, None for a system header; raises ValueError with what is wrong."""
    if mark == "<":
        if not name.startswith("flyball/"):
            return None
        stem = name[len("flyball/"):-2]
        if stem != UMBRELLA and stem not in PUBLIC:
            raise ValueError(f"<{name}> is on no floor; add it to PUBLIC in tests/check_floors.py")
        return PUBLIC.get(stem, UMBRELLA)
    if not os.path.exists(os.path.join(root, "src", name)):
        raise ValueError(f'"{name}" is not a path from src/')
    return name.split("/")[0]


def place_fault(path):
    """What is wrong with where a file lies, whatever it includes."""
    floor = floor_of(path)
    if path.startswith("src/") and floor not in FLOORS + PROGRAMS:
        return f"src/{floor} is no floor; add it to FLOORS or PROGRAMS in tests/check_floors.py"
    if floor == UMBRELLA and path != f"include/flyball/{UMBRELLA}.h":
        return "is on no floor; add it to PUBLIC in tests/check_floors.py"
    return None


def include_fault(root, path, mark, name):
    floor = floor_of(path)
    if path.startswith("include/") and mark == '"':
        return f'a public header includes "{name}", which is not installed'
    try:
        target = included_floor(root, mark, name)
    except ValueError as fault:
        return str(fault)
    if target is None or target == floor or height(target) < height(floor):
        return None
    if target == UMBRELLA and floor in PROGRAMS:
        return None
    return f"{floor} includes {name} of {target}, which does not stand below it"


def include_faults(root):
    for path in c_files(root):
        if floor_of(path) is None:
            continue
        if place_fault(path):
            yield f"{path}: {place_fault(path)}"
            continue
        for number, line in enumerate(read(root, path), 1):
            found = INCLUDE.match(line)
            fault = found and include_fault(root, path, *found.groups())
            if fault:
                yield f"{path}:{number}: {fault}"


def guard_faults(root):
    for path in c_files(root):
        if not path.endswith(".h"):
            continue
        inner = re.sub(r"^(src|include/flyball)/", "", path)
        guard = "FLYBALL_" + re.sub(r"[^A-Za-z0-9]", "_", inner).upper()
        lines = read(root, path)
        if f"#ifndef {guard}" not in lines or f"#define {guard}" not in lines:
            yield f"{path}: the guard is not {guard}"


def is_script(root, path):
    return path.endswith(".py") or (read(root, path) or [""])[0].startswith("#!")


def licence_faults(root):
    for path in c_files(root):
        if (read(root, path) or [""])[0] != f"/* {SPDX} */":
            yield f"{path}:1: not /* {SPDX} */"
    for path in walk(root, SCRIPT_DIRECTORIES):
        if not path.endswith((".c", ".h")) and is_script(root, path) and f"# {SPDX}" not in read(root, path)[:2]:
            yield f"{path}:1: not # {SPDX}"


def name_faults(root):
    seen = {}
    for path in walk(root, ["src"]):
        stem, extension = os.path.splitext(os.path.basename(path))
        if extension == ".c" and seen.setdefault(stem, path) != path:
            yield f"{path}: {seen[stem]} has the same name"


def length_faults(root):
    scripts = [path for path in walk(root, SCRIPT_DIRECTORIES) if is_script(root, path)]
    for path in sorted(set(c_files(root) + scripts)):
        count = len(read(root, path))
        if count > LINES_MAX:
            yield f"{path}: {count} lines, more than {LINES_MAX}; split it by responsibility"


RULES = [
    ("includes point down", include_faults),
    ("header guards follow paths", guard_faults),
    ("every file opens with its licence", licence_faults),
    ("file names are unique", name_faults),
    (f"no file is longer than {LINES_MAX} lines", length_faults),
]

# A file and the one rule it breaks (None: it is right).
HEADER = "/* " + SPDX + " */\n#ifndef {0}\n#define {0}\n{1}\n#endif\n"
SOURCE = "/* " + SPDX + " */\n{0}\n"
MADE_UP = [
    ("src/base/made_up.c", SOURCE.format('#include "model/made_up.h"'), include_faults),
    ("src/model/made_up.c", SOURCE.format('#include "sim/made_up.h"'), include_faults),
    ("src/device/made_up.c", SOURCE.format('#include "store/made_up.h"'), include_faults),
    ("src/cli/made_up.c", SOURCE.format('#include "node/made_up.h"'), include_faults),
    ("src/model/made_up.c", SOURCE.format("#include <flyball/power_search.h>"), include_faults),
    ("src/sim/made_up.c", SOURCE.format("#include <flyball/flyball.h>"), include_faults),
    ("src/sim/made_up.c", SOURCE.format("#include <flyball/unheard_of.h>"), include_faults),
    ("src/sim/made_up.c", SOURCE.format('#include "made_up.h"'), include_faults),
    ("src/attic/made_up.c", SOURCE.format(""), include_faults),
    ("include/flyball/unheard_of.h", HEADER.format("FLYBALL_UNHEARD_OF_H", ""), include_faults),
    ("include/flyball/cost.h", HEADER.format("FLYBALL_COST_H", '#include "base/made_up.h"'), include_faults),
    ("src/base/made_up.h", HEADER.format("MADE_UP_H", ""), guard_faults),
    ("include/flyball/cost.h", HEADER.format("FLYBALL_INCLUDE_COST_H", ""), guard_faults),
    ("src/base/made_up.c", "int x;\n", licence_faults),
    ("scripts/made_up", "#!/bin/sh\n", licence_faults),
    ("src/sim/twin.c", SOURCE.format(""), name_faults),
    ("tests/made_up.c", SOURCE.format("\n" * LINES_MAX), length_faults),
    ("src/sim/made_up.c", SOURCE.format('#include "base/made_up.h"\n#include <flyball/cost.h>'), None),
    ("src/cli/made_up.c", SOURCE.format('#include "sim/made_up.h"\n#include <flyball/flyball.h>'), None),
    ("tests/made_up.c", SOURCE.format("#include <flyball/flyball.h>"), None),
    ("scripts/made_up", f"#!/bin/sh\n# {SPDX}\n", None),
]


def write(root, path, text):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def misjudged(path, text, broken):
    """Writes the file into a tree without faults; yields where a rule says other than expected."""
    with tempfile.TemporaryDirectory() as root:
        for directory in FLOORS + PROGRAMS:
            guard = f"FLYBALL_{directory.upper()}_MADE_UP_H"
            write(root, f"src/{directory}/made_up.h", HEADER.format(guard, ""))
        write(root, "src/base/twin.c", SOURCE.format(""))
        write(root, path, text)
        for _, rule in RULES:
            faults = list(rule(root))
            if bool(faults) != (rule == broken):
                yield f"{rule.__name__} finds {faults} in {path}: {text[:200]!r}"


def main():
    root = sys.argv[1]
    points = [(what, list(rule(root))) for what, rule in RULES]
    points.append(("each rule finds what breaks it, and nothing else",
                   [fault for made_up in MADE_UP for fault in misjudged(*made_up)]))
    print(f"1..{len(points)}")
    for number, (what, faults) in enumerate(points, 1):
        print(f"{'not ok' if faults else 'ok'} {number} - {what}")
        for fault in faults:
            print(f"# {fault}")
    return any(faults for _, faults in points)


if __name__ == "__main__":
    sys.exit(main())
