"""`attlas translate RUN FILES --into FOLDER`."""

import gzip
import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attlas.cli.main import app
from attlas.jobs import checkpointed_output as part
from attlas.jobs.checkpointed_output import FileFingerprint
from attlas.runs import Run
from attlas.runs.seal import seal_of
from support.many_files import DRAWN, contents, progress, translate, written


@pytest.fixture
def half_done(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path, bytes]:
    """A file of which four lines are translated, the folder, and what it will come to."""
    (source,) = written(tmp_path, half=9)
    expected = translate(run, "-i", source, "--window", 2)[1].encode()
    real = part.ResumableOutput.add

    def add(self: part.ResumableOutput, lines: int, found: bytes) -> None:
        if self.progress.lines == 4:
            raise RuntimeError("the power is gone")
        real(self, lines, found)

    with monkeypatch.context() as patched:
        patched.setattr(part.ResumableOutput, "add", add)
        assert translate(run, source, "--into", tmp_path / "out", "--window", 2)[0] == 1
    assert progress(tmp_path / "out" / "half.txt") == 4
    return source, tmp_path / "out", expected


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
    source, out, expected = half_done
    assert contents(out) == {}  # nothing of it shows before it is whole
    with (part.progress_dir(out / source.name) / "lines").open("ab") as file:
        file.write(b"half of a wri")  # killed in the middle of one
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 0
    assert "9 lines, 4 of them before" in error
    assert contents(out) == {"half.txt": expected}


def test_an_output_that_was_taken_away_is_made_again(run: Path, tmp_path: Path) -> None:
    sources, out = written(tmp_path, a=3, b=4), tmp_path / "out"
    assert translate(run, *sources, "--into", out)[0] == 0
    expected = contents(out)
    (out / "a.txt").unlink()
    assert translate(run, *sources, "--into", out)[0] == 0
    assert contents(out) == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--num-beams", "2"), ["decoding.method = sample", "decoding.method = beam"]),
        (("--set", "decoding.seed=4"), ["decoding.seed = 0", "decoding.seed = 4"]),
        (("--window", "3"), ["--window = 2", "--window = 3", "give --window 2, with which it"]),
        (("--n-best", "1"), ["n-best lists = False", "n-best lists = True"]),
    ],
)
def test_a_setting_that_has_changed_is_named_whether_the_file_is_done_or_begun(
    run: Path, half_done: tuple[Path, Path, bytes], arguments: tuple[str, str], named: list[str]
) -> None:
    source, out, expected = half_done
    command = ["translate", str(run), str(source), "--into", str(out)]
    window = () if "--window" in arguments else ("--window", "2")
    drawn = () if "--num-beams" in arguments else DRAWN
    for state in ("translated as far as line 4", "translated"):
        result = CliRunner().invoke(app, [*command, *window, *drawn, *arguments])
        assert result.exit_code == 2
        assert all(
            one in result.stderr
            for one in [*named, f"with which {out / source.name} was {state}; got"]
        )
        assert "Traceback" not in result.stderr
        assert translate(run, source, "--into", out, "--window", 2)[0] == 0
        assert contents(out) == {"half.txt": expected}


def test_another_text_run_or_vocabulary_is_named_too(
    run: Path, half_done: tuple[Path, Path, bytes], tmp_path: Path
) -> None:
    source, out, expected = half_done
    text = source.read_bytes()
    source.write_bytes(text[:-4] + b"1 1\n")
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 2
    assert "attlas: expected checksum of the text = " in error
    source.write_bytes(gzip.compress(text))  # the same text
    other = Path(shutil.copytree(run, tmp_path / "other"))
    tables = (other / "tokenizer.json").read_text(encoding="utf-8")
    (other / "tokenizer.json").write_text(tables.replace('"7"', '"9"'), encoding="utf-8")
    code, _, error = translate(other, source, "--into", out, "--window", 2)
    assert code == 2
    assert "tokenizer.json with other bytes" in error
    store = Run(other).store
    best = str(store.named("best"))
    store.write(best, replace(store.read(best), seal=seal_of(other)))  # as of a run that has these
    store.point("best", best)
    code, _, error = translate(other, source, "--into", out, "--window", 2)
    assert code == 2
    assert "expected vocabularies = " in error
    assert translate(run, source, "--into", out, "--window", 2)[0] == 0
    assert contents(out) == {"half.txt": expected}


