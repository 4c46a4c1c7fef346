"""How attlas is built: by setuptools, with archives that are the same bytes each time.

SOURCE_DATE_EPOCH (reproducible-builds.org) is the time of every file in an archive, 1980 where it
is not set; modes, owners and the order of the files depend on nothing outside of the source.
"""

import gzip
import os
import shutil
import tarfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # what a frontend may ask for as well
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_FIRST = 315_532_800  # 1980, before which a zip knows no time
_FILE, _PROGRAM = 0o644, 0o755


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """The wheel, of the source as it is: what an earlier build left behind is not part of it."""
    shutil.rmtree(Path("build", "lib"), ignore_errors=True)
    with _dated():
        name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    _wheel_anew(Path(wheel_directory, name))
    return name


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """The source distribution."""
    with _dated():
        name = build_meta.build_sdist(sdist_directory, config_settings)
    _sdist_anew(Path(sdist_directory, name))
    return name


def _epoch() -> int:
    return max(_FIRST, int(os.environ.get("SOURCE_DATE_EPOCH") or _FIRST))


@contextmanager
def _dated() -> Iterator[None]:
    """For setuptools, which asks the environment."""
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = str(_epoch())
    try:
        yield
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before


def _mode(mode: int) -> int:
    """Of the rights only whether it is a program: the rest is what a umask made of them."""
    return _PROGRAM if mode & 0o100 else _FILE


def _wheel_anew(path: Path) -> None:
    with zipfile.ZipFile(path) as old:
        parts = [(info, old.read(info)) for info in old.infolist() if not info.is_dir()]
    when = time.gmtime(_epoch())[:6]
    # RECORD lists the others, and stays behind them.
    parts.sort(key=lambda part: (part[0].filename.endswith("/RECORD"), part[0].filename))
    with zipfile.ZipFile(path, "w") as new:
        for info, content in parts:
            entry = zipfile.ZipInfo(info.filename, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whose modes these are
            entry.external_attr = (0o100000 | _mode(info.external_attr >> 16)) << 16
            new.writestr(entry, content)


def _sdist_anew(path: Path) -> None:
    with tarfile.open(path) as old:
        parts = [
            (member, file.read())
            for member in old.getmembers()
            if (file := old.extractfile(member)) is not None
        ]
    raw = BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member, content in sorted(parts, key=lambda part: part[0].name):
            entry = tarfile.TarInfo(member.name)
            entry.size, entry.mtime, entry.mode = len(content), _epoch(), _mode(member.mode)
            new.addfile(entry, BytesIO(content))
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=_epoch()) as packed:
        packed.write(raw.getvalue())
