"""`attlas translate RUN FILES --into FOLDER`."""

import errno
import gzip
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from attlas.cli import part, translating_files
from attlas.cli.application import app
from attlas.cli.shard import Shard
from attlas.decoding.forks import POSSIBLE
from attlas.errors import AttlasError
from attlas.runs import held

DRAWN = ("--set", "decoding.method=sample")  # of a model that knows nothing yet, the most to see
PATIENCE = 300.0  # seconds; only a failure waits so long
THREADS = pytest.mark.parametrize("threads", [1, 2])


def translate(*arguments: object, text: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["translate", *map(str, arguments), *DRAWN], input=text)
    return result.exit_code, result.stdout_bytes.decode(), result.stderr


def started(*arguments: object, threads: int = 1) -> "subprocess.Popen[str]":
    """A process group of its own; with several threads, as many children search for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "attlas", "translate", *map(str, arguments), *DRAWN],
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def written(folder: Path, seed: int = 0, **lines: int) -> list[Path]:
    """Files of so many lines, some of them empty."""
    chance, found = random.Random(seed), []
    for name, count in lines.items():
        rows = (" ".join(chance.choices("0123456", k=chance.randrange(6))) for _ in range(count))
        found.append(folder / f"{name}.txt")
        found[-1].write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        aged(found[-1])
    return found


def aged(path: Path, seconds: float = 1e5) -> None:
    """As if it had been written so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def progress(output: Path) -> int:
    """How many lines of it are done."""
    try:
        return int(json.loads((part.books(output) / "progress.json").read_bytes())["lines"])
    except FileNotFoundError:
        return 0


def until_there_are(lines: int, output: Path) -> None:
    end = time.monotonic() + PATIENCE
    while progress(output) < lines:
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def half_done(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path, bytes]:
    """A file of which four lines are translated, the folder, and what it will come to."""
    (source,) = written(tmp_path, half=9)
    wanted = translate(run, "-i", source, "--window", 2)[1].encode()
    real = part.Part.add

    def add(self: part.Part, lines: int, found: bytes) -> None:
        if self.progress.lines == 4:
            raise RuntimeError("the power is gone")
        real(self, lines, found)

    with monkeypatch.context() as patched:
        patched.setattr(part.Part, "add", add)
        assert translate(run, source, "--into", tmp_path / "out", "--window", 2)[0] == 1
    assert progress(tmp_path / "out" / "half.txt") == 4
    return source, tmp_path / "out", wanted


@pytest.mark.parametrize("window", [1, 3, 512])
def test_each_file_becomes_one_of_the_same_name_with_the_lines_that_a_stream_would_have(
    run: Path, tmp_path: Path, window: int
) -> None:
    texts = {
        "plain": "1 2 3\n\n4 5\n",
        "no end": "1 2\n3",
        "empty": "",
        "blank": "\n \n\n",
        "strange [b] \u2028": "5 \u2028 6 \x85 7\n8 \r 8\r\n\ufeff1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    sources = [tmp_path / f"{name}{suffix}" for name in texts for suffix in ("", ".gz")]
    code, out, error = translate(run, *sources, "--into", tmp_path / "out", "--window", window)
    assert (code, out) == (0, ""), error
    found = contents(tmp_path / "out")
    assert found.keys() == {source.name for source in sources}
    for name, text in texts.items():
        streamed = translate(run, "-i", tmp_path / name, "--window", window)[1].encode()
        assert found[name] == streamed
        assert gzip.decompress(found[f"{name}.gz"]) == streamed
        lines = text.removesuffix("\n").split("\n") if text else []
        assert streamed.count(b"\n") == len(lines)


def test_a_second_run_leaves_what_is_done_as_it_is(run: Path, tmp_path: Path) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    assert translate(run, *sources, "--into", out)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    code, _, error = translate(run, *reversed(sources), "--into", out)
    assert code == 0
    assert error == f"attlas: all files are in {out}: 2, 2 of them before\n"
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}


