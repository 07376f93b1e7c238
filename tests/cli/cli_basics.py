# SPDX-License-Identifier: Apache-2.0
"""The built program from outside: help, words, statuses, settings, output, manual pages.

usage: cli_basics.py FLYBALL SOURCE_ROOT
"""

import csv
import io
import json
import os
import pathlib
import pty
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
WORK = tempfile.TemporaryDirectory(prefix="flyball-cli-")
HOME = pathlib.Path(WORK.name)

# Nothing of the developer's own settings reaches the tests.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR"))}
CLEAN["HOME"] = str(HOME)


def flyball(*arguments, **options):
    environment = {**CLEAN, **options.pop("environment", {})}
    return tap.run([FLYBALL, *arguments], env=environment, cwd=HOME, **options)


def on_terminal(*arguments, **environment):
    """What the program writes when stdout is a terminal."""
    main, terminal = pty.openpty()
    result = subprocess.run([FLYBALL, *arguments], stdout=terminal, env={**CLEAN, **environment}, cwd=HOME, check=False)
    os.close(terminal)
    pieces = []
    try:
        while piece := os.read(main, 65536):
            pieces.append(piece)
    except OSError:  # the end of a terminal whose other side is closed
        pass
    os.close(main)
    tap.equal(result.returncode, 0)
    return b"".join(pieces).decode()


def commands():
    """The words of every command, from the reference."""
    return re.findall(r"^## flyball (.+)$", flyball("help", "--markdown").stdout, re.MULTILINE)


def pages():
    return ["flyball.1", "flyball.ini.5"] + [f"flyball-{words.replace(' ', '-')}.1" for words in commands()]


def test_version():
    version = re.search(r"version: '([^']+)'", (SOURCE / "meson.build").read_text())[1]
    for arguments in (["version"], ["--version"]):
        result = flyball(*arguments)
        tap.equal((result.returncode, result.stdout, result.stderr), (0, f"flyball {version}\n", ""))


def test_help_of_every_command():
    words = commands()
    if len(words) < 3:
        raise AssertionError(f"too few commands: {words}")
    for command in words:
        explained = flyball("help", *command.split())
        tap.equal((explained.returncode, explained.stderr), (0, ""), command)
        tap.contains(explained.stdout, f"flyball {command} - ")
        tap.contains(explained.stdout, "Examples:\n  flyball ")
        tap.equal(flyball(*command.split(), "--help").stdout, explained.stdout, command)
        tap.equal(flyball(*command.split(), "-h").stdout, explained.stdout, command)
        for line in explained.stdout.splitlines():
            if len(line) > 80 and not line.startswith("  flyball "):
                raise AssertionError(f"{command}: a line of {len(line)} columns: {line}")


def test_every_option_has_help():
    for command in commands():
        reference = flyball("help", *command.split(), "--all").stdout
        for term, text in re.findall(r"^  ((?:-\w, )?--\S+.*?)(?:  +|\n {20,})(\S.*)$", reference, re.MULTILINE):
            if len(text) < 8:
                raise AssertionError(f"{command}: {term} has no help")


def test_of_many_options_those_used_often():
    """'help run' shows the dozen that matter and says where the rest is; --all and the reference leave nothing out."""
    named = re.compile(r"^  (?:-\w, )?--([\w-]+)", re.MULTILINE)
    brief, whole = (flyball("help", "run", *all_).stdout for all_ in ([], ["--all"]))
    shown, every = named.findall(brief), named.findall(whole)
    tap.equal([name for name in shown if name not in every], [])
    for name in ("tune", "job", "max-slowdown", "output", "verbose"):
        tap.contains(shown, name)
    if len(brief.splitlines()) > 100 or len(shown) > 20 or len(every) < 50:
        raise AssertionError(f"{len(brief.splitlines())} lines, {len(shown)} of {len(every)} options")
    tap.contains(brief, f"{len(every) - len(shown)} more options: 'flyball help run --all'")
    reference = flyball("help", "--markdown").stdout
    for name in every:
        tap.contains(reference, f"--{name}")
    tap.equal(flyball("help", "config", "show").stdout, flyball("help", "config", "show", "--all").stdout)


