# SPDX-License-Identifier: Apache-2.0
"""Copies of a store, and stores made from them: whole, of one moment, and never mixed with another's leftovers."""

import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
CLIENT = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "job_client"
WORK = tempfile.TemporaryDirectory(prefix="flyball-copies-", dir=tap.quick_place())
BOX = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR"))}
CLEAN["HOME"] = WORK.name


def fill(store, job, recurrences):
    result = tap.run([CLIENT, store, job, str(recurrences)])
    tap.equal(result.returncode, 0, result.stderr)


def job(*arguments, **options):
    return tap.run([FLYBALL, "job", *map(str, arguments)], env=CLEAN, cwd=BOX, **options)


def good(*arguments):
    result = job(*arguments)
    tap.equal(result.returncode, 0, f"{arguments}: {result.stderr}")
    return result


def refused(status, words, *arguments):
    result = job(*arguments)
    tap.equal(result.returncode, status, f"{arguments}: {result.stderr}")
    tap.contains(result.stderr, words, str(arguments))


def exported(store, name):
    return good("export", name, "--store", store).stdout


def place(name):
    (BOX / name).mkdir()
    return BOX / name


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def killed(store, name):
    """A store whose last changes stand in a log beside it, as a killed service leaves them."""
    with serve_machine.service(FLYBALL, "--store", store) as service:
        fill(service.url, name, 3)
        log = exported(service.url, name)
        service.process.kill()
        service.process.wait()
    tap.equal((store.parent / f"{store.name}-wal").stat().st_size > 0, True, "changes in the log")
    return log


def test_there_and_back():
    here = place("back")
    fill(here / "a.sqlite", "digits", 5)
    before = exported(here / "a.sqlite", "digits")
    tap.contains(good("backup", here / "copy", "--store", here / "a.sqlite").stderr, "holds 1 job with")
    tap.equal(oct((here / "copy").stat().st_mode & 0o777), "0o600")
    copy = (here / "copy").read_bytes()
    refused(65, "there is a file", "backup", here / "copy", "--store", here / "a.sqlite")
    refused(66, "there is no store", "backup", here / "other", "--store", here / "typo.sqlite")
    fill(here / "a.sqlite", "later", 1)
    refused(65, "--replace", "restore", here / "copy", "--store", here / "a.sqlite")
    good("restore", here / "copy", "--store", here / "a.sqlite", "--replace")
    good("restore", here / "copy", "--store", here / "b.sqlite")
    for store in ("a.sqlite", "b.sqlite"):
        tap.equal(exported(here / store, "digits"), before)
        refused(66, "no job 'later'", "show", "later", "--store", here / store)
        fill(here / store, "digits", 1)
    tap.equal((here / "copy").read_bytes() == copy, True, "the copy is as it was")
    tap.equal(names(here), ["a.sqlite", "b.sqlite", "copy"])


def test_of_one_moment():
    """While a program writes: each copy is whole, and a beginning of what is there in the end."""
    here = place("moment")
    fill(here / "store", "digits", 1)
    with tap.Program([CLIENT, here / "store", "digits", "300"], stdout=subprocess.DEVNULL) as writer:
        for number in range(4):
            good("backup", here / f"copy-{number}", "--store", here / "store")
        writer.kill()
    last = exported(here / "store", "digits")
    for number in range(4):
        good("restore", here / f"copy-{number}", "--store", here / f"store-{number}")
        tap.equal(last.startswith(exported(here / f"store-{number}", "digits")), True, "a beginning of it")


def test_leftovers():
    """What a killed service left beside its store is in a copy, and never in a store that is put there."""
    here = place("leftovers")
    fill(here / "other.sqlite", "other", 4)
    other = exported(here / "other.sqlite", "other")
    good("backup", here / "other.copy", "--store", here / "other.sqlite")
    for case in ("with its file", "without its file"):
        store = here / "store.sqlite"
        log = killed(store, "digits")
        for end in ("", "-wal"):
            shutil.copy(f"{store}{end}", f"{here}/by-hand{end}")
        refused(65, "has a log beside it", "restore", here / "by-hand", "--store", here / "new.sqlite")
        good("backup", here / "copy", "--store", store)
        shutil.copy(here / "by-hand", store)
        shutil.copy(here / "by-hand-wal", f"{store}-wal")
        if case == "without its file":
            store.unlink()
        good("restore", here / "other.copy", "--store", store, *(["--replace"] if store.exists() else []))
        tap.equal(exported(store, "other"), other, case)
        refused(66, "no job 'digits'", "show", "digits", "--store", store)
        good("restore", here / "copy", "--store", store, "--replace")
        tap.equal(exported(store, "digits"), log, case)
        for name in ("copy", "store.sqlite", "by-hand", "by-hand-wal"):
            (here / name).unlink()
    tap.equal(names(here), ["other.copy", "other.sqlite"])


def test_in_use():
    here = place("use")
    fill(here / "store", "digits", 2)
    before = exported(here / "store", "digits")
    good("backup", here / "copy", "--store", here / "store")
    with serve_machine.service(FLYBALL, "--store", here / "store") as service:
        refused(69, "is in use", "restore", here / "copy", "--store", here / "store", "--replace")
        tap.equal(exported(service.url, "digits"), before)
        fill(service.url, "digits", 1)
        tap.equal(service.stop(signal.SIGTERM), 0)
    good("restore", here / "copy", "--store", here / "store", "--replace")
    tap.equal(exported(here / "store", "digits"), before)


def test_damaged():
    here = place("damaged")
    fill(here / "store", "digits", 40)
    before = exported(here / "store", "digits")
    good("backup", here / "copy", "--store", here / "store")
    (here / "text").write_text("no database at all, but a text of some length\n" * 30)
    whole = (here / "copy").read_bytes()
    (here / "short").write_bytes(whole[:len(whole) // 2])
    with sqlite3.connect(here / "foreign") as foreign:
        foreign.execute("CREATE TABLE somebody (else_ INTEGER)")
    foreign.close()
    for name, status in (("text", 65), ("short", 74), ("foreign", 65), ("typo", 66), (".", 65)):
        refused(status, "", "restore", here / name, "--store", here / "store", "--replace")
        refused(status, "", "restore", here / name, "--store", here / "new")
    refused(64, "is the store itself", "restore", here / "store", "--store", here / "store", "--replace")
    refused(65, "another program's database", "restore", here / "copy", "--store", here / "foreign", "--replace")
    tap.equal(exported(here / "store", "digits"), before)
    (here / "store").write_bytes(b"\0" * 5000)
    good("restore", here / "copy", "--store", here / "store", "--replace")
    tap.equal(exported(here / "store", "digits"), before)
    tap.equal((here / "store.damaged").read_bytes(), b"\0" * 5000)
    tap.equal("new" in names(here), False)


def test_elsewhere():
    for address in ("postgresql://nobody@localhost/x", "postgres://nobody@localhost/x"):
        refused(69, "pg_dump", "backup", BOX / "x", "--store", address)
        refused(69, "pg_restore", "restore", BOX / "x", "--store", address)
    refused(64, "address of a service", "backup", BOX / "x", "--store", "http://127.0.0.1:1")
    refused(64, "no file was named", "backup")
    refused(64, "no file was named", "restore")


tap.main(globals())
