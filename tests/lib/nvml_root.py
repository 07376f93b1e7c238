# SPDX-License-Identifier: Apache-2.0
"""Turns knobs of emulated GPUs through the driver library, as root does. For tests that stand in for root's programs."""

import ctypes
import os


class Driver:
    def __init__(self, path, state):
        os.environ["FLYBALL_EMULATOR_STATE"] = str(state)
        self.library = ctypes.CDLL(str(path))

    def _call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} failed with {code}")

    def turn(self, operation, index, values):
        """An operation of the public daemon."""
        gpu = ctypes.c_void_p()
        number = {name: ctypes.c_uint(int(text)) for name, text in values.items() if text.isdigit()}
        self._call("nvmlInit_v2")
        try:
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(gpu))
            if operation == "set_power_limit":
                self._call("nvmlDeviceSetPowerManagementLimit", gpu, number["power_limit_mw"])
            elif operation == "set_persistence_mode":
                self._call("nvmlDeviceSetPersistenceMode", gpu, ctypes.c_uint({"true": 1, "false": 0}[values["enabled"]]))
            elif operation == "set_gpu_locked_clocks":
                self._call("nvmlDeviceSetGpuLockedClocks", gpu, number["min_clock_mhz"], number["max_clock_mhz"])
            elif operation == "reset_gpu_locked_clocks":
                self._call("nvmlDeviceResetGpuLockedClocks", gpu)
            else:
                raise RuntimeError(f"{operation} is not stood in for")
        finally:
            self._call("nvmlShutdown")
