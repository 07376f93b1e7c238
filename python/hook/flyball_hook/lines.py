# SPDX-License-Identifier: Apache-2.0
"""Writes lines to the file that FLYBALL_STEPS names, as docs/howto/steps.md has them."""

import os
import sys

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")

# Above the descriptors to which programs give fixed numbers.
LOWEST = 10
NOTE_MAX = 200


def _rank():
    """The rank that a launcher or the program gave this process, as text; None: it has none."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed.is_available() and distributed.is_initialized():
            return str(distributed.get_rank())
    except Exception:
        pass
    return next((os.environ[name] for name in RANKS if os.environ.get(name)), None)


def _open():
    """A descriptor of the file of steps; None where it is not within reach."""
    path, device, inode = os.environ["FLYBALL_STEPS"].rsplit(":", 2)
    number = os.environ.get("FLYBALL_STEP_FD", "")
    for place in [path] + ([int(number)] if number.isdecimal() else []):
        try:
            found = os.stat(place)
            if (str(found.st_dev), str(found.st_ino)) == (device, inode):
                if isinstance(place, int):
                    return os.dup(place)
                return os.open(place, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError, OverflowError):
            pass
    return None


def _moved_up(low):
    if low is None:
        return None
    import fcntl

    try:
        return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    finally:
        os.close(low)


def _plain(text):
    """The text as the end of a line: printable ASCII, and not too long."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:NOTE_MAX]


class Lines:
    """Steps go to a file that stays open from the first one on; notes open it and close it again."""

    def __init__(self):
        self.pid = -1
        self.file = None
        self.sender = b""
        self.failed = False

    def tell(self, words="", times=1):
        """Writes so many lines of the training: b"" is a step."""
        if self.pid != os.getpid():
            self._begin()
        if self.file is not None:
            os.write(self.file, (self.sender + words.encode() + b"\n") * times)

    def _begin(self):
        self.pid = os.getpid()
        if self.file is None:
            self.file = _moved_up(_open())
        rank = _rank()
        self.sender = "{}pid {} hook ".format("" if rank is None else "rank {} ".format(rank), self.pid).encode()

    def note(self, words):
        """Writes a line that is no step."""
        file = _open()
        if file is None:
            return
        try:
            os.write(file, "pid {} hook {}\n".format(os.getpid(), _plain(words)).encode())
        finally:
            os.close(file)

    def fail(self, error):
        if self.failed:
            return
        self.failed = True
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = " at line {} of {}".format(trace.tb_lineno, os.path.basename(trace.tb_frame.f_code.co_filename)) if trace else ""
        self.note("failed {}: {}{}".format(type(error).__name__, str(error)[:120], place))
