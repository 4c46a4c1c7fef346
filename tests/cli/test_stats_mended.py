"""`attlas stats` where something was not as it should be: cut texts, mistakes, links."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from attlas.corpus_statistics.huggingface import HuggingFaceReader
from attlas.jobs import checkpointed_output as part
from attlas.jobs import statistics as stats_measuring
from attlas.jobs.statistics import StatisticsOutput
from support.command_line import called
from support.small_models import saved

TEXT = "the cat\na dog ran\nred\nthe mat\nvery big\n"


def stats(*arguments: object) -> tuple[int, str, str]:
    return called("stats", *arguments)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture(scope="session")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder–decoder that may not write the end of a text."""
    folder = saved(tmp_path_factory.mktemp("models") / "bart", "bart")
    path = folder / "generation_config.json"
    reported = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**reported, "suppress_tokens": [3]}), encoding="utf-8")
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_texts_that_came_to_no_end_are_counted_and_marked(
    endless: Path, corpus: Path, tmp_path: Path
) -> None:
    corpus.write_text(f"\n{TEXT}", encoding="utf-8")
    out = tmp_path / "t.csv"
    code, _, error = stats(endless, corpus, "-o", out)
    assert code == 0
    reported = (
        "attlas: 5 texts that the model wrote did not end within its limit, the first in line 2"
    )
    assert error.startswith(f"{reported}: finished is false there\n")
    rows = rows_of(out)
    assert {row["finished"] for row in rows} == {"false"}
    assert {row["queries"] for row in rows if row["kind"] == "cross"} == {"23"}
    code, _, error = stats(endless, corpus, "--target", corpus, "-o", tmp_path / "given.csv")
    assert (code, error.count("\n")) == (0, 1)
    assert {row["finished"] for row in rows_of(tmp_path / "given.csv")} == {"true"}


