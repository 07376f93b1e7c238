# SPDX-License-Identifier: Apache-2.0
"""The plan of the source tree, src/rooms.toml, and where a file stands in it."""
import os
import re
import tomllib

PLAN = "src/rooms.toml"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Every public header at once. It stands above all rooms: programs, tests and examples may include it.
UMBRELLA = "flyball"


class House:
    """The rooms by name, each a table with its row, and the rooms of public headers."""

    def __init__(self, root):
        with open(os.path.join(root, PLAN), "rb") as file:
            self.rooms = {room["name"]: room for room in tomllib.load(file)["room"]}
        self.public = {stem: name for name, room in self.rooms.items() for stem in room.get("public", [])}

    def row(self, room):
        """The row of a room; what is no room stands above all."""
        return self.rooms[room]["row"] if room in self.rooms else len(self.rooms) + 1

    def room_of(self, path):
        """The room of a file, or None for what may include anything (tests, examples, ...)."""
        if path.startswith("src/"):
            return os.path.dirname(path[len("src/"):])
        if path.startswith("include/flyball/"):
            return self.public.get(os.path.basename(path)[:-2], UMBRELLA)
        return None

    def uses(self, room):
        """The rooms whose headers a room may include, itself among them."""
        return {room, *self.rooms[room]["uses"]} if room in self.rooms else {room, *self.rooms}

    def stands_below(self, lower, room):
        """Whether files of `room` may use those of `lower`."""
        return lower == room or self.row(lower) < self.row(room)


def walk(root, directories):
    """Paths of all files in those directories, from the root."""
    for directory in directories:
        for path, subdirectories, names in os.walk(os.path.join(root, directory)):
            subdirectories[:] = sorted(set(subdirectories) - {"corpus", "data", "__pycache__"})
            for name in sorted(names):
                yield os.path.relpath(os.path.join(path, name), root)


def read(root, path):
    """The lines of a file."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def includes(root, path):
    """(number of the line, mark, name) of each include of a file."""
    for number, line in enumerate(read(root, path), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, *found.groups()
