# SPDX-License-Identifier: Apache-2.0
"""Recurring jobs on a PostgreSQL server: the tests of jobs, each over a server instead of a file."""

import os
import pathlib
import sys

import pg_machine
import tap

BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", pathlib.Path(sys.argv[1]).parent / "tests"))
TESTS = ["test_job", "test_job_choice", "test_job_definition", "test_job_digest", "test_job_group", "test_job_history", "test_job_life", "test_job_server"]


def test_over_a_server():
    # Of the client library's memory nothing is ours to free.
    sanitizer = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    with pg_machine.server(tap.quick_place(pg_machine.ROOM_MIB)) as server:
        for name in TESTS:
            environment = {**os.environ, **sanitizer, "FLYBALL_TEST_STORE": server.address()}
            environment.pop("CMOCKA_MESSAGE_OUTPUT", None)
            result = tap.run([BUILD / name], env=environment, timeout=tap.PATIENCE_S)
            talk = result.stdout + result.stderr
            tap.equal(result.returncode, 0, name + "\n" + talk)
            tap.contains(talk, "PASSED", name)
            tap.equal("FAILED" in talk, False, name + "\n" + talk)


tap.main(globals())
