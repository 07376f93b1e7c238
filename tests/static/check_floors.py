# SPDX-License-Identifier: Apache-2.0
"""check_floors.py ROOT: the rules of the source tree that a compiler does not see.

Every file includes only what stands in its own room or in a row below
(src/rooms.toml); what is private to a room stays there; no folder is crowded;
guards follow paths; each file opens with its licence, has a name of its own and
stays short. The last test breaks each rule in a tree made up for that. Prints
TAP, and the figures of the house as remarks.
"""
import os
import re
import subprocess
import sys
import tempfile

from house import PLAN, UMBRELLA, House, includes, read, walk

SOURCE_DIRECTORIES = ["bench", "emulator", "examples", "fuzz", "include", "integrations", "python", "src", "tests"]
SCRIPT_DIRECTORIES = [".ci", "python", "scripts", "tests"]
LINES_MAX = 900
FILES_MAX = 60
# What still includes against the rows, or another room's private header. This list only shrinks.
TIED = []
# What of jansson builds or picks apart an object or a list by hand; in src/shapes alone there is a need to.
JSON_BY_HAND = re.compile(
    r"\bjson_(object_(get|set|foreach|iter|del|update)|array_(get|set|append|insert|foreach|extend)"
    r"|v?(un)?pack|load)")
# Which files still do. This list only shrinks.
WALKS_JSON = [
    "examples/demo/report.c",
    "src/cli/carbon/cmd_carbon_plan.c",
    "src/cli/carbon/cmd_carbon_report.c",
    "src/cli/kit/table_print.c",
    "src/cli/report/cmd_report.c",
    "src/cli/sim/cmd_sim_job.c",
    "src/cli/views/pareto_report.c",
    "src/serve/v1_document.c",
    "src/compat/zeus/serve/zeus_body.c",
]
# A wait with an end that is none of base/wait.h; a poll(2) that looks at once or waits for ever is no such wait.
WAITS_BY_HAND = re.compile(
    r"\b(nanosleep|clock_nanosleep|usleep|sleep|pthread_cond_(timed|clock)wait|sem_timedwait|p?select|ppoll|epoll_p?wait"
    r"|sigtimedwait)\(|(?<![\w>.])poll\((?![^()]*(\([^()]*\)[^()]*)*, (0|-1)\))")
WAITS = ["src/base/clock.c", "src/base/wait.c"]
# A thread is of a pool or of a thread group.
THREADS_BY_HAND = re.compile(r"\bpthread_(create|join|detach)\(")
SPDX = "SPDX-License-Identifier: Apache-2.0"


def c_files(root):
    return [path for path in walk(root, SOURCE_DIRECTORIES) if path.endswith((".c", ".h"))]


def included_room(root, house, mark, name):
    """The room of an included header, None for a system header; raises ValueError with what is wrong."""
    if mark == "<":
        if not name.startswith("flyball/"):
            return None
        stem = os.path.splitext(name[len("flyball/"):])[0]
        if stem != UMBRELLA and stem not in house.public:
            raise ValueError(f"<{name}> is of no room; name it as public in src/rooms.toml")
        return house.public.get(stem, UMBRELLA)
    if not os.path.exists(os.path.join(root, "src", name)):
        raise ValueError(f'"{name}" is not a path from src/')
    return os.path.dirname(name)


def place_fault(house, path):
    """What is wrong with where a file lies, whatever it includes."""
    room = house.room_of(path)
    if path.startswith("src/") and room not in house.rooms:
        return f"src/{room} is no room; add it to src/rooms.toml"
    if room == UMBRELLA and path != f"include/flyball/{UMBRELLA}.h":
        return "is of no room; name it as public in src/rooms.toml"
    return None


def include_fault(root, house, path, mark, name):
    room = house.room_of(path)
    if path.startswith("include/") and mark == '"':
        return f'a public header includes "{name}", which is not installed'
    try:
        target = included_room(root, house, mark, name)
    except ValueError as fault:
        return str(fault)
    if target is None or target in house.uses(room):
        return None
    if target == UMBRELLA and room.startswith("cli"):
        return None
    if house.stands_below(target, room):
        return f"{room} includes {name}, but does not list {target} in src/rooms.toml; if it may use it, add it"
    return f"{room} includes {name} of {target}, which does not stand below it"


def include_faults(root):
    house = House(root)
    for path in c_files(root):
        if house.room_of(path) is None or path in TIED:
            continue
        if place_fault(house, path):
            yield f"{path}: {place_fault(house, path)}"
            continue
        for number, mark, name in includes(root, path):
            fault = include_fault(root, house, path, mark, name)
            if fault:
                yield f"{path}:{number}: {fault}"