def test_another_checkpoint_is_named_with_its_number(
    run: Path, half_done: tuple[Path, Path, bytes], tmp_path: Path
) -> None:
    from attlas.runs import Checkpoint, Run

    source, out, _ = half_done
    other = Run(Path(shutil.copytree(run, tmp_path / "other")))
    trained = other.store.read("best").model
    other.store.write("00000009", Checkpoint({k: t + 0.5 for k, t in trained.items()}))
    other.store.point("best", "00000009")
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


def test_nor_is_one_that_came_while_the_output_was_half_done(
    run: Path, half_done: tuple[Path, Path, bytes]
) -> None:
    source, out, expected = half_done
    (out / source.name).write_text("mine", encoding="utf-8")
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 2
    assert "got a file there that was not translated into this folder" in error
    assert (out / source.name).read_text(encoding="utf-8") == "mine"
    (out / source.name).unlink()
    assert translate(run, source, "--into", out, "--window", 2)[0] == 0
    assert contents(out) == {"half.txt": expected}


def two_lines(path: Path) -> Path:
    """A file of two lines, gzipped if its name ends in .gz."""
    text = b"1 2\n3 4\n"
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["late.txt", "late.txt.gz"])
def test_nor_is_one_that_comes_before_the_end(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source, out = two_lines(tmp_path / name), tmp_path / "out"
    real = part.ResumableOutput.finish

    def finish(self: part.ResumableOutput, fingerprint: FileFingerprint | None) -> None:
        self.output.write_text("mine", encoding="utf-8")
        real(self, fingerprint)

    with monkeypatch.context() as patched:
        patched.setattr(part.ResumableOutput, "finish", finish)
        code, _, error = translate(run, source, "--into", out)
    assert code == 2
    assert "got a file there that was not translated into this folder" in error
    assert (out / name).read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["told.txt", "told.txt.gz"])
