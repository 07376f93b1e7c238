# SPDX-License-Identifier: Apache-2.0
"""Jobs that a running service keeps: commands, runs, and its OpenAPI document held against what it answers.

usage: serve_jobs.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
CLIENT = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "job_client"
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-jobs-")
BOX = pathlib.Path(WORK.name)
CLEAN = {**serve_machine.CLEAN, "HOME": WORK.name, "XDG_RUNTIME_DIR": WORK.name}


def filled(name, recurrences=12):
    """A store with a job in it, whose newest trial runs."""
    store = BOX / f"{name}.sqlite"
    result = tap.run([CLIENT, store, "digits", str(recurrences)])
    tap.equal(result.returncode, 0, result.stderr)
    return store


def job(store, *arguments, env=None):
    return tap.run([FLYBALL, "job", *arguments, f"--store={store}"], env=env or CLEAN, cwd=BOX)


def good(store, *arguments):
    result = job(store, *arguments)
    tap.equal(result.returncode, 0, f"{arguments}: {result.stderr}")
    return result


# ---- commands ----


def test_commands_say_the_same():
    store, socket = filled("same"), BOX / "same.sock"
    asked = [["list"], ["show", "digits"], ["history", "digits"], ["why", "digits"], ["why", "digits", "--trial=2"], ["pareto", "digits"],
             ["export", "digits"]]
    with serve_machine.service(FLYBALL, f"--store={store}", listen=f"127.0.0.1:0,unix:{socket}") as service:
        tap.equal(len(service.addresses), 2)
        for words in asked:
            for form in [[], ["--format=json"], ["--format=csv"]] if words[0] != "export" else [[]]:
                local = good(store, *words, *form)
                for address in (service.addresses[0], f"unix:{socket}", service.addresses[0] + "/"):
                    remote = good(address, *words, *form)
                    tap.equal(remote.stdout.replace(address, str(store)), local.stdout, f"{words} {form} at {address}")
                    tap.equal(remote.stderr.replace(address, str(store)), local.stderr, f"{words} {form} at {address}")


def test_changes():
    store = filled("changes", 3)
    lines = good(store, "export", "digits").stdout
    (BOX / "lines.jsonl").write_text(lines)
    with serve_machine.service(FLYBALL, f"--store={store}") as service:
        at = service.url
        good(at, "set", "digits", "--objective=energy", "--max-slowdown=3%")
        tap.equal(json.loads(good(store, "show", "digits", "--format=json").stdout)["objective"]["max_slowdown"], 1.03)
        good(at, "import", "copy", "lines.jsonl")
        tap.equal(len(good(store, "export", "copy").stdout.splitlines()), len(lines.splitlines()))
        again = job(at, "import", "copy", "lines.jsonl")
        tap.equal(again.returncode, 65, again.stderr)
        tap.contains(again.stderr, "job 'copy' is there already")
        good(at, "delete", "copy", "--yes")
        gone = job(at, "show", "copy")
        tap.equal(gone.returncode, 66, gone.stderr)
        tap.contains(gone.stderr, "copy")


def test_nobody_there():
    store, socket = filled("gone", 1), BOX / "gone.sock"
    with serve_machine.service(FLYBALL, f"--store={store}", listen=f"unix:{socket}") as service:
        good(f"unix:{socket}", "list")
        tap.equal(service.stop(), 0)
    result = job(f"unix:{socket}", "list")
    tap.equal(result.returncode, 69, result.stderr)
    tap.contains(result.stderr, f"service 'unix:{socket}': nobody answers")
    with serve_machine.service(FLYBALL, f"--store={store}") as service:
        wrong = job(service.url + "/elsewhere", "list")
        tap.equal(wrong.returncode != 0, True)
        tap.contains(wrong.stderr, "/elsewhere")
        clear = job("http://flyball.invalid:80", "list", env={**CLEAN, "FLYBALL_TOKEN": "hidden"})
        tap.equal(clear.returncode, 64, clear.stderr)
        tap.contains(clear.stderr, "in the clear; use https://")
        tap.equal("hidden" in clear.stderr, False)


# ---- a run ----


def test_run():
    """Tries of `run --job` through the service: the log is that of a store of one's own."""
    if tap.sanitizers(FLYBALL):
        raise tap.Skip("the emulated driver cannot be loaded under sanitizers")
    from power_machine import CLEAN as POWERED, HOME, WHERE, machine  # pylint: disable=import-outside-toplevel

    store, trainer = BOX / "run.sqlite", tap.LIB / "job_trainer.py"
    definition = ["--batch-sizes=16,32", "--default-batch-size=32", "--target-metric=1", "--max-epochs=6", "--objective=energy", "--leave-limits"]
    with serve_machine.service(FLYBALL, f"--store={store}") as service, machine("--sensor", "exact", "--counter-period-ms", "0", gpus=1):
        for name, words in (("job", []), ("crashing", ["fail=32:crash,16:crash"])):
            path = BOX / "report.json"
            result = subprocess.run(
                [FLYBALL, "run", f"--job={name}", "-i", "0", *WHERE, f"--store={service.url}", *definition, f"--output={path}", "--tries=2", "--",
                 sys.executable, trainer, "{batch_size}", *words],
                env=POWERED, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
            said = json.loads(path.read_text())["recurrence"]
            ends = [attempt["end"] for attempt in said["tries"]]
            tap.equal(ends, ["crashed", "crashed"] if words else ["reached"], result.stderr)
            tap.equal((said["log_unavailable"], said["kept_reports"]), (None, 0), result.stderr)
    for name, outcomes in (("job", ["reached"]), ("crashing", ["crashed", "crashed"])):
        history = json.loads(good(store, "history", name, "--format=json").stdout)
        tap.equal([trial["outcome"] for trial in history["rows"]], outcomes)


# ---- the document ----


class Document:
    """An OpenAPI document, and whether bodies are as it says."""

    def __init__(self, text):
        self.json = json.loads(text)
        self.schemas = self.json["components"]["schemas"]

    def operations(self):
        for path, methods in self.json["paths"].items():
            for method, operation in methods.items():
                yield path, method.upper(), operation

    def find(self, method, target):
        bare = target.split("?")[0]
        for path, known, operation in self.operations():
            if known == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), bare):
                return operation
        raise AssertionError(f"{method} {target} is not in the document")

    def resolve(self, schema):
        return {**self.schemas[schema["$ref"].rsplit("/", 1)[1]], **schema} if "$ref" in schema else schema

    def faults(self, value, schema, where="body"):
        """What of the value is not as the schema says."""
        schema = self.resolve(schema)
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        fits = {"null": value is None, "boolean": isinstance(value, bool), "string": isinstance(value, str), "array": isinstance(value, list),
                "object": isinstance(value, dict), "number": isinstance(value, (int, float)) and not isinstance(value, bool),
                "integer": isinstance(value, int) and not isinstance(value, bool)}
        if not any(fits[kind] for kind in kinds):
            return [f"{where} is {value!r}, and no {kinds}"]
        found = []
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found += [f"{where}: {value} < {schema['minimum']}"] if value < schema.get("minimum", value) else []
            found += [f"{where}: {value} > {schema['maximum']}"] if value > schema.get("maximum", value) else []
            found += [f"{where}: {value} is the bound"] if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"] else []
        if isinstance(value, str):
            found += [f"{where} is too long"] if len(value) > schema.get("maxLength", len(value)) else []
            found += [f"{where}: {value!r} is no word of it"] if value not in schema.get("enum", [value]) else []
        if isinstance(value, list):
            for index, entry in enumerate(value):
                found += self.faults(entry, schema["items"], f"{where}[{index}]")
        if isinstance(value, dict) and "properties" in schema:
            found += [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]
            found += [f"{where}.{name} is not in the document" for name in value if name not in schema["properties"]]
            for name, part in schema["properties"].items():
                found += self.faults(value[name], part, f"{where}.{name}") if name in value else []
        return found

    def check(self, method, target, status, headers, content):
        answers = self.find(method, target)["responses"]
        tap.equal(str(status) in answers, True, f"{method} {target} answers {status}")
        said = answers[str(status)].get("content")
        kind = headers.get("Content-Type", "").split(";")[0]
        if said is None:
            tap.equal(content, b"")
            return
        tap.equal(kind in said, True, f"{method} {target} answers {kind}")
        if kind == "application/octet-stream":
            return
        bodies = [json.loads(line) for line in content.splitlines()] if kind == "application/x-ndjson" else [json.loads(content)]
        for body in bodies:
            faults = self.faults(body, said[kind].get("x-each-line", said[kind]["schema"]))
            tap.equal(faults, [], f"{method} {target}")


