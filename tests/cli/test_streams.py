"""Standard streams that are closed, broken or full."""

import os
from pathlib import Path

import pytest

from attlas.runs import Run
from support.warm_processes import shell

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a shell and /dev/full")


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["2>&1 | head -1", "2> /dev/full", "2>&-", ">&- 2>&- <&-"])
def test_a_training_goes_on_when_nobody_hears_of_it(
    recipe: Path, tmp_path: Path, streams: str
) -> None:
    folder = tmp_path / "run"
    code, _ = shell(f"attlas train {recipe} --out {folder} {streams}")
    assert code == 0
    assert Run(folder).checkpoints()[-1] == "00000003"
    assert Run(folder).events()[-1]


@pytest.mark.slow
def test_a_closed_stream_is_an_empty_one(run: Path, tmp_path: Path) -> None:
    for streams, code in (("<&-", 0), (">&-", 0), (">&- <&-", 0)):
        assert shell(f"attlas translate {run} {streams}", b"1 2\n") == (code, "")
    out = tmp_path / "out"
    assert shell(f"attlas translate {run} -o {out} <&- >&- 2>&-", cold=True) == (0, "")
    assert out.read_bytes() == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name"),
    [("> /dev/full", "the standard output, or a file"), ("-o /dev/full", "'/dev/full'")],
)
def test_a_full_disk_is_reported_with_the_name_of_the_file(
    run: Path, where: str, name: str
) -> None:
    code, error = shell(f"attlas translate {run} {where}", b"1 2\n")
    assert code == 2
    assert error.startswith(f"attlas: expected to use {name}; got No space left on device")
    assert error.count("\n") == 1


@pytest.mark.parametrize("what", ["--version", "--help", "train --help"])
def test_a_full_disk_is_reported_without_a_command_too(what: str) -> None:
    code, error = shell(f"attlas {what} > /dev/full", cold=True)
    assert code == 2
    assert error == (
        "attlas: expected to use the standard output, or a file; got No space left on device; make "
        "room there\n"
    )


@pytest.mark.slow
def test_a_reader_of_another_file_that_leaves_is_no_end_of_the_work(
    run: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    line = f"head -c 3 {pipe} > /dev/null & attlas translate {run} -o {tmp_path / 'out'} "
    code, error = shell(line + f"--alignments {pipe} --window 1", b"1 2 3\n" * 3000)
    assert code == 2
    assert f"expected to use '{pipe}'; got Broken pipe" in error