def plan_faults(root):
    """What src/rooms.toml says and is not so."""
    house = House(root)
    used = {room: set() for room in house.rooms}
    for path in c_files(root):
        for _, mark, name in includes(root, path) if house.room_of(path) in used else []:
            used[house.room_of(path)].add(included_room(root, house, mark, name))
    for room, facts in house.rooms.items():
        for lower in facts["uses"]:
            if lower not in house.rooms or not house.stands_below(lower, room):
                yield f"{PLAN}: {room} lists {lower}, which does not stand below it"
            elif lower not in used[room]:
                yield f"{PLAN}: {room} lists {lower} and includes nothing of it; take it out"
        for named in re.findall(r"[a-z0-9_/]+\.[ch]\b", facts["begin"]):
            if not any(os.path.exists(os.path.join(root, place, named)) for place in (".", "src/" + room)):
                yield f"{PLAN}: {room} names {named}, which is not there"


def picture_faults(root):
    drawn = subprocess.run([sys.executable, os.path.join(root, "scripts/draw_rooms.py"), "--check"],
                           capture_output=True, text=True, check=False)
    return drawn.stderr.splitlines()


def private_faults(root):
    for path in walk(root, ["src"]):
        for number, mark, name in includes(root, path) if path.endswith((".c", ".h")) and path not in TIED else []:
            if mark == '"' and name.endswith("_private.h") and os.path.dirname("src/" + name) != os.path.dirname(path):
                yield f"{path}:{number}: {name} is private to its room"


def crowd_faults(root):
    for folder, count in files_per_folder(root).items():
        if count > FILES_MAX:
            yield f"{folder}: {count} files, more than {FILES_MAX}; make two rooms of it"


def files_per_folder(root):
    counts = {}
    for path in walk(root, ["src", "tests"]):
        if path.endswith((".c", ".h", ".py")):
            folder = os.path.dirname(path)
            counts[folder] = counts.get(folder, 0) + 1
    return counts


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


def walks_json(root, path):
    return any(JSON_BY_HAND.search(line) for line in read(root, path))


def json_faults(root):
    for path in walk(root, ["src"]):
        if not path.endswith((".c", ".h")) or path.startswith("src/shapes/"):
            continue
        if walks_json(root, path) and path not in WALKS_JSON:
            yield f"{path}: reads or writes JSON by hand; make a table of it (shapes/shape.h)"
        if not walks_json(root, path) and path in WALKS_JSON:
            yield f"{path}: no longer does; take it out of WALKS_JSON"


def wait_faults(root):
    for path in walk(root, ["src"]):
        if not path.endswith(".c") or path in WAITS:
            continue
        for number, line in enumerate(read(root, path), 1):
            if WAITS_BY_HAND.search(line) and not line.lstrip().startswith(("*", "/*")):
                yield f"{path}:{number}: waits by hand; base/wait.h has the waits"
            if THREADS_BY_HAND.search(line) and not path.startswith("src/base/thread/"):
                yield f"{path}:{number}: a thread by hand; begin it with base/thread/pool.h or thread_group.h"


RULES = [
    ("includes point down", include_faults),
    ("private headers stay in their room", private_faults),
    (f"no folder has more than {FILES_MAX} files", crowd_faults),
    ("header guards follow paths", guard_faults),
    ("every file opens with its licence", licence_faults),
    ("file names are unique", name_faults),
    (f"no file is longer than {LINES_MAX} lines", length_faults),
    ("JSON is read and written by shapes", json_faults),
    ("waits and threads are of base", wait_faults),
]

