"""`attlas stats`: a corpus in, a table out, whatever comes between."""

import csv
import gzip
import json
import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas._files import held
from attlas.corpus_statistics.formats import CsvTable, ParquetTable
from attlas.corpus_statistics.table import COLUMNS, TOKEN_COLUMNS, Column
from attlas.errors import AttlasError
from attlas.inference import Translator
from attlas.jobs import checkpointed_output as part
from attlas.jobs import statistics as stats_measuring
from attlas.jobs import statistics as stats_work
from support.command_line import called
from support.small_models import saved
from support.warm_processes import WarmProcess

PATIENCE = 300.0  # seconds; only a failure waits so long
TEXT = "the cat sat on the mat\n\na dog\n \nthe red cat ran in the house\nvery big\n"
KINDS = {"whole": int, "number": float, "flag": lambda reported: reported == "true", "text": str}


def stats(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    return called("stats", *arguments, text=text)


def of_csv(path: Path, columns: tuple[Column, ...] = COLUMNS) -> list[dict[str, Any]]:
    """The rows as a reader of CSV without any knowledge of attlas has them."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    kinds = {column.name: KINDS[column.kind] for column in columns}
    lines = raw.decode().splitlines(keepends=True)
    return [
        {name: kinds[name](cell) if cell else None for name, cell in row.items()}
        for row in csv.DictReader(lines)
    ]


def of_parquet(path: Path) -> list[dict[str, Any]]:
    return parquet.read_table(path).to_pylist()


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture(scope="session")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "bart", "bart")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize("by", ["head", "token"])
def test_csv_and_parquet_say_the_same(bert: Path, corpus: Path, tmp_path: Path, by: str) -> None:
    columns = COLUMNS if by == "head" else TOKEN_COLUMNS
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        code, out, error = stats(bert, corpus, "--by", by, "-o", tmp_path / name)
        assert (code, out) == (0, ""), error
        reported = f"attlas: {tmp_path / name}: 6 lines, 2 of them without a word, in "
        assert error.startswith(reported)
        assert error.count("\n") == 1  # quiet where nobody sees a bar
    rows = of_csv(tmp_path / "t.csv", columns)
    assert rows == of_parquet(tmp_path / "t.parquet") == of_csv(tmp_path / "t.csv.gz", columns)
    assert list(rows[0]) == [column.name for column in columns]
    assert [row["line"] for row in rows] == sorted(row["line"] for row in rows)
    assert {row["line"] for row in rows} == {1, 3, 5, 6}
    assert {row["head"] for row in rows} == {0, 1, 2, 3}
    facts = json.loads(parquet.read_schema(tmp_path / "t.parquet").metadata[b"attlas"])
    assert facts == json.loads((tmp_path / "t.csv.json").read_text(encoding="utf-8"))
    assert (facts["lines"], facts["threshold"], facts["by"]) == (6, 0.01, by)
    assert facts["from"] == str(bert)
    assert {"attlas", "model", "checkpoint", "text", "torch", "transformers"} <= facts.keys()
    if by == "token":
        tokens = [r["token"] for r in rows if (r["line"], r["head"]) == (3, 0)]
        assert tokens == ["[CLS]", "a", "dog", "[SEP]"] * 2


def test_a_run_translates_or_reads_the_translation_that_is_given(run: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text("1 2 3\n\n4 5\n6\n", encoding="utf-8")
    target.write_bytes(gzip.compress(b"3 2 1\n7\n5 4\n\n"))  # gzip is known by its bytes
    code, _, error = stats(run, source, "-o", tmp_path / "own.csv")
    assert code == 0, error
    facts = json.loads((tmp_path / "own.csv.json").read_text(encoding="utf-8"))
    assert (facts["decoding.method"], facts["target"]) == ("greedy", "none")
    assert "decoding.num_beams" not in facts
    assert stats(run, source, "--target", target, "-o", tmp_path / "given.csv")[0] == 0
    rows = of_csv(tmp_path / "given.csv")
    assert [(row["line"], row["queries"], row["keys"]) for row in rows] == [(1, 4, 4), (3, 3, 3)]
    facts = json.loads((tmp_path / "given.csv.json").read_text(encoding="utf-8"))
    assert "decoding.method" not in facts
    assert facts["target"] != "none"
    assert stats(run, source, "--num-beams", "2", "-o", tmp_path / "beam.csv")[0] == 0
    facts = json.loads((tmp_path / "beam.csv.json").read_text(encoding="utf-8"))
    assert (facts["decoding.method"], facts["decoding.num_beams"]) == ("beam", 2)


def test_a_classifier_reads_the_texts(labelling: Path, tmp_path: Path) -> None:
    texts = "a great film\nthe plot was dull<br />and boring\n"
    out = tmp_path / "t.parquet"
    code, _, error = stats(labelling, "-", "-o", out, text=texts)
    assert code == 0, error
    rows = of_parquet(out)
    assert {(row["line"], row["keys"]) for row in rows} == {(1, 4), (2, 7)}
    assert {row["layer"] for row in rows} == {
        "encoder.layers.0.self_attention",
        "pooling.attention",
    }
    for row in rows:  # nobody knows where a learned query stands
        assert (row["distance"] is None) is (row["layer"] == "pooling.attention")


def test_what_is_true_false_or_unknown_is_reported_apart_in_a_table(tmp_path: Path) -> None:
    frame: dict[str, list[Any]] = {column.name: [0, 1, 2] for column in COLUMNS}
    frame |= {column.name: ["a"] * 3 for column in COLUMNS if column.kind == "text"}
    frame |= {column.name: [True, False, None] for column in COLUMNS if column.kind == "flag"}
    frame["distance"] = [0.5, None, 1.0]
    for table, name in ((CsvTable(COLUMNS), "a.csv"), (ParquetTable(COLUMNS), "a.parquet")):
        (tmp_path / "rows").write_bytes(table.head + table.rows(frame))
        table.assemble(tmp_path / "rows", tmp_path / name, {})
    (rows,) = [of_parquet(tmp_path / "a.parquet")]
    assert [row["causal"] for row in rows] == [True, False, None]
    assert [row["distance"] for row in rows] == [0.5, None, 1.0]
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["causal"] for row in cells] == ["true", "false", ""]
    assert [row["distance"] for row in cells] == ["0.5", "", "1.0"]


def test_above_counts_the_weights_that_are_greater_than_the_threshold(
    run: Path, tmp_path: Path
) -> None:
    texts, found = ["1 2 3", "6", "4 5"], {}
    (tmp_path / "text").write_text("\n".join(texts), encoding="utf-8")
    greedy = Translator(run).config.model_copy(update={"method": "greedy"})
    weights = [
        one.trace["decoder.attention"].weights() for one in Translator(run, greedy).stream(texts)
    ]
    for threshold in (0.01, 0.5):
        out = tmp_path / f"{threshold}.csv"
        assert stats(run, tmp_path / "text", "--threshold", threshold, "-o", out)[0] == 0
        found[threshold] = [row["count_above"] for row in of_csv(out)]
        wanted = [float((one > threshold).sum(-1).double().mean()) for one in weights]
        assert found[threshold] == pytest.approx(wanted)
    assert all(few < many for few, many in zip(found[0.5], found[0.01], strict=True))
    assert any(found[0.5])


def test_of_a_layer_come_the_rows_that_the_whole_table_has_of_it(
    bert: Path, corpus: Path, tmp_path: Path
) -> None:
    assert stats(bert, corpus, "-o", tmp_path / "whole.csv")[0] == 0
    assert stats(bert, corpus, "--layer", "encoder.layer.0.*", "-o", tmp_path / "t.csv")[0] == 0
    whole = of_csv(tmp_path / "whole.csv")
    first = [row for row in whole if row["layer"].startswith("encoder.layer.0.")]
    assert len(first) == len(whole) / 2  # of two layers
    assert of_csv(tmp_path / "t.csv") == first


def test_an_encoder_decoder_reads_targets_and_writes_its_own(bart: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text("the cat\na dog ran\n", encoding="utf-8")
    target.write_text("a big dog\nred\n", encoding="utf-8")
    out = tmp_path / "t.csv"
    assert stats(bart, source, "--target", target, "--by", "token", "-o", out)[0] == 0
    cross = [r for r in of_csv(out, TOKEN_COLUMNS) if r["kind"] == "cross" and not r["head"]]
    assert [r["token"] for r in cross if r["line"] == 1] == ["[CLS]", "a", "big", "dog", "[SEP]"]
    assert {r["received"] for r in cross} == {None}
    assert stats(bart, source, "-o", tmp_path / "own.csv")[0] == 0
    facts = json.loads((tmp_path / "own.csv.json").read_text(encoding="utf-8"))
    assert facts["decoding.method"] == "greedy"


def test_what_is_done_is_not_done_again(
    bert: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "t.csv"
    assert stats(bert, corpus, "-o", out)[0] == 0
    before = out.stat()
    (tmp_path / "t.csv.json").unlink()

    def never(*_: object) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(stats_work, "measure", never)
    code, _, error = stats(bert, corpus, "-o", out)
    assert (code, error) == (0, f"attlas: {out} is there already, of this model and this corpus\n")
    assert out.stat().st_mtime_ns == before.st_mtime_ns
    assert json.loads((tmp_path / "t.csv.json").read_text(encoding="utf-8"))["lines"] == 6


IN_TWOS = ("--max-tokens", "32")  # windows of two lines


def dying_after(windows: int, monkeypatch: pytest.MonkeyPatch, what: BaseException) -> None:
    """So many windows are kept."""
    real, kept = stats_measuring.StatisticsOutput.add_rows, 0

    def add_rows(self: stats_measuring.StatisticsOutput, lines: int, rows: Any) -> None:
        nonlocal kept
        if kept == windows:
            raise what
        kept += 1
        real(self, lines, rows)

    monkeypatch.setattr(stats_measuring.StatisticsOutput, "add_rows", add_rows)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("windows", [0, 1, 2])
def test_what_was_begun_goes_on_and_ends_alike(
    bert: Path,
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    windows: int,
) -> None:
    out, whole = tmp_path / name, tmp_path / f"whole-{name}"
    assert stats(bert, corpus, *IN_TWOS, "-o", whole)[0] == 0
    with monkeypatch.context() as patched:
        dying_after(windows, patched, KeyboardInterrupt())
        code, _, error = stats(bert, corpus, *IN_TWOS, "-o", out)
    assert code == 130
    assert error.endswith("attlas: interrupted; the same command goes on where it stopped\n")
    assert not out.exists()
    with (part.progress_dir(out) / "lines").open("ab") as file:
        file.write(b"half of a wri")  # killed in the middle of one
    code, _, error = stats(bert, corpus, *IN_TWOS, "-o", out)
    assert code == 0, error
    assert (f"goes on after line {windows * 2} of 6" in error) is bool(windows)
    if name == "t.parquet":
        assert parquet.read_table(out).equals(parquet.read_table(whole))
    else:
        assert out.read_bytes() == whole.read_bytes()


def test_another_model_corpus_or_setting_is_refused_with_the_reason(
    bert: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "t.csv"
    with monkeypatch.context() as patched:
        dying_after(1, patched, KeyboardInterrupt())
        assert stats(bert, corpus, *IN_TWOS, "-o", out)[0] == 130
    other = saved(tmp_path / "bert", "bert", num_hidden_layers=1)
    code, _, error = stats(other, corpus, *IN_TWOS, "-o", out)
    assert code == 2
    assert f"with which {out} was begun and done as far as line 2; got " in error
    assert "checkpoint = bert (" in error
    assert f"take away {part.progress_dir(out)}" in error
    code, _, error = stats(bert, corpus, *IN_TWOS, "--threshold", "0.5", "-o", out)
    assert code == 2
    assert f"threshold = 0.01, with which {out} was begun and done as far as line 2" in error
    assert "; got threshold = 0.5;" in error
    corpus.write_text(TEXT.replace("dog", "cat"), encoding="utf-8")
    code, _, error = stats(bert, corpus, *IN_TWOS, "-o", out)
    assert (code, "expected checksum of the text = " in error) == (2, True)
    corpus.write_text(TEXT, encoding="utf-8")
    assert stats(bert, corpus, *IN_TWOS, "-o", out)[0] == 0
    corpus.write_text(TEXT + "more\n", encoding="utf-8")
    code, _, error = stats(bert, corpus, *IN_TWOS, "-o", out)
    assert code == 2
    assert error.startswith("attlas: expected checksum of the text = ")
    assert f"{out} was finished" in error


def test_two_processes_do_not_write_one_table(bert: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    part.progress_dir(out).mkdir(parents=True)
    with held(part.progress_dir(out) / "lock"):
        code, _, error = stats(bert, corpus, "-o", out)
    assert code == 2
    assert error.startswith(f"attlas: expected {out} for this process alone; got another process")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_process_that_is_killed_goes_on_and_ends_alike(
    run: Path, tmp_path: Path, name: str
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("1 2 3\n4 5\n6\n" * 80, encoding="utf-8")

    def started(output: Path) -> WarmProcess:
        return WarmProcess(
            *("stats", run, corpus, "--max-tokens", 256, "-o", output),
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=PIPE,
        )

    out, whole = tmp_path / name, tmp_path / f"whole-{name}"
    with started(out) as process:
        end = time.monotonic() + PATIENCE
        while lines_of(out) < 50:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    done = lines_of(out)
    assert 50 <= done < 240
    for output in (out, whole):
        with started(output) as process:
            error = process.printed()
        assert process.returncode == 0, error
        assert ("goes on after line" in error) is (output == out)
    if name == "t.csv":
        assert out.read_bytes() == whole.read_bytes()
    else:
        assert parquet.read_table(out).equals(parquet.read_table(whole))


def test_a_search_may_be_set_as_a_table(run: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("1 2 3\n", encoding="utf-8")
    for name, setting in (
        ("a", 'decoding={method="beam", num_beams=3}'),
        ("b", "decoding.num_beams=3"),
    ):
        more = () if name == "a" else ("--set", "decoding.method=beam")
        out = tmp_path / f"{name}.csv"
        code, _, error = stats(run, corpus, *more, "--set", setting, "-o", out)
        assert code == 0, error
        assert (tmp_path / f"{name}.csv.json").is_file()
        facts = json.loads((tmp_path / f"{name}.csv.json").read_bytes())
        assert (facts["decoding.method"], facts["decoding.num_beams"]) == ("beam", 3)


def test_a_threshold_that_is_no_number_is_refused_before_any_work(
    run: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "t.csv"
    code, _, error = stats(run, corpus, "--threshold", "nan", "-o", out)
    assert code == 2
    assert "--threshold" in error
    assert not part.progress_dir(out).exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no such names")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_corpus_whose_name_is_no_utf_8_is_measured(bert: Path, tmp_path: Path, name: str) -> None:
    corpus = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    corpus.write_text("a dog\n", encoding="utf-8")
    code, _, error = stats(bert, corpus, "-o", tmp_path / name)
    assert code == 0, error
    assert (tmp_path / name).is_file()


def lines_of(output: Path) -> int:
    """How many lines of it are done."""
    try:
        return int(json.loads((part.progress_dir(output) / "progress.json").read_bytes())["lines"])
    except FileNotFoundError:
        return 0


def test_an_odd_text_is_read_line_by_line_as_other_commands_read_it(
    bert: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "odd.txt"
    corpus.write_bytes('\ufeffthe\u2028cat\r\nred\x85dog\r\n\u2003\n"a,b"'.encode())
    out = tmp_path / "t.csv"
    assert stats(bert, corpus, "--by", "token", "-o", out)[0] == 0
    rows = of_csv(out, TOKEN_COLUMNS)
    assert {row["line"] for row in rows} == {1, 2, 4}
    first = [r["token"] for r in rows if (r["line"], r["head"]) == (1, 0)][:4]
    assert first == ["[CLS]", "the", "cat", "[SEP]"]
    corpus.write_bytes(b"the cat\n\xff\n")
    code, _, error = stats(bert, corpus, "-o", tmp_path / "u.csv")
    assert (code, error.count("\n")) == (2, 1)
    assert f"UTF-8 text in {corpus}; got byte 0xff at byte 1 of line 2" in error
    assert not (tmp_path / "u.csv").exists()


def test_a_text_that_is_longer_than_the_model_reads_is_reported_once(
    bert: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "long.txt"
    corpus.write_text("red\n" + "the cat " * 20 + "\n" + "a dog " * 30 + "\n", encoding="utf-8")
    code, _, error = stats(bert, corpus, "-o", tmp_path / "t.csv")
    assert code == 0
    assert error.count("longer than the model can read") == 1
    assert "attlas: line 2 is longer than the model can read: 18 tokens of it" in error
    found = {(row["line"], row["unread"], row["queries"]) for row in of_csv(tmp_path / "t.csv")}
    assert found == {(1, 0, 3), (2, 18, 24), (3, 38, 24)}


def test_lines_with_a_tab_which_pairs_have_are_counted(bert: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a b\tc\na\nb\td\n", encoding="utf-8", newline="\n")
    code, _, error = stats(bert, pairs, "-o", tmp_path / "t.csv")
    assert code == 0
    assert "2 lines with a tab: A tab is part of the text" in error
    lines = tmp_path / "lines.txt"
    lines.write_text("a b\na\n", encoding="utf-8", newline="\n")
    assert "tab:" not in stats(bert, lines, "-o", tmp_path / "u.csv")[2]


def test_mistakes_are_reported_in_one_sentence(
    bert: Path, run: Path, labelling: Path, blind_run: Path, corpus: Path, tmp_path: Path
) -> None:
    out, table = tmp_path / "t.csv", tmp_path / "there.csv"
    table.write_text("mine", encoding="utf-8")
    short = tmp_path / "short.txt"
    short.write_text("one\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    wrong: list[tuple[list[object], str]] = [
        ([tmp_path / "none", corpus, "-o", out], f"got no folder at {tmp_path / 'none'}"),
        ([corpus, corpus, "-o", out], f"got {corpus}, which is no folder"),
        ([tmp_path / "empty", corpus, "-o", out], "with neither config.toml nor config.json"),
        ([bert, tmp_path / "none.txt", "-o", out], f"no file at {tmp_path / 'none.txt'}"),
        ([bert, tmp_path, "-o", out], f"a readable file at {tmp_path}"),
        ([bert, corpus], "expected an output for the table"),
        ([bert, corpus, "-o", tmp_path / "t.tsv"], "ends in .parquet, .csv or .csv.gz"),
        ([bert, corpus, "-o", tmp_path / "no" / "t.csv"], f"no folder {tmp_path / 'no'}"),
        ([bert, corpus, "-o", table], "a file there that attlas stats did not write"),
        ([bert, corpus, "--by", "line", "-o", out], "--by head or --by token; got 'line'"),
        ([bert, corpus, "--also", "line", "-o", out], "special_weight or gini; got 'line'"),
        ([bert, corpus, "--target", short, "-o", out], "which reads one text"),
        ([labelling, corpus, "--target", short, "-o", out], "which reads one text"),
        ([bert, corpus, "--num-beams", "3", "-o", out], "got --num-beams"),
        ([bert, corpus, "--checkpoint", "last", "-o", out], "got --checkpoint"),
        ([run, corpus, "--target", short, "-o", out], f"a line of {short} beside each of the 6"),
        ([run, corpus, "--target", short, "--num-beams", "2", "-o", out], "got --num-beams"),
        ([run, "-", "--target", "-", "-o", out], "one use of the standard input; got 2 uses"),
        ([run, corpus, "--checkpoint", "12", "-o", out], "a checkpoint '12'"),
        ([blind_run, corpus, "-o", out], "a model with attention"),
        ([bert, corpus, "--device", "nonsense", "-o", out], "a device that torch can use"),
        (
            [bert, corpus, "--layer", "nonsense", "-o", out],
            "of which it has none; choose from: encoder.layer.0.attention.self; encoder.layer.1.",
        ),
    ]
    for arguments, expected in wrong:
        code, printed, error = stats(*arguments, text="")
        assert (code, printed, error.count("\n")) == (2, "", 1), (arguments, error)
        assert error.startswith("attlas: expected ")
        assert expected in error, (arguments, error)
    assert table.read_text(encoding="utf-8") == "mine"
    assert not out.exists()
    assert stats(bert, corpus, "-o", out)[0] == 0  # what is right then, is done
    assert stats(bert, corpus, "--threshold", "2", "-o", out)[0] == 2
    assert stats(bert, table, "-o", table)[0] == 2


def test_without_pyarrow_the_extra_is_named_and_csv_goes_on(
    bert: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, error = stats(bert, corpus, "-o", tmp_path / "t.parquet")
    assert code == 2
    assert error == (
        "attlas: expected numbers in Parquet; got an installation without it; run: pip install "
        "'attlas[parquet]'\n"
    )
    assert stats(bert, corpus, "-o", tmp_path / "t.csv")[0] == 0


def test_without_transformers_it_is_asked_for(
    bert: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    code, _, error = stats(bert, corpus, "-o", tmp_path / "t.csv")
    assert (code, "run: pip install transformers" in error) == (2, True)


def test_a_corpus_that_changes_meanwhile_is_refused_and_nothing_is_kept(
    bert: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = stats_work.measure

    def changing(*arguments: Any) -> None:
        corpus.write_text(TEXT + "more\n", encoding="utf-8")
        real(*arguments)

    monkeypatch.setattr(stats_work, "measure", changing)
    code, _, error = stats(bert, corpus, "-o", tmp_path / "t.csv")
    assert (code, "another text at the end than at the start" in error) == (2, True)
    assert lines_of(tmp_path / "t.csv") == 0


VALUES = {
    "whole": st.integers(-1, 2**53),
    "number": st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    "flag": st.booleans(),
    "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
}


@given(st.data(), st.integers(0, 5), st.integers(0, 3))
def test_both_forms_hold_any_value_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, rows: int, times: int
) -> None:
    frames = [
        {
            column.name: data.draw(
                st.lists(VALUES[column.kind], min_size=rows, max_size=rows), column.name
            )
            for column in TOKEN_COLUMNS
        }
        for _ in range(times)
    ]
    wanted = [
        dict(zip(frame, row, strict=True))
        for frame in frames
        for row in zip(*frame.values(), strict=True)
    ]
    place = tmp_path_factory.mktemp("forms")
    for table, name in ((CsvTable(TOKEN_COLUMNS), "a.csv"), (ParquetTable(TOKEN_COLUMNS), "a.pq")):
        lines = place / f"{name}.lines"
        lines.write_bytes(table.head + b"".join(map(table.rows, frames)))
        table.assemble(lines, place / name, {"attlas": "x"})
    assert of_parquet(place / "a.pq") == wanted
    with (place / "a.csv").open(encoding="utf-8", newline="") as file:
        kinds = {column.name: KINDS[column.kind] for column in TOKEN_COLUMNS}
        found = [
            {name: kinds[name](cell) if cell else None for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]
    assert found == wanted


def test_an_origin_that_differs_names_what_differs_alone(tmp_path: Path) -> None:
    from attlas.jobs.statistics import StatisticsOutput

    out, table = tmp_path / "t.csv", CsvTable(COLUMNS)
    part.progress_dir(out).mkdir(parents=True)
    StatisticsOutput(out, {"model": "a", "text": "b"}, table).add_rows(3, [b"x\n"])
    with pytest.raises(AttlasError) as error:
        StatisticsOutput(out, {"model": "a", "text": "c"}, table)
    assert "checksum of the text = b" in error.value.expected
    assert error.value.got == "checksum of the text = c"