def test_what_was_begun_goes_on_where_it_stopped(
    run: Path, half_done: tuple[Path, Path, bytes]
) -> None:
    source, out, wanted = half_done
    assert contents(out) == {}  # nothing of it shows before it is whole
    with (part.books(out / source.name) / "lines").open("ab") as file:
        file.write(b"half of a wri")  # killed in the middle of one
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 0
    assert "9 lines, 4 of them before" in error
    assert contents(out) == {"half.txt": wanted}


def test_an_output_that_was_taken_away_is_made_again(run: Path, tmp_path: Path) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    assert translate(run, *sources, "--into", out)[0] == 0
    wanted = contents(out)
    (out / "a.txt").unlink()
    assert translate(run, *sources, "--into", out)[0] == 0
    assert contents(out) == wanted


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--beam", "2"), ["decoding.method = sample", "decoding.method = beam"]),
        (("--set", "decoding.seed=4"), ["decoding.seed = 0", "decoding.seed = 4"]),
        (("--window", "3"), ["window = 2", "window = 3"]),
        (("--n-best", "1"), ["n-best lists = False", "n-best lists = True"]),
    ],
)
def test_a_setting_that_has_changed_is_named_whether_the_file_is_done_or_begun(
    run: Path, half_done: tuple[Path, Path, bytes], arguments: tuple[str, str], named: list[str]
) -> None:
    source, out, wanted = half_done
    command = ["translate", str(run), str(source), "--into", str(out)]
    window = () if "--window" in arguments else ("--window", "2")
    drawn = () if "--beam" in arguments else DRAWN
    for state in ("translated as far as line 4", "translated"):
        result = CliRunner().invoke(app, [*command, *window, *drawn, *arguments])
        assert result.exit_code == 2
        assert all(one in result.stderr for one in [*named, f"{out / source.name}, {state}, to be"])
        assert "Traceback" not in result.stderr
        assert translate(run, source, "--into", out, "--window", 2)[0] == 0
        assert contents(out) == {"half.txt": wanted}


def test_another_text_run_or_vocabulary_is_named_too(
    run: Path, half_done: tuple[Path, Path, bytes], tmp_path: Path
) -> None:
    source, out, wanted = half_done
    text = source.read_bytes()
    source.write_bytes(text[:-4] + b"1 1\n")
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 2
    assert "to be of text = " in error
    source.write_bytes(gzip.compress(text))  # the same text
    other = Path(shutil.copytree(run, tmp_path / "other"))
    tables = (other / "tokenizer.json").read_text(encoding="utf-8")
    (other / "tokenizer.json").write_text(tables.replace('"7"', '"9"'), encoding="utf-8")
    code, _, error = translate(other, source, "--into", out, "--window", 2)
    assert code == 2
    assert "to be of vocabularies = " in error
    assert translate(run, source, "--into", out, "--window", 2)[0] == 0
    assert contents(out) == {"half.txt": wanted}


def test_another_checkpoint_is_named_with_its_number(
    run: Path, half_done: tuple[Path, Path, bytes], tmp_path: Path
) -> None:
    from attlas.runs import Checkpoint, Run

    source, out, _ = half_done
    other = Run(Path(shutil.copytree(run, tmp_path / "other")))
    trained = other.shelf.read("best").model
    other.shelf.write("00000009", Checkpoint({k: t + 0.5 for k, t in trained.items()}))
    other.shelf.point("best", "00000009")
    code, _, error = translate(other.path, source, "--into", out, "--window", 2)
    assert code == 2
    assert "checkpoint = 00000003 (" in error
    assert "got checkpoint = 00000009 (" in error
    assert translate(other.path, source, "--into", out, "--window", 2, "--checkpoint", 3)[0] == 0


