"""`attlas translate --into` where files are finished already, and what tells that they are."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from attlas.jobs import checkpointed_output as part
from attlas.jobs import translate_files as translating_files
from support.many_files import aged, contents, translate, written


def test_a_finished_text_that_nobody_has_written_to_is_not_read_again(
    run: Path, tmp_path: Path, read: list[Path]
) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    assert translate(run, *sources, "--into", out)[0] == 0
    assert len(read) == 4  # for its checksum, and to be translated
    read.clear()
    assert translate(run, *sources, "--into", out)[0] == 0
    assert read == []
    aged(sources[1], 2e5)  # written again, with the same text
    for again in ([sources[1]], []):
        code, _, error = translate(run, *sources, "--into", out)
        assert (code, error) == (0, f"attlas: all files are in {out}: 2, 2 of them before\n")
        assert read == again
        read.clear()
    (out / "a.txt").unlink()
    assert translate(run, *sources, "--into", out)[0] == 0
    assert set(read) == {sources[0]}


def test_a_text_that_changes_in_the_instant_it_is_done_is_noticed(
    run: Path, tmp_path: Path, read: list[Path]
) -> None:
    (source,), out = written(tmp_path, a=3), tmp_path / "out"
    source.write_text("1 2\n3 4\n", encoding="utf-8")
    fresh = source.stat().st_mtime_ns
    assert translate(run, source, "--into", out)[0] == 0
    source.write_text("1 2\n4 3\n", encoding="utf-8")
    os.utime(source, ns=(fresh, fresh))  # a clock too coarse to tell
    read.clear()
    code, _, error = translate(run, source, "--into", out)
    assert code == 2
    assert "attlas: expected checksum of the text = " in error
    assert read == [source]


@pytest.mark.parametrize("text", ["1 2\n4 3\n", "1 2\n", ""])
def test_a_finished_text_that_has_changed_is_noticed_whatever_its_length(
    run: Path, tmp_path: Path, text: str
) -> None:
    (source,), out = written(tmp_path, a=3), tmp_path / "out"
    source.write_text("1 2\n3 4\n", encoding="utf-8")
    aged(source)
    assert translate(run, source, "--into", out)[0] == 0
    source.write_text(text, encoding="utf-8")
    aged(source, 5e4)
    code, _, error = translate(run, source, "--into", out)
    assert code == 2
    assert "attlas: expected checksum of the text = " in error


@pytest.mark.parametrize("way", ["replaced", "written"])
def test_a_finished_text_that_has_changed_behind_its_size_and_its_time_is_noticed(
    run: Path, tmp_path: Path, way: str
) -> None:
    (source,), out = written(tmp_path, a=3), tmp_path / "out"
    source.write_text("1 2\n3 4\n", encoding="utf-8")
    aged(source)
    before = source.stat()
    assert translate(run, source, "--into", out)[0] == 0
    there = tmp_path / "other" if way == "replaced" else source
    there.write_text("1 2\n4 3\n", encoding="utf-8")
    os.utime(there, ns=(before.st_atime_ns, before.st_mtime_ns))
    there.replace(source)
    after = source.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    code, _, error = translate(run, source, "--into", out)
    assert code == 2
    assert "attlas: expected checksum of the text = " in error


def test_another_setting_is_noticed_though_the_text_is_not_read_again(
    run: Path, tmp_path: Path, read: list[Path]
) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    assert translate(run, *sources, "--into", out)[0] == 0
    read.clear()
    code, _, error = translate(run, *sources, "--into", out, "--window", 3)
    assert code == 2
    assert error.count("got --window = 3") == 2
    assert read == []


@pytest.mark.parametrize("lacking", [{"fingerprint"}, {"changed", "inode"}], ids=["all", "some"])
def test_progress_with_less_of_a_fingerprint_is_read(
    run: Path, tmp_path: Path, read: list[Path], lacking: set[str]
) -> None:
    (source,), out = written(tmp_path, a=3), tmp_path / "out"
    assert translate(run, source, "--into", out)[0] == 0
    record = part.progress_dir(out / source.name) / "progress.json"
    kept = json.loads(record.read_bytes())
    assert kept["fingerprint"]["size"] == source.stat().st_size
    for table in (kept, kept["fingerprint"]):
        for name in lacking & table.keys():
            del table[name]
    record.write_text(json.dumps(kept))
    for again in ([source], []):
        read.clear()
        assert translate(run, source, "--into", out)[0] == 0
        assert read == again


def test_a_text_that_is_written_while_it_is_translated_leaves_nothing_behind(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = written(tmp_path, a=6)
    real = part.ResumableOutput.add

    def add(self: part.ResumableOutput, lines: int, found: bytes) -> None:
        real(self, lines, found)
        source.write_text("1\n" * 6, encoding="utf-8")

    with monkeypatch.context() as patched:
        patched.setattr(part.ResumableOutput, "add", add)
        monkeypatch.setattr(translating_files, "stream_lines", _unbuffered)
        code, _, error = translate(run, source, "--into", tmp_path / "out", "--window", 2)
    assert code == 2
    assert f"expected {source} to stay as it is while it is translated" in error
    assert contents(tmp_path / "out") == {}
    assert translate(run, source, "--into", tmp_path / "out", "--window", 2)[0] == 0


def _unbuffered(path: Path) -> Iterator[str]:
    """The lines as they are on disk when they are asked for."""
    number = 0
    while number < len(lines := path.read_text(encoding="utf-8").split("\n")[:-1]):
        yield lines[number]
        number += 1