DEFINITION = {"batch_sizes": [8, 16], "default_batch_size": 16, "target": "at_least", "target_metric": 0.9, "max_epochs": 5}
HARDWARE = {"gpu_model": "Test GPU", "gpu_count": 1, "world_size": 1, "limits_w": [100, 150]}
POINTS = [{"limit_w": 100, "power_w": 90, "time_s": 20}, {"limit_w": 150, "power_w": 140, "time_s": 15}]
EPOCH = {"attempt": 1, "epoch": 1, "metric": 0.5, "energy_j": 100, "time_s": 10}
ASKED = [
    ("PUT", "/v1/jobs/a", DEFINITION, 200),
    ("PUT", "/v1/jobs/a", {**DEFINITION, "max_epochs": 6}, 409),
    ("PUT", "/v1/jobs/b", {**DEFINITION, "max_epochs": "5"}, 422),
    ("PUT", "/v1/jobs/b", "{", 400),
    ("PATCH", "/v1/jobs/a", {"control_every": 0, "objective": {"kind": "cost", "eta": 0.3, "max_slowdown": 1.5}}, 204),
    ("POST", "/v1/jobs/a/trials", {"hardware": HARDWARE, "request": "x", "origin": {"user": "ada"}}, 200),
    ("POST", "/v1/jobs/a/trials", {"hardware": {**HARDWARE, "gpu_model": "x" * 200}}, 413),
    ("POST", "/v1/jobs/a/trials/1/heartbeats", {"attempt": 1, "energy_j": 1, "time_s": 1}, 204),
    ("POST", "/v1/jobs/a/trials/1/profile", {"points": POINTS, "units_per_epoch": 1}, 200),
    ("POST", "/v1/jobs/a/trials/1/epochs", EPOCH, 200),
    ("POST", "/v1/jobs/a/trials/1/epochs", {**EPOCH, "energy_j": 99}, 409),
    ("POST", "/v1/jobs/a/trials/1/epochs", {**EPOCH, "epoch": 2, "metric": 1, "energy_j": 200, "time_s": 20}, 200),
    ("POST", "/v1/jobs/a/trials/1/end", {"attempt": 1, "outcome": "reached", "energy_j": 300, "time_s": 30}, 200),
    ("POST", "/v1/jobs/a/expire", None, 200),
    ("GET", "/v1/jobs/a/events?after=1&limit=3", None, 200),
    ("GET", "/v1/jobs/a/events?limit=x", None, 400),
    ("GET", "/v1/jobs/a/digest?limit=5", None, 200),
    ("GET", "/v1/jobs/a", None, 200),
    ("GET", "/v1/jobs", None, 200),
    ("GET", "/v1/jobs/nobody", None, 404),
    ("DELETE", "/v1/jobs/a", None, 204),
]


