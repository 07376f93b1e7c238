# SPDX-License-Identifier: Apache-2.0
"""Runs a test of a program, which finds what all rooms' tests share beside this file.

usage: start.py TEST.py FLYBALL SOURCE_ROOT
"""
import pathlib
import runpy
import sys

del sys.argv[0]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).resolve().parent))
runpy.run_path(sys.argv[0], run_name="__main__")
