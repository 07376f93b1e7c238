# SPDX-License-Identifier: Apache-2.0
"""A daemon of a test's own: `flyballd` over emulated GPUs (power_machine.py), in a directory of its own.

sys.argv[1] is the program flyball; flyballd and its guard lie beside it.

    with power_machine.machine(), node_machine.daemon() as daemon:
        daemon.ask("GET", "/v1/gpus")            (status, headers, what the JSON says), over the Unix socket
        daemon.url                               http://127.0.0.1:43121
        daemon.stop()                            SIGTERM; the exit status
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading

import power_machine
import serve_machine
import tap

FLYBALLD = os.path.join(os.path.dirname(power_machine.BUILT), "flyballd")
SOCKET = power_machine.HOME / "flyballd.sock"
CONFIG = power_machine.HOME / "flyballd.ini"
STATE = power_machine.HOME / "state-of-daemon"
AUDIT = power_machine.HOME / "audit.jsonl"

# What is the same in all tests; tests run in containers, where no process is root's by the pid namespace.
USUAL = {
    "server": {"listen": f"unix:{SOCKET},127.0.0.1:0", "grace": 60},
    "watch": {"poll": 0.05, "state": STATE},
    "devices": {"nvml": power_machine.DRIVER, "amdsmi": power_machine.HOME / "none.so", "sysfs_root": power_machine.HOME / "root"},
    "lease": {"runtime_directory": power_machine.KNOBS, "audit": AUDIT, "patience": 60},
    "rights": {"contained": "yes", "readonly": power_machine.HOME / "readonly"},
}
OWN_RULE = f"[rule tester]\nfor = user:{os.geteuid()}\nallow = control\n"


def write_config(settings=None, rules=OWN_RULE):
    """The usual settings with others over them, {section: {key: value}}; None leaves a key out."""
    lines = []
    for section in {**USUAL, **(settings or {})}:
        keys = {**USUAL.get(section, {}), **(settings or {}).get(section, {})}
        lines += [f"[{section}]", *(f"{key} = {value}" for key, value in keys.items() if value is not None)]
    CONFIG.write_text("\n".join(lines) + "\n" + rules)
    CONFIG.chmod(0o600)
    return CONFIG


def run(*arguments, **keywords):
    return subprocess.run([FLYBALLD, *map(str, arguments)], env=power_machine.CLEAN, cwd=power_machine.HOME, capture_output=True,
                          text=True, timeout=tap.PATIENCE_S, check=False, **keywords)


class Daemon:
    def __init__(self, *arguments, environment=None):
        STATE.mkdir(exist_ok=True)
        self.talk = []
        self.more = threading.Condition()
        self.process = subprocess.Popen([FLYBALLD, f"--config={CONFIG}", *map(str, arguments)], cwd=power_machine.HOME,
                                        env={**power_machine.CLEAN, **(environment or {})}, text=True, stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self._listen, daemon=True)
        self.reader.start()
        self.url = next(word for word in self.said("listening on http").split() if word.startswith("http")).strip('"},')

    def _listen(self):
        for line in self.process.stderr:
            with self.more:
                self.talk.append(line)
                self.more.notify_all()
        with self.more:
            self.talk.append("")
            self.more.notify_all()

    def said(self, words):
        """The first line with these words, which is waited for."""
        def found():
            return [line for line in self.talk if words in line] or (self.talk and self.talk[-1] == "")
        with self.more:
            if not self.more.wait_for(found, serve_machine.PATIENCE_S) or found() is True:
                raise AssertionError(f"the daemon did not say '{words}': {''.join(self.talk)}")
            return found()[0]

    def ask(self, method, path, body=None, connection=None, headers=None):
        """Asks over the Unix socket, on a connection that stays open if it is given."""
        used = connection or self.connection()
        used.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = used.getresponse()
        content = answer.read()
        if connection is None:
            used.close()
        with contextlib.suppress(ValueError):
            content = json.loads(content)
        return answer.status, dict(answer.getheaders()), content

    def connection(self):
        return serve_machine.UnixConnection(str(SOCKET), serve_machine.PATIENCE_S)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(serve_machine.PATIENCE_S)
        self.reader.join(serve_machine.PATIENCE_S)
        return status


@contextlib.contextmanager
def daemon(*arguments, settings=None, rules=OWN_RULE, **keywords):
    """Ends the daemon with the block, and has it put everything back."""
    write_config(settings, rules)
    made = Daemon(*arguments, **keywords)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.stop()
        made.process.stderr.close()


def lease(daemon, limit_w, gpus=("0",), connection=None, **members):
    """Asks for a lease, and returns it."""
    status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": list(gpus), "power_limit_w": limit_w, **members}, connection)
    tap.equal(status, 200, str(body))
    return body


def audit():
    return [json.loads(line) for line in AUDIT.read_text().splitlines()] if AUDIT.exists() else []


def clean():
    """What a daemon leaves on purpose."""
    for path in (AUDIT, *(STATE.iterdir() if STATE.exists() else ())):
        with contextlib.suppress(FileNotFoundError):
            pathlib.Path(path).unlink()
