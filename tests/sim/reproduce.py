# SPDX-License-Identifier: Apache-2.0
"""reproduce.py FLYBALL ROOT: `make reproduce` in short, and its page against the claims it repeats."""
import csv
import os
import pathlib
import re
import sys
import tempfile

import tap

FLYBALL, ROOT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or ROOT.parent / "shared" / "data").resolve()


def test_page_pictures_and_figures():
    if not (DATA / "zeus_nsdi23" / "summary_train.csv").is_file():
        raise tap.Skip(f"the recorded traces are not in {DATA}; set FLYBALL_TEST_DATA")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        result = tap.run([ROOT / "scripts" / "reproduce", "--seeds", "1-3", "--output", name],
                         env={"PATH": os.environ["PATH"], "BUILD_DIR": str(FLYBALL.parent), "FLYBALL_TEST_DATA": str(DATA)})
        tap.equal((result.returncode, result.stderr), (0, ""))
        page = (directory / "reproduction.md").read_text(encoding="utf-8")
        for claim in ("potential of both | 23.8 to 74.7 % | 23.8 to 74.7 %", "15.3 to 75.8 %", "60.6 %"):
            tap.contains(page, claim)
        for picture in re.findall(r"\]\((images/[^)]*)\)", page):
            tap.contains((directory / picture).read_text(encoding="utf-8"), "</svg>")
        with open(directory / "reproduction.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        both = [float(row["value"]) for row in rows if row["gpu"] == "v100" and row["figure"] == "both"]
        tap.equal((f"{min(both):.1f}", f"{max(both):.1f}"), ("23.8", "74.7"))


if __name__ == "__main__":
    tap.main(globals())
