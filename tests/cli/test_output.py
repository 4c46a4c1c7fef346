"""What a command writes, and what stood there before."""

import gzip
import os
import resource
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas._output import check_replaceable, open_output
from attlas.errors import AttlasError
from support.command_line import called

BEFORE = b"an hour of work\n"


def read(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


@given(
    before=st.none() | st.binary(max_size=20),
    written=st.lists(st.binary(min_size=1, max_size=30), max_size=4),
    flushed=st.booleans(),
    fails=st.booleans(),
    suffix=st.sampled_from(["", ".gz"]),
)
def test_what_stood_there_stays_where_a_mistake_comes_before_the_first_byte(
    before: bytes | None, written: list[bytes], flushed: bool, fails: bool, suffix: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"out{suffix}"
        if before is not None:
            path.write_bytes(before)
        with suppress(RuntimeError), ExitStack() as files:
            file = open_output(path, files)
            for content in written:
                file.write(content)
            if flushed and written:
                file.flush()
            if fails:
                raise RuntimeError
        if not fails or (flushed and written):
            assert read(path) == b"".join(written)
        elif before is None:
            assert not path.exists()
        else:
            assert path.read_bytes() == before


def test_of_a_file_of_which_no_byte_could_be_written_nothing_is_left(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as on a full disk
    try:
        with pytest.raises(OSError, match="too large"), ExitStack() as files:
            open_output(tmp_path / "out", files).write(b"text")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def make(path: Path, kind: str) -> None:
    match kind:
        case "folder":
            path.mkdir()
        case "bytes":
            path.write_bytes(b"\xff 1\n2\n")
        case "gzip":
            path.write_bytes(gzip.compress(b"1 2\n")[:12])


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", ["missing", "folder", "bytes", "gzip"])
@pytest.mark.parametrize("command", ["translate", "classify"])
def test_an_input_that_cannot_be_read_destroys_no_output(
    run: Path, labelling: Path, tmp_path: Path, command: str, kind: str, suffix: str
) -> None:
    text, out = tmp_path / "text", tmp_path / f"out{suffix}"
    make(text, kind)
    requested = (command, run if command == "translate" else labelling, "-i", text, "-o", out)
    assert called(*requested)[0] == 2
    assert not out.exists()
    out.write_bytes(BEFORE)
    assert called(*requested)[0] == 2
    assert out.read_bytes() == BEFORE


def test_an_empty_input_makes_an_empty_output(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(BEFORE)
    assert called("translate", run, "-o", out, text="")[0] == 0
    assert out.read_bytes() == b""


def test_alignments_of_a_text_that_cannot_be_read_stay_too(run: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.write_bytes(BEFORE)
    assert called("translate", run, "-i", tmp_path / "tpyo", "--alignments", links)[0] == 2
    assert links.read_bytes() == BEFORE


def test_what_is_no_regular_file_is_written_as_it_is(run: Path, tmp_path: Path) -> None:
    assert called("translate", run, "-o", os.devnull, text="1 2\n")[0] == 0
    (tmp_path / "there").write_bytes(BEFORE)
    (tmp_path / "link").symlink_to("there")
    assert called("translate", run, "-o", tmp_path / "link", text="1 2\n")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == called("translate", run, text="1 2\n")[1].encode()


@pytest.mark.parametrize(
    ("name", "advice"),
    [("none/out", "choose a folder that exists"), (".", "or choose another place")],
)
def test_what_cannot_be_opened_is_reported_with_what_helps(
    tmp_path: Path, name: str, advice: str
) -> None:
    with pytest.raises(AttlasError, match=f"expected to write .*{advice}"), ExitStack() as files:
        open_output(tmp_path / name, files)


def test_of_a_link_the_folder_counts_to_which_it_leads_and_a_device_is_written_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[str] = []
    monkeypatch.setattr(os, "access", lambda path, _: not requested.append(str(path)))
    (tmp_path / "there").mkdir()
    (tmp_path / "link.png").symlink_to(tmp_path / "there" / "map.png")
    for path in (tmp_path / "link.png", os.devnull, None):
        check_replaceable(path)
    assert requested == [str(tmp_path / "there"), os.path.realpath(os.devnull)]


@pytest.mark.parametrize("command", ["translate", "classify", "evaluate"])
def test_a_place_that_cannot_be_written_is_reported_before_the_run_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    requested = (command, tmp_path / "no-run", "-o")
    assert f"expected to write {tmp_path}; got a folder of that" in called(*requested, tmp_path)[2]
    out = tmp_path / "none" / "out"
    assert f"got no folder {out.parent}; choose a folder that" in called(*requested, out)[2]
    monkeypatch.setattr(os, "access", lambda path, _: str(path) != str(tmp_path))
    out = tmp_path / "out"
    assert f"expected to write {out}; got no right to write there" in called(*requested, out)[2]
