# SPDX-License-Identifier: Apache-2.0
"""Programs in C++ use the library as it is: each header alone, and one program that links with every function.

usage: cpp_program.py FLYBALL SOURCE_ROOT
"""

import pathlib
import re
import shutil
import sys
import tempfile

import check_symbols
import tap

BUILD = pathlib.Path(sys.argv[1]).resolve().parent
ROOT = pathlib.Path(sys.argv[2]).resolve()
# What a plug-in defines is not the library's.
PLUGINS = {"fly_batch_policy_plugin", "fly_power_policy_plugin"}


def compiled(text, *words):
    """Compiles a text with g++ and every warning as an error."""
    if shutil.which("g++") is None:
        raise tap.Skip("g++ is not installed")
    with tempfile.TemporaryDirectory() as directory:
        source, program = pathlib.Path(directory, "program.cc"), pathlib.Path(directory, "program")
        source.write_text(text, encoding="utf-8")
        result = tap.run(["g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT / 'include'}", str(source), "-o", str(program), *words])
        tap.equal((result.returncode, result.stderr), (0, ""), text)
        return tap.run([str(program)]) if program.exists() and "-fsyntax-only" not in words else None


def test_each_header_alone():
    for header in sorted((ROOT / "include" / "flyball").glob("*.h")):
        compiled(f"#include <flyball/{header.name}>\n", "-fsyntax-only")


def test_a_program():
    names = sorted(set(check_symbols.declarations(ROOT)) - PLUGINS)
    tap.equal(len(names) > 50, True, names)
    used = "".join(f"    reinterpret_cast<void (*)()>({name}),\n" for name in names)
    program = f"""
#include <flyball/flyball.h>
#include <cstdio>

static void (*const all[])() = {{
{used}}};

int main()
{{
    std::printf("%s %zu\\n", fly_version(), sizeof all / sizeof *all);
}}
"""
    library = next(BUILD.glob("libflyball.so"))
    if re.search(rb"__[at]san_init", library.read_bytes()):
        raise tap.Skip("the library was built with a sanitizer, which belongs into the program")
    ran = compiled(program, str(library), f"-Wl,-rpath,{BUILD}")
    tap.equal(ran.returncode, 0, ran.stderr)
    tap.contains(ran.stdout, f" {len(names)}\n")


tap.main(globals())