def test_overview():
    everything = flyball("help", "--all").stdout
    for command in commands():
        tap.contains(everything, f"\n  {command} ")
    front = flyball("help").stdout
    tap.equal(flyball("--help").stdout, front)
    for command in commands():
        if re.search(rf"\b{command.split()[0]}\b", front) is None:
            raise AssertionError(f"the front page names neither '{command}' nor its group")


def test_bare_program_fits_a_screen():
    """24 lines of 80 columns, the shell's next prompt among them."""
    lines = flyball().stderr.splitlines()
    if len(lines) > 23 or max(map(len, lines)) > 80:
        raise AssertionError(f"{len(lines)} lines, the longest of {max(map(len, lines))} columns")


def test_group_needs_a_command():
    for words, listed in (([], "monitor"), (["config"], "config show")):
        result = flyball(*words)
        tap.equal((result.returncode, result.stdout), (64, ""))
        tap.contains(result.stderr, listed)
        tap.contains(result.stderr, "needs a command")
    result = flyball("config", "--help")
    tap.equal((result.returncode, result.stderr), (0, ""))
    tap.contains(result.stdout, "config show")


def test_statuses_and_suggestions():
    for arguments, status, message in (
        (["cofnig", "show"], 64, "unknown command 'cofnig'; did you mean 'config show'?"),
        (["config", "shwo"], 64, "unknown command 'config shwo'; did you mean 'config show'?"),
        (["help", "run", "job"], 64, "the command 'run' has none named 'job' below it; see 'flyball help run'"),
        (["help", "versoin"], 64, "did you mean 'version'?"),
        (["config", "show", "--orgin"], 64, "unknown option '--orgin' of 'flyball config show'; did you mean '--origin'?"),
        (["config", "show", "--format", "jsn"], 64, "did you mean 'json'?"),
        (["config", "show", "--quiet", "--quiet"], 64, "option '--quiet' is given twice"),
        (["version", "extra"], 64, "unexpected operand 'extra' of 'flyball version'; see 'flyball help version'"),
        (["help", "--man", "nothing.1"], 66, "there is no manual page 'nothing.1'"),
        (["help", "--format", "json"], 64, "leave '--format' out"),
        (["help", "--man", "flyball.1", "--markdown"], 64, "exclude each other"),
    ):
        result = flyball(*arguments)
        tap.equal((result.returncode, result.stdout), (status, ""), " ".join(arguments))
        tap.contains(result.stderr, message)
        tap.equal(result.stderr[:9], "flyball: ")


def test_unknown_variable_is_warned_of():
    result = flyball("config", "show", environment={"FLYBALL_FROMAT": "csv", "FLYBALL_DISABLE": "1"})
    tap.equal(result.returncode, 0)
    tap.equal(
        result.stderr,
        "flyball: warning: unknown variable 'FLYBALL_FROMAT' has no effect; did you mean 'FLYBALL_FORMAT'?\n",
    )


def test_bad_variable():
    result = flyball("config", "show", environment={"FLYBALL_FORMAT": "cvs"})
    tap.equal((result.returncode, result.stdout), (78, ""))
    tap.contains(result.stderr, "bad value 'cvs' of variable 'FLYBALL_FORMAT'")
    tap.equal(flyball("version", environment={"FLYBALL_FORMAT": "cvs"}).returncode, 0)


def test_config_show_in_three_formats():
    table = flyball("config", "show", "--origin").stdout
    tap.contains(table, "key ")
    document = json.loads(flyball("config", "show", "--origin", "--format", "json").stdout)
    tap.equal(document["schema"], "flyball.config.show/1")
    rows = list(csv.DictReader(io.StringIO(flyball("config", "show", "--origin", "--format", "csv").stdout)))
    tap.equal([row["key"] for row in rows], [row["key"] for row in document["rows"]])
    for row, other in zip(rows, document["rows"]):
        tap.contains(table, row["key"])
        tap.equal(row["schema"], document["schema"])
        if other["value"] is None:
            tap.equal(row["value"], "")
            tap.contains(other["value_unavailable"], "nothing sets the key")
    by_key = {row["key"]: row for row in document["rows"]}
    tap.equal(by_key["format"]["value"], "json")
    tap.equal(by_key["format"]["origin"], "--format")
    tap.equal(by_key["color"]["origin"], "default")