def test_document():
    done = set()
    with serve_machine.service(FLYBALL, f"--store={BOX / 'document.sqlite'}") as service:
        document = Document(service.ask("GET", "/v1/openapi.json")[2])
        for method, target, body, expected in ASKED:
            if isinstance(body, dict):
                faults = document.faults(body, document.find(method, target)["requestBody"]["content"]["application/json"]["schema"])
                tap.equal(bool(faults), expected in (413, 422), f"{method} {target}: {faults}")
            status, headers, content = service.ask(method, target, body)
            tap.equal(status, expected, f"{method} {target}: {content}")
            document.check(method, target, status, headers, content)
            if status < 300:
                done.add(document.find(method, target)["operationId"])
        lines = "\n".join(json.dumps({"number": 1, "time_us": 1, "kind": "defined", "trial": 0, "key": "", "body": body}) for body in [{}])
        status, headers, content = service.ask("POST", "/v1/jobs/c/events", lines)
        tap.equal(status, 422, content)
        document.check("POST", "/v1/jobs/c/events", status, headers, content)
        everything = {operation["operationId"] for _, _, operation in document.operations()}
        tap.equal(everything - done, {"import"})
        for path, method, operation in document.operations():
            names = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
            tap.equal(names, re.findall(r"\{(\w+)\}", path), f"{method} {path}")


tap.main(globals())
