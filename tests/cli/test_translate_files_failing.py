"""`attlas translate --into` where some of the files cannot be translated."""

import errno
import gzip
import os
import random
from pathlib import Path

import pytest

from attlas.jobs import checkpointed_output as part
from support.many_files import contents, translate, written


def test_a_mistake_in_a_single_text_is_named(run: Path, tmp_path: Path) -> None:
    (bad,) = written(tmp_path, a=3)
    bad.write_bytes(b"1\n2\n3 \xff 4\n")
    code, _, error = translate(run, bad, "--into", tmp_path / "out")
    assert code == 2
    assert error.startswith(
        f"attlas: expected UTF-8 text in {bad}; got byte 0xff at byte 3 of line"
    )
    assert error.count("\n") == 1
    assert contents(tmp_path / "out") == {}


BAD = {
    "bytes": "UTF-8 text in {path}; got byte 0xff at byte 3 of line 2",
    "folder": "got the folder {path}",
    "missing": "got no file at {path}",
    "gzip": "a whole gzip file at {path}",
    "theirs": "got a file there that was not translated into this folder",
    "pipe": "got {path}, which is no regular file",
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
def test_what_fails_keeps_no_other_file_from_being_done_and_is_reported_at_the_end(
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
        f"attlas: expected all 9 files in {out}; got 3 of them; correct what the messages "
        "above name; then the same command does the rest"
    )
    for path, line in zip((p for p in sources if p in bad), failed, strict=True):
        assert line.startswith(f"attlas: {path} failed: expected ")
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
    reported = ""
    for number in (1, 2):
        code, _, error = translate(
            run, *sources, "--into", tmp_path / "out", "--shard", f"{number}/2"
        )
        assert code == (2 if number == 1 else 0)  # a, c, e; b, d
        reported += error
    assert "all 3 files of shard 1/2 in" in reported
    assert reported.count("c.txt failed") == reported.count("e.txt failed") == 1
    assert contents(tmp_path / "out").keys() == {"a.txt", "b.txt", "d.txt"}


@pytest.mark.parametrize("name", ["lines", "progress.json", "lock"])
@pytest.mark.parametrize("done", [True, False])
def test_a_folder_where_a_file_of_the_books_should_be_keeps_no_other_file_from_being_done(
    run: Path, tmp_path: Path, name: str, done: bool
) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    odd = part.progress_dir(out / "a.txt") / name
    if done:
        assert translate(run, sources[0], "--into", out)[0] == 0
        odd.unlink(missing_ok=True)
    odd.mkdir(parents=True)
    code, _, error = translate(run, *sources, "--into", out)
    assert code == 2
    assert f"attlas: {sources[0]} failed: expected " in error
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
        assert f"attlas: {sources[0]} failed: expected to write {out / 'a.txt'}; got perm" in error
        assert contents(out).keys() == {"b.txt"}
    assert translate(run, *sources, "--into", out)[0] == 0


def test_a_full_disk_ends_it_at_once_and_what_failed_before_is_reported_all_the_same(
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