def test_config_files():
    user = HOME / ".config" / "flyball"
    user.mkdir(parents=True)
    (user / "flyball.ini").write_text("color = never\nformat = csv\n")
    (HOME / "flyball.ini").write_text("\nformat = json\n")
    try:
        rows = {row["key"]: row for row in json.loads(flyball("config", "show", "--origin").stdout)["rows"]}
        tap.equal(rows["format"]["origin"], "./flyball.ini:2")
        tap.equal(rows["color"]["origin"], f"{user}/flyball.ini:1")
        elsewhere = flyball("config", "show", environment={"XDG_CONFIG_HOME": str(HOME / "none")})
        tap.equal({row["key"]: row for row in json.loads(elsewhere.stdout)["rows"]}["color"]["source"], "default")
        (HOME / "flyball.ini").write_text("fromat = json\n")
        broken = flyball("config", "show")
        tap.equal((broken.returncode, broken.stdout), (78, ""))
        tap.equal(broken.stderr, "flyball: ./flyball.ini:1: unknown key 'fromat'; did you mean 'format'?\n")
        tap.equal(flyball("help").returncode, 0)
    finally:
        (HOME / "flyball.ini").unlink()
        shutil.rmtree(HOME / ".config")


def test_homes_that_are_not_there():
    """A home that this user may not enter, or none, is as one without files: no command fails by it."""
    closed = HOME / "closed"
    closed.mkdir(exist_ok=True)
    closed.chmod(0)
    commands = [(("version",), 0), (("config", "show"), 0), (("job", "list"), 0), (("report",), 0), (("carbon", "report", "--list"), 0),
                (("devices",), 0), (("run", "--", "true"), 0), (("job", "show", "digits"), 66), (("carbon", "report"), 66)]
    # Root may enter every home, but for the capabilities by which it does.
    rights = "-dac_override,-dac_read_search"
    as_user = [] if os.geteuid() else ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
    try:
        for home in (str(closed), str(closed / "below"), "/nonexistent", "/dev/null", "", None):
            environment = {name: value for name, value in CLEAN.items() if name != "HOME"} | ({} if home is None else {"HOME": home})
            for command, status in commands:
                result = tap.run([*as_user, FLYBALL, *command], env=environment, cwd=HOME)
                tap.equal(result.returncode, status, f"HOME={home} {command}: {result.stderr}")
        # Nor is a working directory.
        result = tap.run(["sh", "-c", 'chmod 700 "$0" && cd "$0" && chmod 0 . && exec "$@"', str(closed), *as_user, FLYBALL, "config", "show"], env=CLEAN)
        tap.equal(result.returncode, 0, result.stderr)
    finally:
        closed.chmod(0o700)