def test_one_of_ours_that_a_kill_left_untold_is_reported(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source, out = two_lines(tmp_path / name), tmp_path / "out"
    real = part.ResumableOutput._keep

    def keep(self: part.ResumableOutput, found: part.OutputProgress) -> None:
        if found.whole:
            raise RuntimeError("the power is gone")
        real(self, found)

    with monkeypatch.context() as patched:
        patched.setattr(part.ResumableOutput, "_keep", keep)
        assert translate(run, source, "--into", out)[0] == 1
    assert (out / name).is_file()
    assert translate(run, source, "--into", out)[0] == 0
    assert part.OutputProgress.read(
        json.loads((part.progress_dir(out / name) / "progress.json").read_bytes()), "progress"
    ).whole


@pytest.mark.parametrize("name", ["lines", "progress.json"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 100], ids=["none", "braces", "noise"])
def test_damaged_progress_is_an_error_that_names_the_way_out(
    run: Path, half_done: tuple[Path, Path, bytes], name: str, damage: bytes
) -> None:
    source, out, expected = half_done
    kept = part.progress_dir(out / source.name)
    (kept / name).write_bytes(damage)
    code, _, error = translate(run, source, "--into", out, "--window", 2)
    assert code == 2
    assert f"the whole progress of {out / source.name}" in error
    shutil.rmtree(kept)
    assert translate(run, source, "--into", out, "--window", 2)[0] == 0
    assert contents(out) == {"half.txt": expected}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.txt",), "expected FILES --into FOLDER"),
        (("--into", "out"), "expected FILES --into FOLDER"),
        (("--shard", "1/2"), "expected FILES --into FOLDER"),
        (("a.txt", "--into", "out", "-o", "there"), "got FILES --into --output"),
        (("a.txt", "--into", "out", "--alignments", "there"), "got FILES --into --alignments"),
        (("a.txt", "--into", "out", "--shard", "3/2"), "expected a shard I/N with I from 1 to N"),
        (("a.txt", "--into", "out", "--shard", "half"), "got 'half'"),
        (("a.txt", "--into", "out", "--shard", ""), "got an empty one"),
        (("a.txt", "--into", "a.txt"), "expected a folder to translate --into; got the file a.txt"),
        (("a.txt", "--into", "."), "expected another folder than that of the files themselves"),
        (("a.txt", "b/a.txt", "--into", "out"), "got a.txt and b/a.txt"),
        (("b", "--into", "out"), "got the folder b"),
        (("nowhere", "--into", "out"), "got no file at nowhere"),
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


def test_a_text_that_another_one_would_be_translated_over_is_refused(
    run: Path, tmp_path: Path
) -> None:
    into, texts = tmp_path / "into", [tmp_path / "a", tmp_path / "b"]
    into.mkdir()
    (into / "a").write_text("1 2\n", encoding="utf-8")
    texts[0].write_text("3 4\n", encoding="utf-8")
    texts[1].symlink_to(into / "a")
    requested = ["translate", str(run), *map(str, texts), "--into", str(into)]
    result = CliRunner().invoke(app, requested)
    assert result.exit_code == 2
    assert "expected different files to read and to write" in result.stderr
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


def test_of_a_single_file_the_command_that_translates_it_is_reported(
    run: Path, tmp_path: Path
) -> None:
    (source,) = written(tmp_path, **{"my text": 2})
    code, _, error = translate(run, source)
    assert code == 2
    advised, _, other = error.partition("to translate that file: ")[2].partition("; or ")
    assert shlex.split(advised) == ["attlas", "translate", str(run), "-i", str(source)]
    assert other == "add --into FOLDER\n"
    several = written(tmp_path, a=1, b=1)
    assert translate(run, *several)[2].endswith("; add --into FOLDER\n")
    taken = "take --into FOLDER instead of --output\n"
    assert translate(run, *several, "-o", tmp_path / "out")[2].endswith(f"; {taken}")


def test_the_command_that_is_reported_writes_where_the_one_given_did(
    run: Path, tmp_path: Path
) -> None:
    (source,), out, links = written(tmp_path, a=2), tmp_path / "an output", tmp_path / "links"
    to = ("-o", out, "--alignments", links)
    reported = translate(run, source, *to)[2].partition("to translate that file: ")[2]
    of_file = reported.partition("; or ")[0]
    of_text = translate(run, "1 2", *to)[2].partition(" | ")[2]
    for advised, text in ((of_file, None), (of_text, "1 2\n")):
        program, command, *words = shlex.split(advised)
        assert (program, command) == ("attlas", "translate")
        assert translate(*words, text=text)[0] == 0
        assert out.read_text("utf-8") == translate(run, text=text or source.read_text("utf-8"))[1]
        links.unlink()


def test_of_a_folder_the_names_of_its_files_are_asked_for(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a corpus").mkdir()
    error = translate(run, tmp_path / "a corpus", "--into", tmp_path / "out")[2]
    assert error.endswith(f"; name the files in it: '{tmp_path / 'a corpus'}'/*\n")


def test_what_was_begun_without_a_line_is_begun_anew_by_the_command_that_was_meant(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = written(tmp_path, a=3)
    with monkeypatch.context() as patched:
        patched.setattr(part.ResumableOutput, "add", lambda *_: 1 / 0)
        assert translate(run, source, "--into", tmp_path / "out", "--window", 2)[0] == 1
    assert part.progress_dir(tmp_path / "out" / "a.txt").is_dir()
    code, _, error = translate(run, source, "--into", tmp_path / "out", "--window", 3)
    assert code == 0, error
    expected = translate(run, "-i", source, "--window", 3)[1].encode()
    assert contents(tmp_path / "out") == {"a.txt": expected}


def test_an_output_that_is_a_link_stays_one(run: Path, tmp_path: Path) -> None:
    (source,) = written(tmp_path, a=3)
    real, link = tmp_path / "elsewhere" / "b.txt", tmp_path / "out" / "a.txt"
    for path in (real, link):
        path.parent.mkdir()
    link.symlink_to(real)
    code, _, error = translate(run, source, "--into", link.parent)
    assert code == 0, error
    assert link.is_symlink()
    assert real.read_bytes() == translate(run, "-i", source)[1].encode()
    code, _, error = translate(run, source, "--into", link.parent)
    assert (code, "1, 1 of them before" in error) == (0, True)
