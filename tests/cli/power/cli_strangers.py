# SPDX-License-Identifier: Apache-2.0
"""What root makes of other users' entries and locks: ended by their own right, never on their word, and never in root's way.

usage: cli_strangers.py FLYBALL SOURCE_ROOT
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import node_machine
import tap
from power_machine import (CLEAN, DEFAULT_W, FLYBALL, HOME, KNOBS, NOBODY, SLEEPER, WHERE, emulator, entries,
                           kill_both, kill_program, left_behind, limits, machine, power, wait_for)
from standin_daemon import Daemon
from ways_machine import at, daemon, gpu_rows

OTHER = 65533


def asuser(uid):
    return {"user": uid, "group": uid, "extra_groups": []}


@contextlib.contextmanager
def shared_machine(*settings):
    """One GPU, for root and for others."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be another user")
    HOME.chmod(0o755)
    with machine(*settings, gpus=1):
        try:
            subprocess.run([FLYBALL, "version"], capture_output=True, check=True, **asuser(NOBODY))
        except (PermissionError, subprocess.CalledProcessError) as error:
            raise tap.Skip("another user cannot reach the build") from error
        yield


def uuid():
    result = subprocess.run([FLYBALL, "devices", "--format", "json", *WHERE], env=CLEAN, capture_output=True, text=True, check=True)
    return next(row["uuid"] for row in json.loads(result.stdout)["rows"] if row["kind"] == "GPU")


def forge(*turns, uid=NOBODY, maker=(999999999, 1), suffix="turned", head=""):
    """An entry by another user's hand."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    path = KNOBS / f"{uuid()}.{suffix}"
    path.write_text(f"flyball-journal 1\ngpu {uuid()}\nboot {boot}by {maker[0]} {maker[1]} forged\ndate 1700000000\n{head}"
                    + "".join(f"turn {turn}\n" for turn in turns) + "end\n")
    os.chown(path, uid, uid)
    return path


def start_ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def restored(status, end):
    result = power("restore", "--format", "json")
    rows = json.loads(result.stdout)["rows"]
    tap.equal((result.returncode, [row["end"] for row in rows]), (status, [end]), result.stderr)
    return result


def clean_up():
    for path in list(KNOBS.iterdir()):
        shutil.rmtree(path) if not path.is_symlink() and path.is_dir() else path.unlink()


def users_session(environment, *arguments):
    process = subprocess.Popen([FLYBALL, "power", "set", *WHERE, *arguments, "--", *SLEEPER], env={**CLEAN, **environment}, cwd=HOME,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **asuser(NOBODY))
    program = int(process.stdout.readline())
    return process, program


def users_leftover(environment):
    process, program = users_session(environment, "150")
    kill_both(process)
    kill_program(program)
    process.stdout.close()
    process.stderr.close()
    tap.equal((limits(), entries()), ([150], ["turned"]))


def test_a_users_killed_session():
    """By the driver where it lets users, by the daemon of the entry, also where root knows of none."""
    for settings in ([], ["--any-user=no"]):
        with shared_machine(*settings), daemon() as running:
            ways = at(running) if settings else {}
            users_leftover(ways)
            tap.contains(power("get").stdout, "run 'sudo flyball power restore', and remove it only if it stands after that")
            result = restored(0, "restored")
            tap.equal((limits(), entries()), ([DEFAULT_W], []))
            tap.contains(result.stderr, f"left at 150 W by a killed program of user {NOBODY}, is 400 W again")
            # The next start of any command of root's does too.
            users_leftover(ways)
            result = subprocess.run([FLYBALL, "run", *WHERE, "--", "true"], env=CLEAN, cwd=HOME, capture_output=True, text=True, check=False)
            tap.equal((result.returncode, limits(), entries()), (0, [DEFAULT_W], []), result.stderr)


def test_a_users_container():
    """Root of a user namespace is a user; what is killed with its PID namespace, mostly with the guard too, root ends."""
    with shared_machine():
        around = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
        if shutil.which("unshare") is None or subprocess.run([*around, "true"], capture_output=True, check=False, **asuser(NOBODY)).returncode:
            raise tap.Skip("a user gets no container here")
        process = subprocess.Popen([*around, FLYBALL, "power", "set", *WHERE, "150", "--", *SLEEPER], env=CLEAN, cwd=HOME,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **asuser(NOBODY))
        process.stdout.readline()
        tap.equal(limits(), [150])
        process.kill()
        process.wait()
        process.stdout.close()
        # The guard may see its session's end a moment before its own.
        result = power("restore")
        tap.equal((result.returncode, limits(), entries()), (0, [DEFAULT_W], []), result.stderr)


def test_never_its_numbers():
    with shared_machine():
        emulator("set", "--limit-w", 250)
        forge("power_limit_mw 100000 250000 250000")
        restored(0, "restored")
        tap.equal((limits(), entries()), ([DEFAULT_W], []))
        # Where it does not stand as the entry says, it stays.
        emulator("set", "--limit-w", 300)
        forge("power_limit_mw 100000 250000 250000", "persistence_mode 1 0 0")
        restored(0, "changed by another")
        tap.equal((limits(), entries()), ([300], []))
        # Back to what root has set to stay, not beyond it.
        emulator("set", "--limit-w", DEFAULT_W)
        tap.equal(power("set", 350).returncode, 0)
        emulator("set", "--limit-w", 250)
        forge("power_limit_mw 400000 250000 250000")
        restored(0, "restored")
        tap.equal((limits(), entries()), ([350], ["kept"]))
        forge("power_limit_mw 400000 350000 350000")
        restored(0, "unneeded")
        tap.equal((limits(), entries()), ([350], ["kept"]))
        tap.equal(power("restore", "--kept").returncode, 0)
        tap.equal((limits(), entries()), ([DEFAULT_W], []))


def test_who_may_not_turn_turns_nothing():
    """Neither by the limit that root set, nor by a daemon of the forger's own that only says it does."""
    with shared_machine("--any-user=no"), Daemon(str(HOME / "own.sock"), gpu_rows(), lambda *values: None) as own:
        emulator("set", "--limit-w", 250)
        for turns, head, mood in ((["power_limit_mw 100000 250000 250000"], "", None),
                                  (["power_limit_mw 400000 250000 250000 daemon"], f"daemon {own.address}\n", None),
                                  (["clock_ceiling_mhz 0 1200 1200"], "", None),
                                  (["clock_ceiling_mhz 0 1200 1200 daemon"], f"daemon {own.address}\n", "500:POST")):
            own.mood = mood
            forge(*turns, head=head)
            result = restored(77, "not believed")
            tap.contains(result.stderr, "sudo flyball power reset -i 0")
            tap.equal((limits(), entries()), ([250], []), turns)
            tap.equal(power("restore").returncode, 0, "it is said once")
        forge("power_limit_mw 100000 250000 250000")
        result = subprocess.run([FLYBALL, "run", *WHERE, "--", "true"], env=CLEAN, cwd=HOME, capture_output=True, text=True, check=False)
        tap.equal((result.returncode, limits(), entries()), (0, [250], []))
        tap.contains(result.stderr, "his own right does not do it")
        forge("power_limit_mw 100000 250000 250000")
        result = power("set", 300, "--", "true")
        tap.equal((result.returncode, limits()), (0, [250]), result.stderr)
        tap.equal(power("reset").returncode, 0)
        tap.equal(limits(), [DEFAULT_W])
        clean_up()


