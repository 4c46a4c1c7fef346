"""`attlas translate --into` by several processes, in shards, killed and interrupted."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas._files import held
from attlas._parallel import POSSIBLE
from attlas.errors import AttlasError
from attlas.jobs import checkpointed_output as part
from attlas.jobs import translate_files as translating_files
from attlas.jobs.checkpointed_output import Shard
from support.many_files import (
    THREADS,
    contents,
    progress,
    started,
    translate,
    until_there_are,
    written,
)


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
    with pytest.raises(AttlasError, match="expected a shard I/N"):
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
    part.progress_dir(out / "a.txt").mkdir(parents=True)
    other = held(part.progress_dir(out / "a.txt") / "lock")
    real = translating_files._print

    def heard(what: str) -> None:
        real(what)
        if "waiting for" in what:
            assert contents(out).keys() == {"b.txt"}
            other.__exit__(None, None, None)  # it dies

    monkeypatch.setattr(translating_files, "_print", heard)
    assert other.__enter__()
    code, _, error = translate(run, *sources, "--into", out)
    assert code == 0
    assert f"waiting for {out / 'a.txt'}, which another process is at" in error
    assert contents(out).keys() == {"a.txt", "b.txt"}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_process_that_dies_at_any_operation_on_files_leaves_what_the_next_one_completes(
    run: Path, tmp_path: Path
) -> None:
    script = Path(__file__).resolve().parents[1] / "support" / "killed_writers.py"
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
    sources, out = written(tmp_path, a=180, b=120), tmp_path / "out"
    assert translate(run, *sources, "--into", tmp_path / "undisturbed", "--window", 5)[0] == 0
    command = (run, *sources, "--into", out, "--window", 5)
    chance = random.Random(2)
    for name, lines in (("a.txt", 5), ("a.txt", 80), ("b.txt", 40)):
        with started(*command, threads=threads) as process:
            until_there_are(lines, out / name)
            time.sleep(chance.uniform(0.0, 0.05))
            process.kill()
        assert process.returncode == -signal.SIGKILL
    with started(*command, threads=threads) as process:
        error = process.printed()
    assert process.returncode == 0, error
    assert contents(out) == contents(tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of POSIX")
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
        error = process.printed()
    with pytest.raises(ProcessLookupError):  # nobody is left of them
        os.killpg(process.pid, 0)
    assert process.returncode == 130
    said = f"attlas: interrupted; the same command goes on with what is not yet in {out}\n"
    assert error.endswith(said)
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
        reported = [process.printed() for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], reported
    assert contents(out) == contents(tmp_path / "one")
    for source in sources:
        assert "".join(reported).count(f"attlas: {out / source.name}: ") == 1


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
            reported = "".join(process.printed() for process in (second, third))
    assert [second.returncode, third.returncode] == [0, 0], reported
    assert contents(out) == contents(tmp_path / "undisturbed")
    for source in sources:
        assert reported.count(f"attlas: {out / source.name}: ") == 1
    assert f"waiting for {out / 'a.txt'}, which another process is at" in reported
