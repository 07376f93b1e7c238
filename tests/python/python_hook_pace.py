# SPDX-License-Identifier: Apache-2.0
"""Which of several optimizers' steps the start-up hook takes for the training's.

usage: python_hook_pace.py FLYBALL SOURCE_ROOT
"""

import pathlib
import random
import sys

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[2]).resolve() / "python" / "hook"))
from flyball_hook.pace import Pace  # noqa: E402  (of the source, which the line above leads to)


def test_sequences():
    """Sequences of steps of several optimizers, each a letter. What is told never runs ahead where nothing new turns up."""
    cases = [
        ("A" * 9, "A", 9),
        ("AB" * 30, "AB", 30),
        ("AAAAAB" * 30, "AB", 30),
        ("BAAAAA" * 30, "AB", 30),
        ("ABC" * 30, "ABC", 30),
        ("A" * 20 + "B" * 20 + "A" * 20 + "B" * 20, "AB", 40),
        ("A" * 100 + "B" * 100, "A", 200),
        ("A" * 64 + "AAB" * 100, "A", 166),
        (("A" * 99 + "B") * 9, "A", 99 * 9),
    ]
    for sequence, made, counted in cases:
        pace = Pace(clock=lambda: 0.0)
        for letter in made:
            pace.made(letter)
        tap.equal(sum(map(pace.step, sequence)) + pace.end(), counted, sequence[:60])


def test_cycles():
    """Two to four optimizers, each a few times in each iteration: the least of their counts, never more than that on the way."""
    for seed in range(500):
        luck = random.Random(seed)
        counts = [luck.randint(1, 9) for _ in range(luck.randint(2, 4))]
        cycle = [key for key, count in enumerate(counts) for _ in range(count)]
        if seed % 2:
            luck.shuffle(cycle)
        iterations, pace, told = luck.randint(2, 40), Pace(clock=lambda: 0.0), 0
        for key in range(len(counts)):
            pace.made(key)
        for iteration in range(1, iterations + 1):
            told += sum(pace.step(key) for key in cycle)
            tap.equal(told, iteration * min(counts), f"{cycle}, {iteration}")
        tap.equal(told + pace.end(), iterations * min(counts), f"{cycle} {iterations}")


def test_short_lives():
    """Optimizers that come and go: an inner loop's, and those of one trial after the other, which may get the same key."""
    for keys in (1, 2, 1000):
        for inner in (1, 5):
            pace, told = Pace(clock=lambda: 0.0), 0
            pace.made("outer")
            for i in range(60):
                pace.made(i % keys)
                told += sum(pace.step(i % keys) for _ in range(inner))
                pace.gone(i % keys)
                told += pace.step("outer")
            tap.equal(told + pace.end(), 60, f"{keys} keys, {inner} steps within")
        pace, told = Pace(clock=lambda: 0.0), 0
        for i, count in enumerate((20, 3, 1, 30)):
            pace.made(i % keys)
            told += sum(pace.step(i % keys) for _ in range(count))
            pace.gone(i % keys)
        tap.equal(told + pace.end(), 54, f"{keys} keys")


def test_many():
    """One optimizer for each of 300 parameters."""
    pace = Pace(clock=lambda: 0.0)
    for key in range(300):
        pace.made(key)
    tap.equal(sum(pace.step(key) for _ in range(50) for key in range(300)) + pace.end(), 50)


def test_waiting():
    """Slow steps beside an optimizer that never steps are told after a minute."""
    now = [0.0]
    pace = Pace(clock=lambda: now[0])
    pace.made("A"), pace.made("B")
    told = []
    for _ in range(30):
        told.append(pace.step("A"))
        now[0] += 10.0
    tap.equal(told, [0] * 19 + [20] + [1] * 10)


tap.main(globals())