def test_a_file_of_somebody_else_is_not_written_over(run: Path, tmp_path: Path) -> None:
    (source,) = written(tmp_path, a=2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("mine", encoding="utf-8")
    code, _, error = translate(run, source, "--into", tmp_path / "out")
    assert code == 2
    assert "got a file there that was not translated into this folder" in error
    assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["lines", "progress.json"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 100], ids=["none", "braces", "noise"])
def test_damaged_progress_is_an_error_that_names_the_way_out(
    run: Path, half_done: tuple[Path, Path, bytes], name: str, damage: bytes
) -> None:
    source, out, wanted = half_done
    kept = part.books(out / source.name)
    (kept / name).write_bytes(damage)
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 2
    assert f"the unharmed progress of {out / source.name}" in error
    shutil.rmtree(kept)
    assert translate(run, source, "--into", out, "--window", 2)[0] == 0
    assert contents(out) == {"half.txt": wanted}


def test_a_mistake_in_a_single_text_is_named(run: Path, tmp_path: Path) -> None:
    (bad,) = written(tmp_path, a=3)
    bad.write_bytes(b"1\n2\n3 \xff 4\n")
    code, _, error = translate(run, bad, "--into", tmp_path / "out")
    assert code == 2
    assert error.startswith(f"attlas: wanted UTF-8 text in {bad}; got byte 0xff at byte 3 of line")
    assert error.count("\n") == 1
    assert contents(tmp_path / "out") == {}


BAD = {
    "bytes": "UTF-8 text in {path}; got byte 0xff at byte 3 of line 2",
    "folder": "got the folder {path}",
    "missing": "got no file at {path}",
    "gzip": "a whole gzip file at {path}",
    "theirs": "got a file there that was not translated into this folder",
    "pipe": "got {path}, which is none",
}


def make_bad(path: Path, kind: str, out: Path) -> None:
    match kind:
        case "bytes":
            path.write_bytes(b"1\n3 \xff 4\n")
        case "folder":
            path.mkdir()
        case "gzip":
            path.write_bytes(gzip.compress(b"1 2\n")[:-3])
        case "theirs":
            path.write_text("1 2\n")
            out.mkdir(exist_ok=True)
            (out / path.name).write_text("mine")
        case "pipe":
            os.mkfifo(path)


def mend(path: Path, kind: str, out: Path) -> None:
    if kind == "theirs":
        (out / path.name).unlink()
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_text("4 5\n\n6\n")


@pytest.mark.parametrize("seed", range(3))
def test_what_fails_keeps_no_other_file_from_being_done_and_is_told_at_the_end(
    run: Path, tmp_path: Path, seed: int, read: list[Path]
) -> None:
    out, good = tmp_path / "out", written(tmp_path, seed, a=3, b=4, c=0)
    bad = {tmp_path / f"{kind}.txt": kind for kind in BAD}
    for path, kind in bad.items():
        make_bad(path, kind, out)
    sources = random.Random(seed).sample([*good, *bad], len(good) + len(bad))
    command = (run, *sources, "--into", out, "--window", 2)
    code, printed, error = translate(*command)
    assert (code, printed) == (2, "")
    assert "Traceback" not in error
    *failed, last = error.splitlines()[-len(bad) - 1 :]
    assert last == (
        f"attlas: wanted all 9 files in {out}; got 3 of them; mend what is told above; the same "
        "command then does what is missing"
    )
    for path, line in zip((p for p in sources if p in bad), failed, strict=True):
        assert line.startswith(f"attlas: {path} failed: wanted ")
        assert BAD[bad[path]].format(path=path) in line
    done = contents(out)
    assert done.pop("theirs.txt") == b"mine"
    assert done.keys() == {path.name for path in good}
    for path, kind in bad.items():
        mend(path, kind, out)
    read.clear()
    code, _, error = translate(*command)
    assert code == 0
    assert error.endswith(f"attlas: all files are in {out}: 9, 3 of them before\n")
    assert set(read) == set(bad)  # what is missing, and nothing else
    found = contents(out)
    assert found.items() >= done.items()
    assert found.keys() == {path.name for path in sources}