def test_who_goes_on_is_reported_of_the_texts_after_those_that_were_done(
    endless: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, in_twos = tmp_path / "t.csv", ("--max-tokens", "32")
    real = stats_measuring.StatisticsOutput.add_rows

    def once(self: stats_measuring.StatisticsOutput, lines: int, rows: Any) -> None:
        if self.progress.lines:
            raise KeyboardInterrupt
        real(self, lines, rows)

    with monkeypatch.context() as patched:
        patched.setattr(stats_measuring.StatisticsOutput, "add_rows", once)
        assert stats(endless, corpus, *in_twos, "-o", out)[0] == 130
    code, _, error = stats(endless, corpus, *in_twos, "-o", out)
    assert code == 0
    assert "attlas: 3 texts that the model wrote" in error
    assert "the first in line 3, after line 2: finished is false there" in error


def test_tokens_bounds_what_a_model_writes_too(
    endless: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stats(endless, corpus, "-o", tmp_path / "whole.csv")[0] == 0
    read: list[tuple[int, int]] = []
    real = HuggingFaceReader._run

    def run(self: HuggingFaceReader, texts: Any) -> None:
        read.append((len(texts), max(text.width for text in texts)))
        real(self, texts)

    monkeypatch.setattr(HuggingFaceReader, "_run", run)
    assert stats(endless, corpus, "--max-tokens", "50", "-o", tmp_path / "t.csv")[0] == 0
    assert sum(texts for texts, _ in read) == 5
    assert all(texts * (width + 1) <= 50 for texts, width in read)
    found, expected = (
        [(row["line"], row["layer"], row["head"]) for row in rows_of(tmp_path / name)]
        for name in ("t.csv", "whole.csv")
    )
    assert found == expected


def test_a_mended_command_begins_anew_what_the_mistake_in_it_began(
    bert: Path, corpus: Path, tmp_path: Path
) -> None:
    for name in ("t.csv", "t.parquet"):
        out = tmp_path / name
        code, _, error = stats(bert, corpus, "--layer", "nonsense", "-o", out)
        assert (code, "of which it has none" in error) == (2, True)
        code, _, error = stats(bert, corpus, "-o", out)
        assert code == 0, error


def test_a_link_stays_a_link_and_is_the_table_that_it_leads_to(
    bert: Path, corpus: Path, tmp_path: Path
) -> None:
    real, link = tmp_path / "tables" / "stats-5.csv", tmp_path / "latest.csv"
    real.parent.mkdir()
    link.symlink_to(real)
    code, _, error = stats(bert, corpus, "-o", link)
    assert code == 0, error
    assert link.is_symlink()
    assert len(rows_of(real)) == 5 * 2 * 4
    assert part.progress_dir(link) == part.progress_dir(real) == real.parent / ".attlas" / real.name
    for name in (link, real):
        code, _, error = stats(bert, corpus, "-o", name)
        assert (code, error) == (
            0,
            f"attlas: {name} is there already, of this model and this corpus\n",
        )


def test_further_columns_are_there_where_they_are_asked_for(
    bert: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "t.csv"
    both = ("--also", "gini", "--also", "special_weight")
    assert stats(bert, corpus, *both, "-o", out)[0] == 0
    rows = rows_of(out)
    assert list(rows[0])[-2:] == ["special_weight", "gini"]
    assert {row["num_visible"] for row in rows if row["line"] == "1"} == {"4.0"}
    assert all(0 < float(row["special_weight"]) < 1 for row in rows)
    assert json.loads((tmp_path / "t.csv.json").read_text(encoding="utf-8"))["also"] == (
        "gini, special_weight"
    )
    assert stats(bert, corpus, *both[2:], *both[:2], "-o", out)[0] == 0  # in any order
    code, _, error = stats(bert, corpus, "--also", "nonsense", "-o", tmp_path / "u.csv")
    assert (code, "expected --also with special_weight or gini; got 'nonsense'" in error) == (
        2,
        True,
    )


@pytest.mark.parametrize("text", ["", "\n \n\u2003\n"])
def test_a_corpus_without_a_word_is_reported_before_anything_is_written(
    bert: Path, tmp_path: Path, text: str
) -> None:
    path, place = tmp_path / "corpus.txt", tmp_path / "out"
    path.write_text(text, encoding="utf-8")
    place.mkdir()
    came = "3 lines, none of them with a word" if text else "nothing"
    for name in ("t.csv", "t.parquet"):
        code, printed, error = called("stats", bert, path, "-o", place / name)
        assert (code, printed, error.count("\n")) == (2, "", 1)
        assert f"expected a line with a word in {path}; got {came}; " in error
        assert list(place.iterdir()) == []
    code, _, error = called("stats", bert, "-", "-o", place / "t.csv", text=text)
    assert (code, f"a line with a word in the standard input; got {came}; " in error) == (2, True)
    assert list(place.glob("*.csv*")) == []
    path.write_text(TEXT, encoding="utf-8")
    assert stats(bert, path, "-o", place / "t.csv")[0] == 0  # the mistake leaves nothing behind


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"red\n\xff\n", "expected UTF-8 text in the standard input"),
        (b"red\ngreen\n", "expected a line of the standard input beside each of the 5 lines of"),
    ],
)
def test_what_comes_from_a_stream_is_called_by_its_name_where_it_is_wrong(
    endless: Path, corpus: Path, tmp_path: Path, content: bytes, reported: str
) -> None:
    given = ["-"] if b"\xff" in content else [corpus, "--target", "-"]
    code, _, error = called("stats", endless, *given, "-o", tmp_path / "t.csv", text=content)
    assert code == 2
    assert reported in error
    assert ".attlas" not in error


def test_a_corpus_of_which_no_line_has_a_word_on_both_sides_is_reported(
    endless: Path, tmp_path: Path
) -> None:
    source, target, out = (tmp_path / name for name in ("source.txt", "target.txt", "t.csv"))
    source.write_text("the cat\n\n", encoding="utf-8")
    target.write_text("\na dog\n", encoding="utf-8")
    code, _, error = stats(endless, source, "--target", target, "-o", out)
    assert (code, "got 2 lines, none of them with a word on both sides; " in error) == (2, True)
    assert not out.exists()


def test_a_corpus_of_which_the_model_reads_no_token_is_reported_and_forgotten(
    labelling: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "corpus.txt", tmp_path / "t.csv"
    path.write_text("<br />\n<br>\n", encoding="utf-8")
    code, _, error = stats(labelling, path, "-o", out)
    assert (code, f"a line of {path} with a token" in error, "got 2 lines" in error) == (
        2,
        True,
        True,
    )
    assert not out.exists()
    path.write_text("a great film\n", encoding="utf-8")
    assert stats(labelling, path, "-o", out)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "endless"])