def test_strangers_settings():
    """A working directory's file brings neither code nor an address that a token is sent to."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    path = HOME / "flyball.ini"
    store = f"store = http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        path.write_text(f"[device]\nnvml = ./mine.so\namdsmi = ./mine.so\n[flyball]\n{store}\n")
        ran = flyball("config", "show", "--format", "json", environment={"FLYBALL_TOKEN": "secret"})
        rows = {row["key"]: row for row in json.loads(ran.stdout)["rows"]}
        for key in ("store", "device.nvml", "device.amdsmi"):
            tap.equal(rows[key]["value"], None)
            tap.equal(ran.stderr.count(f"'{key}' does not count in the working directory's file"), 1)
        flyball("job", "list", environment={"FLYBALL_TOKEN": "secret"})
        try:
            listener.accept()
            raise AssertionError("the store that a stranger's file names was asked")
        except BlockingIOError:
            pass
        path.write_text("color = nonsense\n")
        path.chmod(0o666)
        ran = flyball("config", "show")
        tap.equal(ran.returncode, 0)
        tap.equal(ran.stderr.count("'./flyball.ini' is not read: anybody may write it"), 1)
        if os.geteuid() == 0:
            path.chmod(0o644)
            os.chown(path, 12345, 12345)
            tap.contains(flyball("config", "show").stderr, "'./flyball.ini' is not read: it belongs to somebody else")
            path.unlink()
            path.symlink_to("/etc/passwd")
            os.lchown(path, 12345, 12345)
            tap.contains(flyball("config", "show").stderr, "'./flyball.ini' is not read: it is a link that belongs to somebody else")
    finally:
        path.unlink()
        listener.close()


def test_full_disk_on_stdout():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("there is no /dev/full")
    for arguments in (["version"], ["help"], ["config", "show", "--format", "json"], ["config", "show", "--help"]):
        with open("/dev/full", "w") as full:
            result = flyball(*arguments, stdout=full)
        tap.equal(result.returncode, 74, " ".join(arguments))
        tap.contains(result.stderr, "writing standard output failed: No space left on device; ")


def test_closed_stdout():
    result = tap.run(["sh", "-c", '"$0" version >&-', FLYBALL], env=CLEAN, cwd=HOME)
    tap.equal(result.returncode, 74)
    tap.contains(result.stderr, "writing standard output failed: Bad file descriptor")


def test_no_password_is_shown():
    for address, shown in (("postgresql://ada:s3cret@db/x?password=other", "postgresql://ada:***@db/x?password=***"),
                           ("/var/lib/store.sqlite", "/var/lib/store.sqlite")):
        result = tap.run([FLYBALL, "config", "show", "--format=json"], env={**CLEAN, "FLYBALL_STORE": address})
        rows = {row["key"]: row["value"] for row in json.loads(result.stdout)["rows"]}
        tap.equal(rows["store"], shown)


def test_color_only_where_wanted():
    escape = "\033["
    for expected, arguments, environment in (
        (True, ["config", "show"], {}),
        (True, ["help"], {}),
        (True, ["config", "show"], {"NO_COLOR": ""}),
        (False, ["config", "show"], {"NO_COLOR": "1"}),
        (False, ["version", "--help"], {"NO_COLOR": "1"}),
        (False, ["config", "show", "--color", "never"], {}),
        (False, ["config", "show"], {"FLYBALL_COLOR": "never"}),
        (True, ["config", "show", "--color", "always"], {"NO_COLOR": "1"}),
        (False, ["config", "show", "--format", "csv"], {}),
    ):
        found = escape in on_terminal(*arguments, **environment)
        tap.equal(found, expected, f"{arguments} {environment}")
    tap.equal(escape in flyball("config", "show").stdout, False)
    tap.equal(escape in flyball("config", "show", "--color", "always").stdout, True)


def test_manual_pages():
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        raise tap.Skip("mandoc is not installed")
    for page in pages():
        path = HOME / page
        path.write_text(flyball("help", "--man", page).stdout)
        result = tap.run([mandoc, "-T", "lint", "-W", "warning", str(path)])
        tap.equal((result.returncode, result.stdout + result.stderr), (0, ""), page)


def test_manual_pages_are_built():
    listed = (SOURCE / "docs" / "meson.build").read_text()
    for page in pages():
        tap.contains(listed, f"'{page}'", "add the page to docs/meson.build")


def test_units_are_those_of_the_keys():
    """The unit stands at the end of a key; a mean or a percentile of it keeps it."""
    units = {"j": "J", "w": "W", "mw": "mW", "uj": "uJ", "s": "s", "c": "C", "g": "g", "mhz": "MHz", "percent": "%",
             "bytes": "B", "joules": "J", "seconds": "s"}
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \| [^|]* \| (.*) \|$",
                      flyball("help", "--quantities").stdout, re.M)
    assert len(rows) > 300, rows
    for key, unit, meaning in rows:
        last = re.sub(r"(_per_model|_low|_high)(?=_\w+$)|_(mean|p10|p90|total|standard_error)$", "", key).split("_")
        assert meaning.endswith("."), (key, meaning)
        if last[-1] in units and len(last) > 1 and "per" not in last:
            tap.equal(unit, units[last[-1]], key)


tap.main(globals())
