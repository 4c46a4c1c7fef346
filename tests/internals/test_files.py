"""A file is whole or as it was before."""

import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas._files import write_durably
from attlas.errors import AttlasError


@given(before=st.none() | st.binary(max_size=50), after=st.binary(max_size=5000))
def test_what_is_written_is_there_and_nothing_else_is(
    tmp_path_factory: pytest.TempPathFactory, before: bytes | None, after: bytes
) -> None:
    folder = tmp_path_factory.mktemp("durable")
    if before is not None:
        (folder / "file").write_bytes(before)
    write_durably(folder / "file", after)
    assert (folder / "file").read_bytes() == after
    assert list(folder.iterdir()) == [folder / "file"]


def test_a_write_that_the_system_does_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, content: real(file, content[:3]))
    write_durably(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_a_full_disk_is_an_error_that_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # no file may grow beyond this
    try:
        with pytest.raises(AttlasError) as caught:
            write_durably(path, bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == (
        f"expected to write {path}; got file too large; make room or give the right to write "
        "there; "
        "what was saved before is safe"
    )
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_refused_rename_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(AttlasError, match="got permission denied"):
        write_durably(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match=r"nowhere/file; got no folder .*nowhere; choose"):
        write_durably(tmp_path / "nowhere" / "file", b"")
