#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""draw_rooms.py [--check]: draws src/rooms.toml as docs/rooms.svg.

With --check it writes nothing, and says with exit status 1 whether that is out of date.
"""
import html
import os
import sys
import textwrap
import tomllib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PICTURE = "docs/rooms.svg"

WIDTH, LEFT, GAP, PAD = 1120, 40, 8, 10
IN_A_LINE = 5
NAME_PX, LINE_PX, LETTER_PX = 16, 15, 6.6  # of the name, of a line of text, of a letter at the most
COLOURS = {"base": "#e8e2d4", "shapes": "#e8e2d4", "model": "#dfe8d2", "policy": "#cfe3c4", "device": "#cfe0ea",
           "meter": "#c2d8e8", "knob": "#f0d9c4", "grid": "#d5ead9", "store": "#e4dcec", "job": "#d8cfe8",
           "train": "#f3d9d9", "sim": "#efe6c8", "http": "#d9dde3", "serve": "#cbd2dc",
           "node": "#dcd6c8", "compat": "#d6c8dc", "cli": "#e6e6e6"}


def rows(rooms):
    """The rooms by row, the highest first."""
    return [[room for room in rooms if room["row"] == row]
            for row in sorted({room["row"] for room in rooms}, reverse=True)]


def box(room, x, y, width, height):
    lines = textwrap.wrap(room["is"], int((width - 2 * PAD) / LETTER_PX))
    colour = COLOURS[room["name"].split("/")[0]]
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{colour}" stroke="#777"/>'
    yield f'<text class="name" x="{x + PAD}" y="{y + NAME_PX + 2}">{room["name"]}/</text>'
    for number, line in enumerate(lines, 1):
        yield f'<text x="{x + PAD}" y="{y + NAME_PX + 2 + number * LINE_PX}">{html.escape(line)}</text>'


def lines_of(room, width):
    return len(textwrap.wrap(room["is"], int((width - 2 * PAD) / LETTER_PX)))


def picture(rooms):
    """Rows of boxes, the ground at the bottom."""
    body, y = [], 34
    for row in rows(rooms):
        body.append(f'<text class="row" x="{LEFT - 12}" y="{y + NAME_PX + 2}" text-anchor="end">{row[0]["row"]}</text>')
        for first in range(0, len(row), IN_A_LINE):
            line = row[first:first + IN_A_LINE]
            width = (WIDTH - LEFT - GAP) // min(len(row), IN_A_LINE) - GAP
            height = NAME_PX + PAD + LINE_PX * max(lines_of(room, width) for room in line)
            for place, room in enumerate(line):
                body += box(room, LEFT + place * (width + GAP), y, width, height)
            y += height + GAP
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img">\n'
            "<title>The rooms of src/, the ground at the bottom</title>\n"
            "<style>.name { font-weight: bold; font-size: 14px } .row { fill: #777 }</style>\n"
            f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>\n'
            f'<text class="row" x="{LEFT}" y="20">A file uses its own room, and rooms in the rows below it. One colour is one folder of src/.</text>\n')
    return head + "\n".join(body) + "\n</svg>\n"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def main():
    with open(os.path.join(ROOT, "src/rooms.toml"), "rb") as file:
        rooms = tomllib.load(file)["room"]
    made = {PICTURE: picture(rooms)}
    stale = [path for path, text in made.items() if not os.path.exists(os.path.join(ROOT, path)) or read(path) != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} does not match src/rooms.toml; run scripts/draw_rooms.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