def strange_things(name, secret):
    """What a user may put in the place of a file of the directory's."""
    path = KNOBS / name

    def of_user(make):
        def made():
            make()
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return made

    def full_directory():
        path.mkdir()
        (path / "more").touch()

    return [("FIFO", of_user(lambda: os.mkfifo(path))), ("link", of_user(lambda: path.symlink_to(secret))),
            ("link to nothing", of_user(lambda: path.symlink_to("/nowhere/at/all"))), ("directory", of_user(path.mkdir)),
            ("full directory", of_user(full_directory)), ("hole", of_user(lambda: (path.touch(), os.truncate(path, 1 << 40)))),
            ("unreadable file", of_user(lambda: (path.touch(), path.chmod(0)))), ("hard link", lambda: os.link(secret, path)),
            ("zeros", of_user(lambda: path.write_bytes(bytes(4096))))]


def test_strange_files():
    with shared_machine():
        gpu = uuid()
        secret = HOME / "secret"
        secret.write_text("root's own\n")
        for name in (f"{gpu}.turned", f"{gpu}.turned.new", f"{gpu}.lock", f"{gpu}.kept", f"{gpu}.turned.corrupt", ".root"):
            for what, make in strange_things(name, secret):
                make()
                result = power("set", 300, "--", "sh", "-c", f"'{FLYBALL}' version >&2")
                tap.equal("is not set" in result.stderr, False, f"{name}, {what}: {result.stderr}")
                tap.equal((result.returncode, limits()), (0, [DEFAULT_W]), f"{name}, {what}: {result.stderr}")
                power("restore", "--kept")
                tap.equal((power("set", 200).returncode, limits()), (0, [200]), f"{name}, {what}")
                tap.equal((power("restore", "--kept").returncode, limits()), (0, [DEFAULT_W]), f"{name}, {what}")
                tap.equal(secret.read_text(), "root's own\n", f"{name}, {what}")
                clean_up()


