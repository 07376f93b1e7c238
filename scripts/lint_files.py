# SPDX-License-Identifier: Apache-2.0
"""lint_files.py BUILD SCRATCH [--changed]: what scripts/lint looks at, which says how it is chosen.

Writes to SCRATCH: `compile_commands.json`, in which a file that several programs are made of stands once, and
lists of paths, one on a line: `formatted`, C files to be formatted; `analysed`, those to be analysed; `left`,
those that --changed leaves out; and `changed`, all that has changed.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

MOST = int(os.environ.get("FLYBALL_LINT_MOST", "100"))
WHOLE = {".clang-format", ".clang-tidy"}  # with another rule, every file is another's


def output(*command):
    """Lines of a command's output; None where it failed."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return ran.stdout.splitlines() if ran.returncode == 0 else None


def base():
    """The commit that changes are looked for against, or None."""
    head = output("git", "rev-parse", "--verify", "HEAD")
    named = os.environ.get("FLYBALL_CHECK_BASE")
    candidates = [["merge-base", "HEAD", named]] if named else []
    candidates += [["merge-base", "HEAD", "origin/main"]]
    checked = pathlib.Path(".ci/checked")
    if checked.exists():
        candidates += [["merge-base", "HEAD", checked.read_text(encoding="utf-8").strip()]]
    candidates += [["rev-parse", "--verify", "HEAD^"]]
    for words in candidates:
        found = output("git", *words)
        # A clone of main has left origin/main nowhere.
        if found and (found != head or words[-1] == named):
            return found[0]
    return None


def changed_files():
    """Paths of what has changed, committed or not, and since when; all that there is where no base is known."""
    since = base()
    listed = output("git", "ls-files", "--others", "--exclude-standard")
    if since is None or listed is None:
        return set(output("git", "ls-files") or output("find", ".", "-type", "f", "-printf", "%P\n")), "the beginning: no base is known"
    return set(output("git", "diff", "--name-only", "--diff-filter=d", since) + listed), since[:12]


def included_by(build):
    """Of each C file that was compiled, the files that it is made of."""
    of, source = {}, None
    for line in output("ninja", "-C", build, "-t", "deps") or []:
        path = os.path.relpath(os.path.join(build, line.strip())) if line.startswith(" ") else None
        if path is None:
            source = None
        elif source is None:
            source = path
            of.setdefault(source, set())
        elif not path.startswith(".."):
            of[source].add(path)
    return of


def distance(source, made_of, changed):
    """0 where a file has changed itself, 1 where it names a header that has, 2 where one of its headers does."""
    if source in changed:
        return 0
    named = re.findall(r'^\s*#\s*include\s*["<]([^">]+)', pathlib.Path(source).read_text(encoding="utf-8"), re.MULTILINE)
    return 1 if any(path.endswith("/" + name) for name in named for path in made_of & changed) else 2


def main():
    build, scratch, only_changed = sys.argv[1], pathlib.Path(sys.argv[2]), "--changed" in sys.argv[3:]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {os.path.relpath(os.path.join(c["directory"], c["file"])): c for c in json.load(file)}
    (scratch / "compile_commands.json").write_text(json.dumps(list(commands.values())), encoding="utf-8")
    directories = [name for name in ("bench", "emulator", "examples", "fuzz", "include", "python", "src", "tests") if os.path.isdir(name)]
    formatted = sorted(str(path) for name in directories for path in pathlib.Path(name).rglob("*.[ch]"))
    analysed, left, changed = sorted(commands), [], set()
    if only_changed:
        changed, since = changed_files()
        formatted = [path for path in formatted if path in changed or changed & WHOLE]
        made_of = included_by(build)
        reached = [path for path in analysed if path in changed or changed & WHOLE or made_of.get(path, set()) & changed]
        reached.sort(key=lambda path: distance(path, made_of.get(path, set()), changed))
        analysed, left = reached[:MOST], reached[MOST:]
        print(f"lint: {len(changed)} files changed since {since}; C files: {len(formatted)} to format, {len(analysed)} to analyse, {len(left)} left")
    for name, paths in (("formatted", formatted), ("analysed", analysed), ("left", left), ("changed", sorted(changed))):
        (scratch / name).write_text("".join(path + "\n" for path in paths), encoding="utf-8")


if __name__ == "__main__":
    main()