def test_where_no_file_is_one_nothing_is_made(run: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    names = (tmp_path / "folder", tmp_path / "nowhere")
    code, _, error = translate(run, *names, "--into", tmp_path / "out")
    assert code == 2
    assert [f"{path} failed" in error for path in names] == [True, True]
    assert not (tmp_path / "out").exists()


def test_shards_divide_the_files_that_fail_as_well(run: Path, tmp_path: Path) -> None:
    sources = [*written(tmp_path, a=3, b=1, d=2), tmp_path / "c.txt", tmp_path / "e.txt"]
    told = ""
    for number in (1, 2):
        code, _, error = translate(
            run, *sources, "--into", tmp_path / "out", "--shard", f"{number}/2"
        )
        assert code == (2 if number == 1 else 0)  # a, c, e; b, d
        told += error
    assert "all 3 files of shard 1/2 in" in told
    assert told.count("c.txt failed") == told.count("e.txt failed") == 1
    assert contents(tmp_path / "out").keys() == {"a.txt", "b.txt", "d.txt"}


@pytest.mark.parametrize("name", ["lines", "progress.json", "lock"])
@pytest.mark.parametrize("done", [True, False])
def test_a_folder_where_a_file_of_the_books_should_be_keeps_no_other_file_from_being_done(
    run: Path, tmp_path: Path, name: str, done: bool
) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    odd = part.books(out / "a.txt") / name
    if done:
        assert translate(run, sources[0], "--into", out)[0] == 0
        odd.unlink(missing_ok=True)
    odd.mkdir(parents=True)
    code, _, error = translate(run, *sources, "--into", out)
    assert code == 2
    assert f"attlas: {sources[0]} failed: wanted " in error
    assert str(odd.parent) in error
    assert "Traceback" not in error
    assert contents(out).keys() == ({"a.txt", "b.txt"} if done else {"b.txt"})
    odd.rmdir()
    code, _, error = translate(run, *sources, "--into", out)
    lost = done and name == "progress.json"  # nobody knows any more whose that output is
    assert code == (2 if lost else 0), error
    assert contents(out).keys() == {"a.txt", "b.txt"}


def test_an_output_that_may_not_be_looked_at_keeps_no_other_file_from_being_done(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    real = Path.exists

    def exists(path: Path) -> bool:
        if path == out / "a.txt":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    for _ in range(2):  # also where the others are done
        with monkeypatch.context() as patched:
            patched.setattr(Path, "exists", exists)
            code, _, error = translate(run, *sources, "--into", out)
        assert code == 2
        assert f"attlas: {sources[0]} failed: wanted to write {out / 'a.txt'}; got perm" in error
        assert contents(out).keys() == {"b.txt"}
    assert translate(run, *sources, "--into", out)[0] == 0


def test_a_full_disk_ends_it_at_once_and_what_failed_before_is_told_all_the_same(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, out = [tmp_path / "none.txt", *written(tmp_path, a=3, b=4)], tmp_path / "out"
    tried: list[int] = []

    def full(descriptor: int, content: bytes) -> None:
        tried.append(descriptor)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(part, "write_whole", full)
        code, _, error = translate(run, *sources, "--into", out)
    assert code == 2
    assert len(tried) == 1
    failed, last = error.splitlines()[-2:]
    assert f"{sources[0]} failed: " in failed
    assert "no space left on device" in last
    assert translate(run, *sources[1:], "--into", out)[0] == 0


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every reading of a text."""
    found: list[Path] = []
    real = translating_files.stream_lines
    monkeypatch.setattr(
        translating_files, "stream_lines", lambda path: (found.append(path), real(path))[1]
    )
    return found


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
    assert "to be of text = " in error
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
    assert "to be of text = " in error


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
    assert "to be of text = " in error


def test_another_setting_is_noticed_though_the_text_is_not_read_again(
    run: Path, tmp_path: Path, read: list[Path]
) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    assert translate(run, *sources, "--into", out)[0] == 0
    read.clear()
    code, _, error = translate(run, *sources, "--into", out, "--window", 3)
    assert code == 2
    assert error.count("got window = 3") == 2
    assert read == []


@pytest.mark.parametrize("lacking", [{"stamp"}, {"changed", "inode"}], ids=["all", "some"])
def test_books_of_an_earlier_attlas_with_less_of_a_stamp_are_read(
    run: Path, tmp_path: Path, read: list[Path], lacking: set[str]
) -> None:
    (source,), out = written(tmp_path, a=3), tmp_path / "out"
    assert translate(run, source, "--into", out)[0] == 0
    record = part.books(out / source.name) / "progress.json"
    kept = json.loads(record.read_bytes())
    assert kept["stamp"]["size"] == source.stat().st_size
    for table in (kept, kept["stamp"]):
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
    real = part.Part.add

    def add(self: part.Part, lines: int, found: bytes) -> None:
        real(self, lines, found)
        source.write_text("1\n" * 6, encoding="utf-8")

    with monkeypatch.context() as patched:
        patched.setattr(part.Part, "add", add)
        monkeypatch.setattr(translating_files, "stream_lines", _unbuffered)
        code, _, error = translate(run, source, "--into", tmp_path / "out", "--window", 2)
    assert code == 2
    assert f"wanted {source} to stay as it is while it is translated" in error
    assert contents(tmp_path / "out") == {}
    assert translate(run, source, "--into", tmp_path / "out", "--window", 2)[0] == 0


def _unbuffered(path: Path) -> Iterator[str]:
    """The lines as they are on disk when they are asked for."""
    number = 0
    while number < len(lines := path.read_text(encoding="utf-8").split("\n")[:-1]):
        yield lines[number]
        number += 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.txt",), "wanted FILES --into FOLDER"),
        (("--into", "out"), "wanted FILES --into FOLDER"),
        (("--shard", "1/2"), "wanted FILES --into FOLDER"),
        (("a.txt", "--into", "out", "-o", "there"), "got FILES --into --output"),
        (("a.txt", "--into", "out", "--alignments", "there"), "got FILES --into --alignments"),
        (("a.txt", "--into", "out", "--shard", "3/2"), "wanted a shard I/N with I from 1 to N"),
        (("a.txt", "--into", "out", "--shard", "half"), "got 'half'"),
        (("a.txt", "--into", "out", "--shard", ""), "got ''"),
        (("a.txt", "--into", "."), "wanted another folder than that of the files themselves"),
        (("a.txt", "b/a.txt", "--into", "out"), "got a.txt and b/a.txt"),
        (("b", "--into", "out"), "got the folder b"),
        (("nowhere", "--into", "out"), "got no file at nowhere"),
        (("a.txt", "--into", "a.txt"), "wanted to write a.txt"),
    ],
)
def test_the_callers_mistakes(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b").mkdir()
    for folder in (Path(), Path("b")):
        written(folder, a=2)
    code, out, error = translate(run, *arguments)
    assert (code, out) == (2, "")
    assert message in error
    assert "Traceback" not in error
    assert not Path("out").exists()


def test_n_best_lists_are_numbered_within_each_file(run: Path, tmp_path: Path) -> None:
    sources, out = written(tmp_path, a=5, b=3), tmp_path / "out"
    assert translate(run, *sources, "--into", out, "--n-best", 2, "--window", 2)[0] == 0
    for source in sources:
        streamed = translate(run, "-i", source, "--n-best", 2, "--window", 2)[1]
        assert (out / source.name).read_text(encoding="utf-8") == streamed


@given(names=st.lists(st.text("abz.\u00e9", min_size=1), unique=True), count=st.integers(1, 5))
def test_every_file_is_in_one_shard_whatever_order_they_come_in(
    names: list[str], count: int
) -> None:
    paths = [Path(name) for name in dict.fromkeys(Path(n).name for n in names)]
    shards = [Shard.parse(f"{number}/{count}") for number in range(1, count + 1)]
    found = [shard.of(paths) for shard in shards]
    assert sorted(path for some in found for path in some) == sorted(paths)
    assert [set(some) for some in found] == [set(s.of(sorted(paths))) for s in shards]
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "1", "/", "1/", "-1/2", "1/2/3", "a/b", ""])
def test_a_shard_is_one_of_so_many(text: str) -> None:
    with pytest.raises(AttlasError, match="wanted a shard I/N"):
        Shard.parse(text)


def test_the_shards_together_are_what_one_process_does(run: Path, tmp_path: Path) -> None:
    sources = written(tmp_path, a=3, b=0, c=5, d=2, e=4)
    assert translate(run, *sources, "--into", tmp_path / "one")[0] == 0
    for number in (3, 1, 2):
        shard = ("--shard", f"{number}/3")
        code, _, error = translate(run, *sources, "--into", tmp_path / "three", *shard)
        assert code == 0
        assert f"all files of shard {number}/3 are in" in error
    assert contents(tmp_path / "three") == contents(tmp_path / "one")


def test_a_file_that_another_process_is_at_comes_last(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, out = written(tmp_path, a=2, b=2), tmp_path / "out"
    part.books(out / "a.txt").mkdir(parents=True)
    other = held(part.books(out / "a.txt") / "lock")
    real = translating_files._say

    def heard(what: str) -> None:
        real(what)
        if "waiting for" in what:
            assert contents(out).keys() == {"b.txt"}
            other.__exit__(None, None, None)  # it dies

    monkeypatch.setattr(translating_files, "_say", heard)
    assert other.__enter__()
    code, _, error = translate(run, *sources, "--into", out)
    assert code == 0
    assert f"waiting for {out / 'a.txt'}, which another process is at" in error
    assert contents(out).keys() == {"a.txt", "b.txt"}


@pytest.mark.slow
def test_a_process_that_dies_at_any_operation_on_files_leaves_what_the_next_one_completes(
    run: Path, tmp_path: Path
) -> None:
    script = Path(__file__).with_name("dying.py")
    done = subprocess.run(
        [sys.executable, script, run, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["killed"] > 50
    assert {"write", "fsync", "replace", "unlink"} <= set(found["operations"])


@pytest.mark.slow
@THREADS
def test_killed_again_and_again_it_ends_with_the_same_bytes(
    run: Path, tmp_path: Path, threads: int
) -> None:
    sources, out = written(tmp_path, a=300, b=200), tmp_path / "out"
    assert translate(run, *sources, "--into", tmp_path / "undisturbed", "--window", 5)[0] == 0
    command = (run, *sources, "--into", out, "--window", 5)
    chance = random.Random(2)
    for name, lines in (("a.txt", 5), ("a.txt", 120), ("b.txt", 60)):
        with started(*command, threads=threads) as process:
            until_there_are(lines, out / name)
            time.sleep(chance.uniform(0.0, 0.05))
            process.kill()
        assert process.returncode == -signal.SIGKILL
    with started(*command, threads=threads) as process:
        _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, error
    assert contents(out) == contents(tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
@THREADS
def test_ctrl_c_ends_it_with_130_and_keeps_what_is_done(
    run: Path, tmp_path: Path, threads: int
) -> None:
    sources, out = written(tmp_path, a=400), tmp_path / "out"
    command = (run, *sources, "--into", out, "--window", 5)
    with started(*command, threads=threads) as process:
        until_there_are(50, out / "a.txt")
        if POSSIBLE:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert len(children) == (threads if threads > 1 else 0)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the children as well
        _, error = process.communicate(timeout=PATIENCE)
    with pytest.raises(ProcessLookupError):  # nobody is left of them
        os.killpg(process.pid, 0)
    assert process.returncode == 130
    assert error.endswith("attlas: interrupted\n")
    done = progress(out / "a.txt")
    assert 50 <= done < 400
    code, _, error = translate(*command)
    assert code == 0
    assert f"400 lines, {done} of them before" in error
    streamed = translate(run, "-i", sources[0], "--window", 5)[1]
    assert (out / "a.txt").read_text(encoding="utf-8") == streamed


@pytest.mark.slow
def test_two_processes_with_children_share_the_files_and_both_end(
    run: Path, tmp_path: Path
) -> None:
    sources, out = written(tmp_path, a=40, b=30, c=40, d=20), tmp_path / "out"
    assert translate(run, *sources, "--into", tmp_path / "one", "--window", 5)[0] == 0
    command = (run, *sources, "--into", out, "--window", 5)
    both = [started(*command, threads=2) for _ in range(2)]
    try:
        told = [process.communicate(timeout=PATIENCE)[1] for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], told
    assert contents(out) == contents(tmp_path / "one")
    for source in sources:
        assert "".join(told).count(f"attlas: {out / source.name}: ") == 1


@pytest.mark.slow
@THREADS
def test_two_processes_share_the_files_and_one_takes_over_what_the_other_left(
    run: Path, tmp_path: Path, threads: int
) -> None:
    sources, out = written(tmp_path, a=60, b=30, c=20, d=0, e=40), tmp_path / "out"
    assert translate(run, *sources, "--into", tmp_path / "undisturbed", "--window", 5)[0] == 0
    command = (run, *sources, "--into", out, "--window", 5)
    with started(*command, threads=threads) as first:
        until_there_are(5, out / "a.txt")
        os.kill(first.pid, signal.SIGSTOP)
        with (
            started(*command, threads=threads) as second,
            started(*command, threads=threads) as third,
        ):
            until_there_are(40, out / "e.txt")
            first.kill()
            told = "".join(process.communicate(timeout=PATIENCE)[1] for process in (second, third))
    assert [second.returncode, third.returncode] == [0, 0], told
    assert contents(out) == contents(tmp_path / "undisturbed")
    for source in sources:
        assert told.count(f"attlas: {out / source.name}: ") == 1
    assert f"waiting for {out / 'a.txt'}, which another process is at" in told


def test_a_text_that_another_one_would_be_translated_over_is_refused(
    run: Path, tmp_path: Path
) -> None:
    into, texts = tmp_path / "into", [tmp_path / "a", tmp_path / "b"]
    into.mkdir()
    (into / "a").write_text("1 2\n", encoding="utf-8")
    texts[0].write_text("3 4\n", encoding="utf-8")
    texts[1].symlink_to(into / "a")
    asked = ["translate", str(run), *map(str, texts), "--into", str(into)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2
    assert "wanted different files to read and to write" in result.stderr
    assert (into / "a").read_text(encoding="utf-8") == "1 2\n"


@pytest.mark.parametrize("words", [["A dog"], ["it's", "a dog"], ["long " * 200]])
def test_a_text_where_files_should_be_is_shown_how_it_is_translated(
    run: Path, words: list[str]
) -> None:
    code, out, error = translate(run, *words)
    assert (code, out) == (2, "")
    command = error.partition("to translate a text: ")[2].strip()
    assert shlex.split(command) == ["echo", " ".join(words), "|", "attlas", "translate", str(run)]


def test_a_single_file_that_exists_is_not_taken_for_a_text(run: Path, tmp_path: Path) -> None:
    (source,) = written(tmp_path, a=2)
    assert "echo" not in translate(run, source)[2]
    assert "echo" not in translate(run, source, tmp_path / "nowhere")[2]