def test_a_flood_of_files():
    with shared_machine():
        for i in range(600):
            path = KNOBS / f"GPU-{i:04}.{('turned', 'kept')[i % 2]}"
            path.touch()
            os.chown(path, NOBODY, NOBODY)
        emulator("set", "--limit-w", 250)
        forge("power_limit_mw 400000 250000 250000")
        restored(0, "restored")
        tap.equal(limits(), [DEFAULT_W])
        clean_up()


@contextlib.contextmanager
def held(how="", uid=NOBODY, gpu=""):
    """The GPU's lock, held by a user's process; as an orphan by one whose parent, which took it, has ended."""
    path = KNOBS / f"{gpu or uuid()}.lock"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        with contextlib.suppress(OSError):
            fcntl.flock(os.open(path, os.O_RDONLY) if path.exists() else os.open(path, os.O_RDWR | os.O_CREAT, 0o666), fcntl.LOCK_EX)
            if how == "orphan" and os.fork():
                os._exit(0)
            os.write(writer, str(os.getpid()).encode())
            signal.pause()
        os._exit(1)
    os.close(writer)
    pid = int(os.read(reader, 20))
    os.close(reader)
    try:
        yield pid
    finally:
        kill_program(pid)
        os.waitpid(child, 0)


def test_a_held_lock():
    with shared_machine("--any-user=no"):
        for how in ("", "orphan"):
            for before in (None, "root's", "theirs"):
                if before:
                    (KNOBS / f"{uuid()}.lock").touch()
                    (KNOBS / f"{uuid()}.lock").chmod(0o666)
                if before == "theirs":
                    os.chown(KNOBS / f"{uuid()}.lock", NOBODY, NOBODY)
                with held(how) as pid:
                    # With an entry that names a process that lives.
                    forge("power_limit_mw 100000 250000 250000", maker=(pid, start_ticks(pid)))
                    result = power("set", 300, "--", "echo", "ran")
                    tap.equal((result.returncode, result.stdout, "held by" in result.stderr), (0, "ran\n", False), result.stderr)
                    tap.contains(result.stderr, "GPU 0: 300 W until the program has ended")
                    emulator("set", "--limit-w", 250)
                    forge("power_limit_mw 100000 250000 250000", maker=(1, start_ticks(1)))
                    restored(77, "not believed")
                    tap.equal(power("reset").returncode, 0)
                    tap.equal(limits(), [DEFAULT_W])
                clean_up()


def test_a_held_lock_before_a_users_leftover():
    with shared_machine():
        users_leftover({})
        with held(uid=OTHER):
            restored(0, "restored")
            tap.equal((limits(), entries()), ([DEFAULT_W], []))
        # Nor does it keep root from what root's own killed session left.
        gpu = uuid()
        with left_behind(150, gpus=1), held(uid=OTHER, gpu=gpu):
            restored(0, "restored")
            tap.equal((limits(), entries()), ([DEFAULT_W], []))


def test_who_never_answers():
    """A user's daemon that never answers delays root by some seconds, once."""
    with shared_machine("--any-user=no"), daemon() as running:
        running.mood = "hang"
        emulator("set", "--limit-w", 250)
        forge("power_limit_mw 100000 250000 250000 daemon", head=f"daemon {running.address}\n")
        with tap.Program([FLYBALL, "power", "restore", *WHERE], env=CLEAN, cwd=HOME, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True) as process:
            # Not to wait that long: the user ends what asks him.
            wait_for(lambda: any(b"behalf" in path.read_bytes() for path in helpers(process.pid)), "he is asked")
            for path in helpers(process.pid):
                kill_program(int(path.parent.name))
            tap.contains(process.communicate(timeout=tap.PATIENCE_S)[1], "no answer came")
            tap.equal((process.returncode, limits(), entries()), (77, [250], []))
        clean_up()