def test_a_command_that_is_stopped_loses_no_more_than_a_window_of_lines(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Lines so short that 2,048 tokens would be hundreds of them."""
    model: Path = request.getfixturevalue(kind)
    path = tmp_path / "corpus.txt"
    path.write_text("red\n" * 300, encoding="utf-8")
    out, whole = tmp_path / "t.csv", tmp_path / "whole.csv"
    given = ("--target", path) if kind == "endless" else ()
    assert stats(model, path, *given, "-o", whole)[0] == 0
    real = HuggingFaceReader._run
    for stop in (150, 290):

        def run(self: HuggingFaceReader, texts: Any, stop: int = stop) -> None:
            if any(text.line >= stop for text in texts):
                raise KeyboardInterrupt
            real(self, texts)

        with monkeypatch.context() as patched:
            patched.setattr(HuggingFaceReader, "_run", run)
            assert stats(model, path, *given, "-o", out)[0] == 130
        reported = json.loads(
            (part.progress_dir(out) / "progress.json").read_text(encoding="utf-8")
        )
        assert stop - 128 <= reported["lines"] < stop
    assert stats(model, path, *given, "-o", out)[0] == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("moment", ["replace", "_drop_lines"])
def test_a_kill_before_it_is_reported_that_the_table_is_whole_costs_nothing(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    path, out = tmp_path / "corpus.txt", tmp_path / name
    path.write_text("red\ngreen\n", encoding="utf-8")

    def killed(self: StatisticsOutput, *_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if moment == "replace":  # the table stands in its place
            kept = StatisticsOutput._keep
            patched.setattr(
                StatisticsOutput,
                "_keep",
                lambda self, new: (killed if new.whole else kept)(self, new),
            )
        else:
            patched.setattr(StatisticsOutput, "_drop_lines", killed)
        assert stats(bert, path, "-o", out)[0] == 130
    before = out.read_bytes()
    assert stats(bert, path, "-o", out)[0] == 0
    assert out.read_bytes() == before
    assert not (part.progress_dir(out) / "lines").exists()


@pytest.mark.parametrize("name", ["t.csv", "t.csv.json"])
def test_a_file_that_came_while_a_table_was_made_is_not_written_over(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, out = tmp_path / "corpus.txt", tmp_path / "t.csv"
    path.write_text("red\ngreen\n", encoding="utf-8")
    added = StatisticsOutput.add_rows

    def add(self: StatisticsOutput, lines: int, rows: Any) -> None:
        (tmp_path / name).write_text("mine", encoding="utf-8")
        added(self, lines, rows)

    with monkeypatch.context() as patched:
        patched.setattr(StatisticsOutput, "add_rows", add)
        first = stats(bert, path, "-o", out)
    for code, _, error in (first, stats(bert, path, "-o", out)):
        assert code == 2
        assert f"expected to write {tmp_path / name}; got a file there that attlas stats" in error
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    (tmp_path / name).unlink()
    assert stats(bert, path, "-o", out)[0] == 0
    assert json.loads((tmp_path / "t.csv.json").read_bytes())["lines"] == 2
    out.unlink()  # whoever takes it away wants it anew, with what stands beside it
    assert stats(bert, path, "-o", out)[0] == 0


def test_runs_and_translations_tell_vocabularies_by_one_checksum(run: Path) -> None:
    from attlas.corpus_statistics.readers import TranslatorReader
    from attlas.decoding import DecodingConfig
    from attlas.inference import Translator
    from attlas.jobs.checkpointed_output import origin_of
    from attlas.runs import Run

    search = DecodingConfig.read({"method": "greedy"}, "the test")
    facts = TranslatorReader(Run(run), search).facts
    origin = origin_of(Run(run), "best", Translator(run, search), numbered=False, window=3)
    assert facts["vocabularies"] == origin["vocabularies"]
    assert facts["checkpoint"] == origin["checkpoint"]
    assert facts["settings"] == origin["model"]
    assert None not in origin.values()  # a setting that is left out is no fact of an output