# A file and the one rule it breaks (None: it is right).
HEADER = "/* " + SPDX + " */\n#ifndef {0}\n#define {0}\n{1}\n#endif\n"
SOURCE = "/* " + SPDX + " */\n{0}\n"
MADE_UP = [
    ("src/base/made_up.c", SOURCE.format('#include "model/made_up.h"'), include_faults),
    ("src/model/made_up.c", SOURCE.format('#include "sim/made_up.h"'), include_faults),
    ("src/device/made_up.c", SOURCE.format('#include "store/made_up.h"'), include_faults),
    ("src/cli/run/made_up.c", SOURCE.format('#include "cli/job/made_up.h"'), include_faults),
    ("src/cli/kit/made_up.c", SOURCE.format('#include "cli/made_up.h"'), include_faults),
    ("src/model/made_up.c", SOURCE.format("#include <flyball/power_search.h>"), include_faults),
    ("src/sim/made_up.c", SOURCE.format("#include <flyball/flyball.h>"), include_faults),
    ("src/sim/made_up.c", SOURCE.format("#include <flyball/unheard_of.h>"), include_faults),
    ("src/sim/made_up.c", SOURCE.format('#include "made_up.h"'), include_faults),
    ("src/attic/made_up.c", SOURCE.format(""), include_faults),
    ("include/flyball/unheard_of.h", HEADER.format("FLYBALL_UNHEARD_OF_H", ""), include_faults),
    ("include/flyball/cost.h", HEADER.format("FLYBALL_COST_H", '#include "base/made_up.h"'), include_faults),
    ("src/policy/made_up.c", SOURCE.format('#include "http/made_up.h"'), include_faults),
    ("src/sim/made_up.c", SOURCE.format('#include "base/made_up_private.h"'), private_faults),
    (f"src/store/{FILES_MAX - 1}.c", SOURCE.format(""), crowd_faults),
    (f"tests/store/{FILES_MAX}.c", SOURCE.format(""), crowd_faults),
    ("src/base/made_up.h", HEADER.format("MADE_UP_H", ""), guard_faults),
    ("include/flyball/cost.h", HEADER.format("FLYBALL_INCLUDE_COST_H", ""), guard_faults),
    ("python/extension/made_up.h", HEADER.format("FLYBALL_PYTHON_MADE_UP_H", ""), guard_faults),
    ("src/base/made_up.c", "int x;\n", licence_faults),
    ("python/made_up.py", "x = 1\n", licence_faults),
    ("scripts/made_up", "#!/bin/sh\n", licence_faults),
    ("src/sim/twin.c", SOURCE.format(""), name_faults),
    ("tests/made_up.c", SOURCE.format("\n" * LINES_MAX), length_faults),
    ("src/sim/made_up.c", SOURCE.format('int x = json_object_get(json, "x");'), json_faults),
    ("src/shapes/made_up.c", SOURCE.format('int x = json_object_get(json, "x");'), None),
    ("src/sim/made_up.c", SOURCE.format("int x = json_object_size(json);"), None),
    ("src/knob/made_up.c", SOURCE.format("    nanosleep(&pause, NULL);"), wait_faults),
    ("src/node/made_up.c", SOURCE.format("    ready = poll(&source, 1, most_ms);"), wait_faults),
    ("src/serve/made_up.c", SOURCE.format("    pthread_join(thread, NULL);"), wait_faults),
    ("src/node/made_up.c", SOURCE.format("    ready = poll(sources, sizeof sources / sizeof(sources)[0], 0);"), None),
    ("src/sim/made_up.c", SOURCE.format('#include "base/made_up.h"\n#include <flyball/cost.h>'), None),
    ("src/cli/run/made_up.c", SOURCE.format('#include "cli/kit/made_up.h"\n#include <flyball/flyball.h>'), None),
    ("src/base/made_up.c", SOURCE.format('#include "base/made_up_private.h"'), None),
    ("tests/made_up.c", SOURCE.format("#include <flyball/flyball.h>"), None),
    ("scripts/made_up", f"#!/bin/sh\n# {SPDX}\n", None),
]


def write(root, path, text):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def misjudged(plan, path, text, broken):
    """Writes the file into a tree without faults; yields where a rule says other than expected."""
    with tempfile.TemporaryDirectory() as root:
        write(root, "src/rooms.toml", plan)
        for room in House(root).rooms:
            guard = f"FLYBALL_{room.upper().replace('/', '_')}_MADE_UP_H"
            write(root, f"src/{room}/made_up.h", HEADER.format(guard, ""))
        write(root, "src/base/made_up_private.h", HEADER.format("FLYBALL_BASE_MADE_UP_PRIVATE_H", ""))
        write(root, "src/base/twin.c", SOURCE.format(""))
        for number in range(FILES_MAX - 1):
            write(root, f"src/store/{number}.c", SOURCE.format(""))
        for number in range(FILES_MAX):
            write(root, f"tests/store/{number}.c", SOURCE.format(""))
        write(root, path, text)
        for _, rule in RULES:
            faults = list(rule(root))
            if bool(faults) != (rule == broken):
                yield f"{rule.__name__} finds {faults} in {path}: {text[:200]!r}"


def main():
    root = sys.argv[1]
    plan = "\n".join(read(root, PLAN))
    points = [(what, list(rule(root))) for what, rule in RULES]
    points.append(("the plan says what is so", list(plan_faults(root))))
    points.append(("the picture of the rooms is of the plan", picture_faults(root)))
    points.append(("each rule finds what breaks it, and nothing else",
                   [fault for made_up in MADE_UP for fault in misjudged(plan, *made_up)]))
    print(f"1..{len(points)}")
    for number, (what, faults) in enumerate(points, 1):
        print(f"{'not ok' if faults else 'ok'} {number} - {what}")
        for fault in faults:
            print(f"# {fault}")
    counts = files_per_folder(root)
    most = max(counts, key=counts.get)
    print(f"# {sum(counts.values())} files in {len(counts)} folders, {counts[most]} in the largest ({most}); "
          f"{len(points[0][1])} includes against the rows; {len(WALKS_JSON)} files read or write JSON by hand")
    return any(faults for _, faults in points)


if __name__ == "__main__":
    sys.exit(main())
