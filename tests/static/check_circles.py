# SPDX-License-Identifier: Apache-2.0
"""check_circles.py BUILD ROOT: who calls whom, asked of the objects.

A file of src/ is a source with its header; it uses the file that defines a name
which its object refers to. Files use each other in no circle, and use only what
stands in their room or in a row below (src/rooms.toml). What a header declares is
defined in the header's room. BUILD holds the static libraries. Prints TAP, and the
figures as remarks.
"""
import os
import re
import subprocess
import sys

from house import House, read, walk

LIBRARIES = ["libflyball_knob.a", "libflyball_core.a", "libflyball_floors.a", "libflyball_cli.a", "libflyball_node.a"]
DEFINED = set("TDBRCVWuG")

# Defined in place of the C library's, whose callers know nothing of it.
INSTEAD_OF_LIBC = {"_exit"}


def sources(root):
    """The path in src/ of each source by the name that Meson gives its object."""
    found = {}
    for path, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            if name.endswith(".c"):
                inside = os.path.relpath(os.path.join(path, name), root)
                found[inside.replace("/", "_") + ".o"] = inside
    return found


def symbols(build, root):
    """(names that each source defines, names that it refers to), asked of nm."""
    known = sources(root)
    defined, wanted = {}, {}
    for library in LIBRARIES:
        listing = subprocess.run(["nm", "-P", "-A", os.path.join(build, library)], check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for line in listing.splitlines():
            where, name, kind = line.split()[:3]
            source = known.get(os.path.basename(where.rstrip(":").rstrip("]").split("[")[-1]))
            if source is None:
                continue
            if kind in DEFINED and name not in INSTEAD_OF_LIBC:
                defined.setdefault(name, source)
            elif kind == "U":
                wanted.setdefault(source, set()).add(name)
    return defined, wanted


def uses(defined, wanted):
    """Which sources each source uses."""
    return {source: {defined[name] for name in wanted.get(source, ()) if defined.get(name, source) != source}
            for source in set(defined.values()) | set(wanted)}


def circles(graph):
    """The strongly connected parts of more than one file (Tarjan, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(graph):
        work = [(root, iter(sorted(graph[root])))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            following = next((other for other in rest if other not in index or other in on_stack), None)
            if following is not None:
                if following not in index:
                    work.append((following, iter(sorted(graph.get(following, ())))))
                else:
                    low[node] = min(low[node], index[following])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                part = []
                while not part or part[-1] != node:
                    part.append(stack.pop())
                    on_stack.discard(part[-1])
                if len(part) > 1:
                    found.append(sorted(part))
    return found


def upward(house, graph):
    for source in sorted(graph):
        for used in sorted(graph[source]):
            if not house.stands_below(house.room_of(used), house.room_of(source)):
                yield f"{source} uses {used}, which does not stand below it"


def declared(header):
    """The functions that the text of a header declares, or defines without `static`."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return re.findall(r"^(?!static\b|typedef\b|#)[A-Za-z_][^\n=;{}()]*?\b([a-z_0-9]+)\(", text, flags=re.M)


def strangers(house, root, defined):
    """Functions that are defined in another room than the one whose header declares them."""
    for path in walk(root, ["src"]):
        for name in declared("\n".join(read(root, path))) if path.endswith(".h") else []:
            source = defined.get(name, path)
            if house.room_of(source) != house.room_of(path):
                yield f"{path} declares {name}, which {source} defines"


def made_up_faults():
    """The test of the test: a circle of three behind a chain, none in a diamond, two declarations."""
    ring = {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b", "e"}, "e": set()}
    diamond = {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}
    if circles(ring) != [["b", "c", "d"]]:
        yield f"a circle of three is told as {circles(ring)}"
    if circles(diamond):
        yield f"a diamond is told as {circles(diamond)}"
    header = ("/* int no(void); */\nint one(void);\nstatic inline int not_this(void)\n{\n    return call();\n}\n"
              "void *two(int a,\n          int b);")
    if declared(header) != ["one", "two"]:
        yield f"a header with two functions is told to declare {declared(header)}"


def main():
    build, root = sys.argv[1:3]
    house = House(root)
    defined, wanted = symbols(build, root)
    graph = uses(defined, wanted)
    rings = circles(graph)
    points = [("calls point down", list(upward(house, graph))),
              ("no files use each other in a circle", [", ".join(ring) for ring in rings]),
              ("functions are declared in the room that defines them", list(strangers(house, root, defined))),
              ("circles and declarations are found where they are", list(made_up_faults()))]
    print(f"1..{len(points)}")
    for number, (what, faults) in enumerate(points, 1):
        print(f"{'not ok' if faults else 'ok'} {number} - {what}")
        for fault in faults:
            print(f"# {fault}")
    print(f"# {len(graph)} sources, {sum(map(len, graph.values()))} uses, {len(rings)} circles of files, "
          f"{max(map(len, rings), default=0)} files in the largest")
    return any(faults for _, faults in points)


if __name__ == "__main__":
    sys.exit(main())