def helpers(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f" {pid} " in (path.parent / "stat").read_text().rsplit(")", 1)[1]:
                found.append(path)
    return found


def test_a_users_living_session_is_left():
    """Of one who may turn; then root's word counts as soon as it has ended."""
    with shared_machine():
        process, program = users_session({}, "150")
        restored(75, "in use")
        result = power("set", 300)
        tap.equal((result.returncode, limits(), entries()), (75, [150], ["turned"]))
        tap.contains(result.stderr, f"held by a session of user {NOBODY}")
        process.terminate()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        kill_program(program)
        wait_for(lambda: limits() == [DEFAULT_W] and entries() == [], "it is back")
        tap.equal(power("set", 300, "--", "true").returncode, 0)


def test_roots_own_lock_is_respected():
    with shared_machine(), held(uid=0):
        tap.equal(power("set", 300).returncode, 75)
        tap.equal(limits(), [DEFAULT_W])


def test_a_helper_gets_nothing_of_roots():
    """The process that asks on behalf of a user has his groups and no file of root's."""
    with shared_machine("--any-user=no"), daemon() as running:
        running.mood = "hang"  # so that the process can be looked at
        emulator("set", "--limit-w", 250)
        forge("power_limit_mw 100000 250000 250000 daemon", head=f"daemon {running.address}\n")
        with tempfile.TemporaryFile(dir=HOME) as file:
            os.set_inheritable(file.fileno(), True)
            with tap.Program([FLYBALL, "power", "restore", *WHERE], env=CLEAN, cwd=HOME, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, pass_fds=[file.fileno()]) as process:
                wait_for(lambda: running.requests, "the daemon is asked on the user's behalf")
                helper = next(path.parent for path in helpers(process.pid) if b"behalf" in path.read_bytes())
                status = dict(line.split(":", 1) for line in (helper / "status").read_text().splitlines())
                tap.equal((set(status["Uid"].split()), "0" in status["Groups"].split(), "0" in status["Gid"].split()), ({str(NOBODY)}, False, False))
                tap.equal([os.readlink(path) for path in (helper / "fd").iterdir() if os.readlink(path).startswith(str(HOME))], [])
                process.wait(tap.PATIENCE_S)
        tap.equal((process.returncode, limits()), (77, [250]))
        clean_up()


def test_a_directory_of_another_users():
    with shared_machine():
        theirs = HOME / "theirs"
        theirs.mkdir()
        theirs.chmod(0o1777)
        os.chown(theirs, NOBODY, NOBODY)
        result = power("set", 300, environment={"FLYBALL_RUNTIME_DIR": str(theirs)})
        tap.equal((result.returncode, limits()), (77, [DEFAULT_W]))
        tap.contains(result.stderr, "belongs to another user")



def killed_session(limit):
    """A user's session that is killed together with its guard."""
    process, program = users_session({}, limit)
    wait_for(lambda: limits() == [int(limit)], "it is set")
    kill_both(process)
    kill_program(program)
    process.stdout.close()
    process.stderr.close()


def test_daemon_sweeps_what_a_user_left():
    """flyballd puts back what another user's killed session left beside it, and root may set a limit at any moment of that."""
    with shared_machine(), node_machine.daemon() as daemon:
        killed_session("150")
        daemon.said("left at 150 W by a killed program of user")
        wait_for(lambda: (limits(), entries()) == ([DEFAULT_W], []), "it is swept")
        killed_session("150")
        result = power("set", 250)
        tap.equal((result.returncode, limits()), (0, [250]), result.stderr)
        tap.equal((power("restore", "--kept").returncode, limits()), (0, [DEFAULT_W]))


def test_a_users_goal_out_of_reach():
    """The driver's default cannot be set: root sets the nearest by the user's right, and owes the rest itself."""
    with shared_machine():
        killed_session("150")
        (HOME / "faults").write_text("range 100 260\n")
        emulator("set", "--faults", HOME / "faults")
        restored(75, "owed")
        tap.equal((limits(), entries()), ([260], ["owed"]))
        tap.equal(next(KNOBS.glob("*.owed")).stat().st_uid, 0)
        (HOME / "faults").write_text("range 100 400\n")
        emulator("set", "--faults", HOME / "faults")
        restored(0, "restored")
        tap.equal(limits(), [DEFAULT_W])


def test_a_users_debt_is_his():
    """What a user owes is not root's to believe or to settle, and keeps root from nothing."""
    with shared_machine():
        emulator("set", "--limit-w", 260)
        forge("power_limit_mw 390000 260000 260000", suffix="owed")
        restored(75, "owed")
        tap.equal((limits(), entries()), ([260], ["owed"]))
        result = power("set", 250)
        tap.equal((result.returncode, limits()), (0, [250]), result.stderr)
        tap.equal((power("restore", "--kept").returncode, limits()), (75, [260]))
        clean_up()


tap.main(globals())
