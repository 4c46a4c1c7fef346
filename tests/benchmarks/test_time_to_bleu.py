"""Hours of training: what is wrong is said before them, and what came out is never lost."""

import gzip
import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from attlas.decoding import DecodingConfig
from attlas.training import read_recipe

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import run  # noqa: E402
import time_to_bleu  # noqa: E402

LINES = {"train": 60, "val": 8, "test_2016_flickr": 6}
SMALL = ["vocabulary.size=300"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A corpus under the names of Multi30k's files."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for stem, lines in LINES.items():
        for language in ("en", "de"):
            text = "".join(f"{language} says {n % 7} and {n % 5} .\n" for n in range(lines))
            (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What each contender was told, in order; all of them write "de" twice, after a minute."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def played(contender: str, reported: dict[str, Any], folder: Path) -> str | None:
        seen.append((contender, reported))
        point = {"seconds": 60.0, "updates": 5, "weights": "5"}
        found = {"points": [point], "texts": {"5": ["de"] * len(reported["sources"])}}
        (folder / "course.json").write_text(json.dumps(found), encoding="utf-8")
        return None

    monkeypatch.setattr(time_to_bleu, "played", played)
    monkeypatch.setattr(time_to_bleu, "made", lambda contender: (sys.executable, None))
    monkeypatch.setattr(time_to_bleu, "versions", lambda contender: "1.0")
    return seen


def call(monkeypatch: pytest.MonkeyPatch, data: Path, *words: str) -> None:
    command = ["time_to_bleu.py", "--data", str(data), "--threads", "1", "--points", "2", *words]
    monkeypatch.setattr(sys, "argv", command)
    time_to_bleu.main()


def test_each_contender_gets_the_recipe_and_the_same_text(
    data: Path,
    tmp_path: Path,
    requested: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = tmp_path / "found.json"
    call(monkeypatch, data, "--courses", "tiny:2", "--set", *SMALL, "--json", str(found))
    (attlas, ours), (joey, theirs) = requested
    assert (attlas, joey) == ("attlas", "JoeyNMT")
    assert ours["sources"] == theirs["sources"]
    assert len(ours["sources"]) == LINES["test_2016_flickr"]
    assert ours["moments"] == theirs["moments"] == [60.0, 120.0]
    for part in ("model", "vocabulary", "batching"):
        assert ours["recipe"][part] == theirs["recipe"][part]
    (one,) = json.loads(found.read_text(encoding="utf-8"))
    assert one["name"] == "`tiny`, vocabulary.size=300, 2 min"
    assert str(tmp_path) not in one["command"]
    assert [c["points"][0]["seconds"] for c in one["contenders"]] == [60.0, 60.0]


def test_what_is_kept_goes_on_with_the_same_course_and_with_no_other(
    data: Path,
    tmp_path: Path,
    requested: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = time_to_bleu.played

    def played(contender: str, reported: dict[str, Any], folder: Path) -> str | None:
        (folder / time_to_bleu.TOLD).write_text(json.dumps(reported), encoding="utf-8")
        return plain(contender, reported, folder)

    monkeypatch.setattr(time_to_bleu, "played", played)
    words = ["--courses", "tiny:2", "--contenders", "JoeyNMT", "--kept", str(tmp_path / "kept")]
    for _ in range(2):
        call(monkeypatch, data, *words, "--set", *SMALL)
    assert len(requested) == 2
    assert (tmp_path / "kept" / "tiny-2-1" / "JoeyNMT" / "course.json").is_file()
    with pytest.raises(SystemExit, match="one with another recipe; name another --kept"):
        call(monkeypatch, data, *words, "--set", *SMALL, "model.dropout=0.5")
    assert len(requested) == 2


def test_a_contender_that_was_broken_off_does_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "contenders"))
    from course import Course

    reported = {"corpus": "", "recipe": {}, "moments": [0.0, 0.0], "threads": 1}
    (tmp_path / time_to_bleu.TOLD).write_text(json.dumps(reported), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["contender", str(tmp_path)])
    first = Course()
    assert not first.trained
    with first.training():
        first.begin()
        for updates in (1, 2, 3):
            first.updated(updates, lambda path: path.write_text("weights"))
    assert [point["updates"] for point in first.points] == [1, 2]

    def broken(name: str) -> list[str]:
        if name == "2.weights":
            raise KeyboardInterrupt
        return ["one"]

    with pytest.raises(KeyboardInterrupt):
        first.translated(broken)
    second = Course()
    assert second.trained
    assert second.points == first.points
    translated: list[str] = []
    second.translated(lambda name: [translated.append(name) or "two"])
    assert translated == ["2.weights"]
    found = json.loads((tmp_path / "course.json").read_text(encoding="utf-8"))
    texts = {"1.weights": ["one"], "2.weights": ["two"]}
    assert found == {"points": first.points, "texts": texts, "facts": {}}


def broken_off(
    monkeypatch: pytest.MonkeyPatch,
    requested: list[tuple[str, dict[str, Any]]],
    error: type[BaseException],
) -> None:
    """The first contender plays, and the second one ends it all."""
    plain = time_to_bleu.played

    def played(contender: str, reported: dict[str, Any], folder: Path) -> str | None:
        if requested:
            raise error
        return plain(contender, reported, folder)

    monkeypatch.setattr(time_to_bleu, "played", played)


def test_a_course_is_written_before_the_next_one_begins(
    data: Path,
    tmp_path: Path,
    requested: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = tmp_path / "found.json"
    broken_off(monkeypatch, requested, MemoryError)
    words = ["--courses", "tiny:1", "tiny:2", "--contenders", "attlas", "--set", *SMALL]
    with pytest.raises(MemoryError):
        call(monkeypatch, data, *words, "--json", str(found))
    (one,) = json.loads(found.read_text(encoding="utf-8"))
    assert one["name"].endswith("1 min")


def test_a_contender_is_written_before_the_next_one_begins(
    data: Path,
    tmp_path: Path,
    requested: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = tmp_path / "found.json"
    broken_off(monkeypatch, requested, KeyboardInterrupt)
    words = ["--courses", "tiny:1", "--contenders", "JoeyNMT", "attlas", "--set", *SMALL]
    with pytest.raises(KeyboardInterrupt):
        call(monkeypatch, data, *words, "--json", str(found))
    (one,) = json.loads(found.read_text(encoding="utf-8"))
    assert [c["name"] for c in one["contenders"]] == ["JoeyNMT"]
    assert one["contenders"][0]["points"]


def test_a_model_that_joeynmt_is_not_reported_of_is_trained_by_attlas_alone(
    data: Path, requested: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--courses", "multi30k:1", "--set", *SMALL]
    with pytest.raises(SystemExit, match="JoeyNMT"):
        call(monkeypatch, data, *words)
    assert requested == []
    call(monkeypatch, data, *words, "--contenders", "attlas")
    assert [contender for contender, _ in requested] == ["attlas"]


def test_joeynmt_searches_with_the_beam_and_the_length_penalty_of_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own packages are stood in for: they are not of this environment."""

    class ToldError(Exception):
        pass

    def translator(cfg: dict[str, Any], corpus: Path) -> None:
        raise ToldError(cfg["testing"])

    reported = {
        "corpus": "corpus", "moments": [60.0], "threads": 1, "sources": [],
        "recipe": read_recipe("tiny").tables(),
        "decoding": DecodingConfig(num_beams=7, length_penalty=0.3).model_dump(),
    }  # fmt: skip
    (tmp_path / "told.json").write_text(json.dumps(reported), encoding="utf-8")
    theirs = {"train": None, "TrainManager": None}
    for name, members in {
        "joeynmt": {}, "joeynmt.training": theirs, "joeynmt_translator": {"Translator": translator},
    }.items():  # fmt: skip
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS / "contenders")])
    monkeypatch.setattr(sys, "argv", ["joeynmt_course.py", str(tmp_path)])
    with pytest.raises(ToldError) as caught:
        runpy.run_path(str(BENCHMARKS / "contenders" / "joeynmt_course.py"))
    (testing,) = caught.value.args
    assert (testing["beam_size"], testing["beam_alpha"]) == (7, 0.3)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--courses", "tiny:1", "multi30k:1"], "model.kind = 'recurrent'"),
        (
            ["--courses", "tiny:1", "--set", "vocabulary.shared=false", "model.tie_source=false"],
            "vocabulary.shared = False",
        ),
        (["--courses", "tiny:1", "--set", "vocabulary.kind=characters"], "'characters'"),
        (["--courses", "tiny:1", "--set", "model.positions=rotary"], "positions = 'rotary'"),
        (["--courses", "tiny:1", "--set", "vocabulary.sampling=0.1"], "sampling = 0.1"),
        (
            ["--courses", "tiny:1", "--set", "model.num_kv_heads=1", "model.norm_type=rms"],
            "norm_type = 'rms'",
        ),
        (["--courses", "tiny:1", "base:1"], "base with decoding.num_beams = 4;"),
        (["--courses", "tiny:1", "--set", "decoding.method=greedy"], "decoding.method = 'greedy'"),
        (["--courses", "tiny:1", "--set", "decoding.coverage_penalty=0.2"], "penalty = 0.2"),
        (["--courses", "tiny:1", "nosuch:1"], "nosuch"),
        (["--courses", "tiny:1", "--set", "model.embed_dim=65"], "65"),
        (["--courses", "tiny:1", "--points", "0"], "--points"),
        (["--courses", "tiny"], "tiny"),
        (["--courses", "tiny:0"], "tiny:0"),
        (["--courses", "tiny:1", "--trained", "long=runs/long"], "long"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_trained(
    data: Path,
    requested: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    named: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        call(monkeypatch, data, *words)
    assert ended.value.code
    said = capsys.readouterr().err + str(ended.value.code)
    assert named in said
    assert "expected" in said or "invalid" in said
    assert requested == []


def test_the_files_that_it_reads_are_those_that_are_asked_for_before(data: Path) -> None:
    files = time_to_bleu.multi30k(data)
    named = [
        Path(name).name for one in (files.train, files.valid, files.test) for name in one or ()
    ]
    assert sorted(named) == sorted(run.NEEDED["quality"])


def test_a_corpus_that_is_not_whole_is_refused(
    data: Path, requested: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "val.de.gz").unlink()
    with pytest.raises(SystemExit, match=r"val\.de\.gz"):
        call(monkeypatch, data, "--courses", "tiny:1")
    assert requested == []


def test_a_contender_that_dies_is_lost_with_its_reason_whatever_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = tmp_path / "contenders"
    scripts.mkdir()
    monkeypatch.setattr(time_to_bleu, "HERE", tmp_path)
    monkeypatch.setattr(time_to_bleu, "CONTENDERS", {"one": ("one", None)})
    for code, reason in (
        ("raise RuntimeError('no such thing')", "RuntimeError: no such thing"),
        ("sys.stderr.buffer.write(b'all \\xfc well\\n'); os.kill(os.getpid(), 9)", "signal 9"),
        ("sys.exit(7)", "exit code 7"),
    ):
        (scripts / "one.py").write_text(f"import os, sys\n{code}", encoding="utf-8")
        assert reason in (time_to_bleu.played("one", {"threads": 1}, tmp_path) or "")
    (scripts / "one.py").write_text("", encoding="utf-8")
    assert time_to_bleu.played("one", {"threads": 1}, tmp_path) is None
