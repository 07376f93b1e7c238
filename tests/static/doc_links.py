# SPDX-License-Identifier: Apache-2.0
"""Pages lead somewhere: every relative link and anchor of README.md, CHANGELOG.md, CONTRIBUTING.md and docs/, and the index of docs/.

usage: doc_links.py FLYBALL SOURCE_ROOT

Also: README.md is a page, and docs/ has the errors, and the states of readings, that the source has.
"""

import pathlib
import re
import sys

import tap

ROOT = pathlib.Path(sys.argv[2]).resolve()
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")), *DOCS]
WORDS_MOST = 62000  # written by hand
README_WORDS_BELOW = 450


def prose(page):
    """Its text without blocks of code, fenced or indented, and without code in a line."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """Of its headings, as the usual viewers make them: in lower case, without signs, with dashes for blanks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#{1,6} +(.*?) *$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.replace("\\_", "_").lower()).replace(" ", "-")
        count = 0
        while (name if count == 0 else f"{name}-{count}") in found:
            count += 1
        found.add(name if count == 0 else f"{name}-{count}")
    return found


def links(page):
    found = re.findall(r"\]\(([^()\s]+)\)", prose(page))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def test_links_lead_to_files_and_headings():
    broken = []
    for page in PAGES:
        for link in links(page):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    tap.equal(broken, [])


def test_the_index_has_every_page():
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    tap.equal([page.name for page in DOCS if page not in {index, *listed} and page.parent.name != "hardware"], [])


PLACES = ("bench", "data", "docs", "emulator", "examples", "fuzz", "include", "integrations", "python", "scripts", "src", "tests")


def test_files_that_pages_name_are_there():
    """In code of a line; words in capitals, braces and stars stand for others, and a name that is changed is history."""
    gone = []
    for page in [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for path in re.findall(r"`((?:%s)/[\w./-]+)`" % "|".join(PLACES), page.read_text(encoding="utf-8")):
            if not re.search(r"[A-Z]{4,}", path.removesuffix("README.md")) and not (ROOT / path).exists():
                gone.append(f"{page.relative_to(ROOT)}: {path}")
    tap.equal(gone, [])


def test_pages_are_few_words():
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in DOCS)
    tap.equal(words <= WORDS_MOST, True, f"docs/ has {words} words: ask of each page who reads it, and when")


def test_the_readme_is_a_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    words = len(text.split())
    tap.equal(words < README_WORDS_BELOW, True, f"README.md has {words} words; move what is more to a page of docs/")


def test_the_readme_says_first_who_may_set_limits():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = [text.index(word) for word in ("--tune", "Tuner(", "selftest --turn-knobs")]
    tap.equal(0 <= text.index("needs root") < min(examples), True)
    tap.equal(re.findall(r"\bpython (?=\S*\.py)", text), [], "python3 is what a fresh machine has")


def test_errors_are_those_of_the_header():
    header = (ROOT / "include" / "flyball" / "error.h").read_text(encoding="utf-8")
    rows = re.findall(r'X\((FLY_E\w+), -\d+, (\d+), (\d+), "([^"]*)"\)', header)
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    tap.equal(len(rows) > 10, True)
    for row in rows:
        tap.contains(page, "| `{}` | {} | {} | {} |\n".format(*row))


def test_states_are_those_of_the_source():
    """The reasons why a device gives no figure."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.h")]
    table = next(text for text in texts if "#define READING_MAP" in text).split("#define READING_MAP")[1].split("#define")[0]
    rows = re.findall(r'X\(\w+, "(\w+)", "([^"]*)"\)', table)
    page = (ROOT / "docs/reference/units.md").read_text(encoding="utf-8")
    for word, clause in rows:
        if word != "ok":
            tap.contains(page, f"| `{word}` | {clause} |\n")


tap.main(globals())
