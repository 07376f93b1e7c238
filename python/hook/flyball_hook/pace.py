# SPDX-License-Identifier: Apache-2.0
"""Tells the steps of a training that has several optimizers: those of the one that steps least often.

A GAN's discriminator may step five times for each step of its generator. So a step is told when the optimizer that is
furthest behind has stepped, and their number is the least of all counts. Optimizers that are there before the first
step is told are waited for. One that turns up later goes on from where the others are. One that is no more, or has
stopped, holds nobody up.
"""

import time


class Optimizer:
    """What is known of one optimizer."""

    __slots__ = ("inside", "last", "longest", "steps")

    def __init__(self, last):
        self.inside = False  # it counts
        self.steps = 0  # its own, and those that were told before its time
        self.last = last  # calls when it stepped last
        self.longest = 1  # calls from one of its steps to the next


class Pace:
    # Optimizers that never step are waited for so many calls and two of each, or fewer that took so long.
    HELD, HELD_SLOW, HELD_S = 256, 16, 60.0
    # One has stopped after so many calls, and so many of its longest gaps; at the program's end after fewer.
    SILENT, SILENT_AT_END, GAPS = 32, 8, 4
    # One that had stopped and steps again counts, unless it steps so much less often than the others.
    RARE = 50
    # How often it is looked whether one has stopped.
    LOOK = 16

    def __init__(self, clock=time.monotonic):
        self.clock = clock
        self.waiting = set()  # keys of optimizers that have not stepped yet
        self.optimizers = {}
        self.inside = []  # of these, those that count
        self.dead = []  # keys of optimizers that are no more; another one may have the key next
        self.told = 0
        self.behind = 0  # how many that count have not gone beyond what was told
        self.calls = 0  # steps of all optimizers
        self.began = None

    def made(self, key):
        """There is such an optimizer."""
        self._bury()
        if key not in self.optimizers and self.told == 0:
            self.waiting.add(key)

    def inner(self, key):
        """It steps within another one's step."""
        self.waiting.discard(key)

    def gone(self, key):
        """It is no more. May be called at any moment, also within the other calls."""
        self.dead.append(key)

    def step(self, key):
        """An optimizer has stepped. Returns how many steps of the training are to be told now."""
        if self.dead:
            self._bury()
        one = self.optimizers.get(key)
        if one is None:
            one = self.optimizers[key] = Optimizer(self.calls if self.told > 0 else 0)
        self.calls += 1
        gap, one.last = self.calls - one.last, self.calls
        if not one.inside:
            self._enter(key, one, gap)
        if gap > one.longest:
            one.longest = gap
        if one.inside:
            one.steps += 1
            self.behind -= one.steps == self.told + 1
        if self.calls % self.LOOK == 0 and len(self.inside) > 1:
            self._leave_silent(self.SILENT, self.GAPS)
        if self.waiting:
            self._give_up_waiting()
        if self.behind > 0:
            return 0
        return self._of_one(self.inside[0]) if len(self.inside) == 1 and not self.waiting else self._due()

    def end(self):
        """The program ends. Returns how many steps are left to tell."""
        self._bury()
        self.waiting.clear()
        self._leave_silent(self.SILENT_AT_END, 1)
        return self._due()

    def _bury(self):
        while self.dead:
            key = self.dead.pop(0)
            self.waiting.discard(key)
            one = self.optimizers.pop(key, None)
            if one is not None and one.inside:
                self.inside.remove(one)
                self._count_behind()

    def _count_behind(self):
        self.behind = sum(one.steps <= self.told for one in self.inside)

    def _enter(self, key, one, gap):
        if one.steps > 0 and self.inside and gap > self.RARE * len(self.inside):
            return
        self.waiting.discard(key)
        if self.told > 0:
            one.steps = max((other.steps for other in self.inside), default=self.told)
        one.inside = True
        self.inside.append(one)
        self.behind += one.steps <= self.told

    def _leave_silent(self, silent, gaps):
        for one in list(self.inside):
            if self.calls - one.last > max(silent, gaps * one.longest):
                one.inside = False
                self.inside.remove(one)
                self._count_behind()

    def _give_up_waiting(self):
        if self.began is None:
            self.began = self.clock()
        calls = self.calls - 2 * (len(self.waiting) + len(self.optimizers))
        if calls >= self.HELD or (calls >= self.HELD_SLOW and self.clock() - self.began > self.HELD_S):
            self.waiting.clear()

    def _of_one(self, one):
        """The same as _due where this one alone counts, but quicker."""
        due, self.told = one.steps - self.told, one.steps
        self.behind = 1
        return due

    def _due(self):
        if self.waiting:
            return 0
        due = max(0, min((one.steps for one in self.inside), default=0) - self.told)
        self.told += due
        self._count_behind()
        return due
