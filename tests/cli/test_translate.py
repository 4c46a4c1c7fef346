"""`attlas translate`."""

import gzip
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from threading import Timer
from typing import Any

import pytest

from attlas import _output
from attlas.config import write_toml
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.inference import Translator
from attlas.jobs.inputs import decoding_of
from attlas.runs import Run
from support.command_line import called
from support.warm_processes import WarmProcess

LINES = ["1 2 3", "", "   ", "4", "5 \u2028 6 \x85 7", "8 \r 8", ""]


def translate(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    return called("translate", *arguments, text=text)


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("window", [1, 2, 100])
def test_as_many_lines_come_out_as_went_in(run: Path, window: int, ending: str) -> None:
    lines = [*LINES, "last"]
    code, out, _ = translate(run, "--window", window, text="\n".join(lines) + ending)
    assert code == 0
    assert out.endswith("\n")
    assert out.count("\n") == len(lines)


def test_an_empty_line_has_an_empty_translation_in_its_place(run: Path) -> None:
    _, out, _ = translate(run, text="\n".join(LINES) + "\n")
    empty = [not line.strip() for line in LINES]
    found = out.split("\n")[:-1]
    assert all(not line for line, is_empty in zip(found, empty, strict=True) if is_empty)
    assert found[0] == Translator(run)(LINES[0]).text != ""


def test_the_window_changes_nothing_in_what_comes_out(run: Path) -> None:
    text = "\n".join(LINES * 4)
    outputs = {translate(run, "--window", window, text=text)[1] for window in (1, 3, 1000)}
    assert len(outputs) == 1


def test_nothing_in_nothing_out(run: Path) -> None:
    assert translate(run, text="") == (0, "", "")


def test_files_instead_of_the_standard_streams(run: Path, tmp_path: Path) -> None:
    text = "1 2 3\n\n4 5\n"
    (tmp_path / "in.gz").write_bytes(gzip.compress(text.encode()))
    code, out, _ = translate(run, "-i", tmp_path / "in.gz", "-o", tmp_path / "out")
    assert (code, out) == (0, "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == translate(run, text=text)[1]


def test_the_n_best_list_has_the_number_of_the_line_the_translation_and_its_score(
    run: Path,
) -> None:
    _, plain, _ = translate(run, "--num-beams", 3, text="1 2 3\n\n4 5\n")
    code, out, _ = translate(run, "--num-beams", 3, "--n-best", 3, text="1 2 3\n\n4 5\n")
    assert code == 0
    for requested in (["decoding.n_best=3"], ["decoding={n_best=3}"]):
        again = ["--num-beams", 3, *(part for one in requested for part in ("--set", one))]
        assert translate(run, *again, text="1 2 3\n\n4 5\n") == (0, out, "")
    taken_back = ["--set", "decoding.n_best=3", "--set", "decoding={num_beams=3}"]
    assert translate(run, *taken_back, text="1 2 3\n\n4 5\n") == (0, plain, "")
    rows = [line.split(" ||| ") for line in out.split("\n")[:-1]]
    assert [int(number) for number, _, _ in rows] == [0, 0, 0, 1, 2, 2, 2]
    wide = Translator(run).config.model_copy(update={"num_beams": 3, "n_best": 3})
    lists = Translator(run, wide).stream(["1 2 3", "", "4 5"])
    expected = [one for best in lists for one in (best, *best.alternatives)]
    assert [text for _, text, _ in rows] == [one.text for one in expected]
    scores = [float(score) for _, _, score in rows]
    assert scores == pytest.approx([one.score for one in expected], abs=1e-6)
    first = {number: text for number, text, _ in reversed(rows)}
    assert list(dict(sorted(first.items())).values()) == plain.split("\n")[:-1]
    for number in "02":
        scores = [float(score) for n, _, score in rows if n == number]
        assert scores == sorted(scores, reverse=True)


def test_more_n_best_than_the_beam_is_wide_is_the_callers_mistake(run: Path) -> None:
    code, out, error = translate(run, "--n-best", 3, text="1\n")
    assert (code, out) == (2, "")
    assert "n_best of at most 2" in error


def test_alignments_have_a_line_for_each_line_and_name_words_that_exist(
    run: Path, tmp_path: Path
) -> None:
    sources = ["1 2 3", "", "4 5"]
    code, out, _ = translate(run, "--alignments", tmp_path / "align", text="\n".join(sources))
    assert code == 0
    links = [one.word_alignment for one in Translator(run).stream(sources)]
    lines = [" ".join(f"{i}-{j}" for i, j in one) for one in links]
    assert (tmp_path / "align").read_text(encoding="utf-8") == "".join(f"{x}\n" for x in lines)
    assert lines[0] != lines[1] == ""
    for one, source, target in zip(links, sources, out.split("\n")[:-1], strict=True):
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in one)


def test_a_model_without_attention_has_no_alignments(blind_run: Path, tmp_path: Path) -> None:
    code, _, error = translate(blind_run, "--alignments", tmp_path / "align", text="1\n")
    assert code == 2
    assert "expected a model with attention" in error
    assert not (tmp_path / "align").exists()


@pytest.mark.parametrize("window", [1, 2, 100])
def test_bad_utf8_names_its_line_and_the_lines_before_it_are_translated(
    run: Path, window: int
) -> None:
    code, out, error = translate(run, "--window", window, text=b"1\n2\n3 \xff 4\n5\n")
    assert code == 2
    assert out == translate(run, text="1\n2\n")[1]
    assert "byte 0xff at byte 3 of line 3" in error
    assert "Traceback" not in error


def test_an_output_that_was_begun_and_not_ended_is_reported(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    whole = translate(run, text="1\n2\n")[1]
    reported = (
        f"{output} holds what came of the first 2 lines, or a few more; FILES --into FOLDER would "
        "continue there\n"
    )
    code, _, error = translate(run, "--window", 1, "-o", output, text=b"1\n2\n\xff\n")
    assert code == 2
    assert error.endswith(f"; {reported}")
    assert output.read_text(encoding="utf-8") == whole

    really, requested = Translator.stream, iter(range(9))

    def interrupted(self: Translator, *given: object, **named: int) -> object:
        if next(requested) == 2:
            raise KeyboardInterrupt
        return really(self, *given, **named)

    monkeypatch.setattr(Translator, "stream", interrupted)
    code, _, error = translate(run, "--window", 1, "-o", output, text="1\n2\n3\n")
    assert (code, error) == (130, f"attlas: interrupted; {reported}")
    assert output.read_text(encoding="utf-8") == whole


def test_a_setting_of_another_table_is_refused(run: Path) -> None:
    code, _, error = translate(run, "--set", "model.hidden_dim=3", text="1\n")
    assert code == 2
    assert "expected settings of the search" in error


def test_an_unknown_setting_names_the_nearest_one(run: Path) -> None:
    code, _, error = translate(run, "--set", "decoding.num_beems=3", text="1\n")
    assert code == 2
    assert "did you mean `num_beams`?" in error


def test_the_length_may_be_set_and_a_translation_that_did_not_end_is_reported(run: Path) -> None:
    settings = {"method": "sample", "max_len_a": 0, "max_len_b": 1}
    lines = ["1 2 3 4", "", "5", "6 7", "0 0 0"]
    code, out, error = translate(
        run,
        *(part for key, value in settings.items() for part in ("--set", f"decoding.{key}={value}")),
        text="\n".join(lines),
    )
    assert code == 0
    assert all(len(line.split()) <= 1 for line in out.split("\n"))
    translator = Translator(run, DecodingConfig.read(settings, "the test"))
    cut_off = [number for number, line in enumerate(lines, 1) if not translator(line).finished]
    assert cut_off  # a model that has hardly been trained seldom draws the end
    said = [line.partition(": The model did not end")[0] for line in error.splitlines()]
    assert said == [f"attlas: line {number}" for number in cut_off]


def test_a_line_of_which_no_word_is_known_is_named(run: Path) -> None:
    code, out, error = translate(run, text="1 2\nПривет мир\n\n4 Привет\n")
    assert (code, out.count("\n")) == (0, 4)
    unknown = "None of its words is in the vocabulary, so the translation says nothing about it."
    named = [line for line in error.splitlines() if "vocabulary" in line]
    assert named == [f"attlas: line 2: {unknown}"]
    translator = Translator(run)
    assert [translator(text).known for text in ("1", "мир", "", "1 мир")] == [
        True, False, True, True,
    ]  # fmt: skip


def test_a_line_with_a_tab_which_a_pair_has_is_named(run: Path) -> None:
    code, out, error = translate(run, text="1 2\t2 1\n3\n")
    assert (code, out.count("\n")) == (0, 2)
    assert [line for line in error.splitlines() if "tab" in line] == [
        "attlas: line 1: A tab is part of the text, which is read as one text. If lines are pairs, "
        "`cut -f1` keeps the sources."
    ]


def test_what_many_lines_have_in_common_is_reported_once_with_their_number(
    run: Path, tmp_path: Path
) -> None:
    text = "1 2 3 4\n" * 40
    settings = {
        "method": "sample",
        "max_len_a": 0,
        "max_len_b": 1,
        "max_source_length": 1,
    }

    def unfinished(seed: int) -> bool:
        config = DecodingConfig.read({**settings, "seed": seed}, "the test")
        return not Translator(run, config)("1 2 3 4").finished

    settings["seed"] = next(filter(unfinished, range(100)))
    requested = [part for key, v in settings.items() for part in ("--set", f"decoding.{key}={v}")]
    code, out, error = translate(run, *requested, text=text)
    assert (code, out.count("\n")) == (0, 40)
    assert error.count("did not end") == error.count("longer than this model is set") == 1
    assert "attlas: 40 lines (1, 2, 3, 4, …): The model did not end these translations" in error
    path = tmp_path / "text"
    path.write_text(text, encoding="utf-8")
    _, _, error = translate(run, path, "--into", tmp_path / "out", *requested)
    assert f"attlas: {path}: 40 lines (1, 2, 3, 4, …): The model did not end" in error
    for source in (["--input", path], [path, "--into", tmp_path / "again"]):
        _, _, error = translate(run, *source, *requested, "--window", 3)
        assert error.count("did not end") == error.count("longer than this model is set") == 1
        assert "40 lines (1, 2, 3, 4, …): The model did not end these translations" in error
    _, _, error = translate(run, *requested, "--window", 1, text=text)
    assert error.count("did not end") == 6  # five windows, and the others
    assert "attlas: 35 further lines: The model did not end these translations" in error


@pytest.mark.parametrize(
    "requested",
    [
        ("--n-best", 9),
        ("--num-beams", 3, "--n-best", 9),
        ("--n-best", 9, "--set", "decoding.num_beams=3"),
        ("--n-best", 10**9),
    ],
)
def test_a_mistake_in_an_option_is_reported_of_the_option(
    run: Path, requested: tuple[object, ...]
) -> None:
    code, _, error = translate(run, *requested, text="1\n")
    assert code == 2
    named = [part for part in requested if str(part).startswith("--")]
    assert all(option in error for option in named)
    assert "config.toml" not in error


@pytest.mark.parametrize(
    ("requested", "reported"),
    [
        (
            ("--num-beams", 3, "--set", "decoding.num_beams=4"),
            "got --num-beams 3 and --set decoding.num_beams=4",
        ),
        (("--n-best", 1, "--set", "decoding.n_best=2"), "got --n-best 1 and --set decoding.n_best"),
        (("--num-beams", 3, "--set", "decoding.method=greedy"), "got --set decoding.method=greedy"),
        (
            ("--set", "decoding.num_beams=3", "--set", "decoding.num_beams=4"),
            "--set decoding.num_beams once",
        ),
    ],
)
def test_a_setting_that_is_given_in_two_ways_is_an_error(
    run: Path, requested: tuple[object, ...], reported: str
) -> None:
    code, _, error = translate(run, *requested, text="1\n")
    assert (code, reported in error) == (2, True), error


@pytest.mark.parametrize(
    ("requested", "idle"),
    [
        (
            ("decoding.method=greedy", "decoding.num_beams=9", "decoding.seed=7"),
            "'beam' for num_beams",
        ),
        (
            ("decoding.method=greedy", "decoding.num_beams=5"),
            "'beam' for num_beams",
        ),  # 5 is the default
        (("decoding.seed=0",), "'sample' for seed"),
    ],
)
def test_a_setting_that_has_no_effect_with_the_method_is_refused(
    run: Path, requested: tuple[str, ...], idle: str
) -> None:
    code, out, error = translate(run, *(p for one in requested for p in ("--set", one)), text="1\n")
    assert (code, out) == (2, "")
    assert f"expected method = {idle}" in error


def test_another_method_leaves_out_what_the_run_says_of_its_own(run: Path) -> None:
    wide = decoding_of(Run(run), ["decoding.exhaustive=true"], num_beams=9)
    assert (wide.method, wide.num_beams, wide.exhaustive) == ("beam", 9, True)
    assert decoding_of(Run(run), ["decoding.method=beam"]).num_beams == 2  # the run's own
    greedy = decoding_of(Run(run), ["decoding.method=greedy"])
    assert greedy.method == "greedy"
    assert greedy.max_len_b == 5  # holds for every method
    drawn = decoding_of(Run(run), ["decoding.method=sample", "decoding.seed=7"])
    assert (drawn.method, drawn.seed) == ("sample", 7)


def test_a_run_that_samples_is_searched_by_beam_where_that_is_asked_for(
    run: Path, tmp_path: Path
) -> None:
    tables = {**Run(run).config, "decoding": {"method": "sample", "seed": 3, "temperature": 0.5}}
    (tmp_path / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    assert decoding_of(Run(tmp_path), (), num_beams=4) == DecodingConfig(num_beams=4)
    assert decoding_of(Run(tmp_path), ()).temperature == 0.5


def test_how_many_a_run_returns_of_its_own_search_is_left_out_where_another_is_asked_for(
    run: Path, tmp_path: Path
) -> None:
    tables = {**Run(run).config, "decoding": {"method": "beam", "num_beams": 4, "n_best": 4}}
    (tmp_path / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    assert decoding_of(Run(tmp_path), (), num_beams=2) == DecodingConfig(num_beams=2)
    greedy = decoding_of(Run(tmp_path), ["decoding.method=greedy"])
    assert greedy == DecodingConfig(method="greedy")
    assert decoding_of(Run(tmp_path), ()).n_best == 4
    assert decoding_of(Run(tmp_path), (), num_beams=3, n_best=2).n_best == 2


def test_a_file_is_not_written_over_while_it_is_read(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("1 2 3\n", encoding="utf-8")
    code, _, error = translate(run, "-i", path, "-o", tmp_path / "." / "text")
    assert code == 2
    assert "expected different files to read and to write" in error
    assert path.read_text(encoding="utf-8") == "1 2 3\n"


def test_a_folder_that_does_not_exist_is_the_callers_mistake(run: Path, tmp_path: Path) -> None:
    code, _, error = translate(run, "-o", tmp_path / "no" / "out", text="1\n")
    assert code == 2
    assert "expected to write" in error


@pytest.mark.slow
def test_a_program_may_write_a_line_and_wait_for_its_answer(run: Path) -> None:
    lines = ["1 2 3", "", "4 5", "6"]
    expected = translate(run, text="\n".join(lines))[1].split("\n")
    streams = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    with WarmProcess("translate", run, **streams) as process:
        watch = Timer(300.0, process.kill)  # only a failure waits so long
        watch.start()
        for number, line in enumerate(lines):
            process.stdin.write(f"{line}\n")
            if number == 3:
                process.stdin.write("half a line")  # which nobody waits for either
            process.stdin.flush()
            assert process.stdout.readline() == f"{expected[number]}\n"
        # It ends in order while its reader still waits for the rest of that line.
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        watch.cancel()
        assert process.stderr.read().endswith("attlas: interrupted\n")


def test_the_name_of_the_output_says_whether_it_is_gzipped(run: Path, tmp_path: Path) -> None:
    text = "1 2 3\n\n4 5\n"
    plain = translate(run, text=text)[1]
    align, links = tmp_path / "align", tmp_path / "align.gz"
    code, _, error = translate(run, "-o", tmp_path / "o.gz", "--alignments", align, text=text)
    assert code == 0, error
    assert gzip.decompress((tmp_path / "o.gz").read_bytes()).decode() == plain
    assert translate(run, "--alignments", links, text=text)[1] == plain
    assert gzip.decompress(links.read_bytes()) == align.read_bytes()
    first = (tmp_path / "o.gz").read_bytes()
    translate(run, "-o", tmp_path / "again.gz", text=text)
    assert (tmp_path / "again.gz").read_bytes() == first


def test_a_checkpoint_is_named_by_its_number(run: Path) -> None:
    assert translate(run, "--checkpoint", "3", text="1 2\n")[0] == 0
    code, _, error = translate(run, "--checkpoint", "79", text="1 2\n")
    assert code == 2
    assert "expected a checkpoint '79'" in error


def test_a_run_that_is_not_ready_says_how_to_go_on(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "a copy"))
    (copy / "best").unlink()
    code, _, error = translate(copy, text="1 2\n")
    assert code == 2
    assert f"add --checkpoint last, or go on with its training: attlas train '{copy}'" in error
    assert translate(copy, "--checkpoint", "last", text="1 2\n")[0] == 0
    (copy / "last").unlink()
    shutil.rmtree(copy / "checkpoints")
    code, _, error = translate(copy, text="1 2\n")
    assert code == 2
    assert f"train it: attlas train '{copy}'" in error


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_alignments_do_not_stand_among_the_translations(run: Path, output: tuple[str, ...]) -> None:
    code, out, error = translate(run, "--alignments", "-", *output, text="1 2\n")
    assert (code, out) == (2, "")
    assert "got the standard output twice; write to another file" in error


def test_alignments_alone_go_to_the_standard_output(run: Path, tmp_path: Path) -> None:
    text = "1 2 3\n\n4 5\n"
    translate(run, "--alignments", tmp_path / "align", text=text)
    code, out, error = translate(run, "-o", tmp_path / "out", "--alignments", "-", text=text)
    assert code == 0, error
    assert out == (tmp_path / "align").read_text(encoding="utf-8")


def test_alignments_are_not_written_over_the_text_that_is_read(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("1 2 3\n", encoding="utf-8")
    (tmp_path / "link").hardlink_to(path)
    for name in ("text", "link"):
        code, _, error = translate(run, "-i", path, "--alignments", tmp_path / name)
        assert code == 2
        assert "expected different files to read and to write" in error
    assert path.read_text(encoding="utf-8") == "1 2 3\n"


LONG = "1 2 3 4 5 6 7 0 1"  # one token more than eight times the one of the training


def trained_on_single_words(run: Path, folder: Path) -> Path:
    """A copy of a run whose recipe says that no text of the training had more than one token."""
    copied = Path(shutil.copytree(run, folder))
    tables = Run(run).config
    tables["batching"]["max_length"] = 1
    (copied / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    return copied


def test_a_line_far_longer_than_those_of_the_training_is_reported_before_it_is_translated(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise AttlasError("a translation", "none", "stop here")

    copied, text = trained_on_single_words(run, tmp_path / "run"), tmp_path / "text"
    text.write_text(f"1\n{LONG[:-2]}\n\n{LONG}\n", encoding="utf-8")
    monkeypatch.setattr(Translator, "stream", stop)
    code, _, error = translate(copied, "-i", text)
    assert code == 2
    long, last = error.splitlines()
    assert long == (
        "attlas: line 4: 9 tokens, where training had at most 1. This takes long, and the lines "
        "around it wait. To read only the first tokens of each line, add --set "
        "decoding.max_source_length=1"
    )
    assert "stop here" in last


def test_a_window_that_takes_long_is_reported_while_it_is_translated(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Translator.stream

    def slow(*arguments: Any, **options: Any) -> Iterator[Any]:
        time.sleep(0.5)
        return stream(*arguments, **options)

    monkeypatch.setattr(Translator, "stream", slow)
    monkeypatch.setattr(_output, "_GLANCE", 0.05)
    monkeypatch.setattr(_output, "_FIRST", 0.1)
    text = tmp_path / "text"
    text.write_text("a b\nb a\n", encoding="utf-8")
    code, output, error = translate(run, "-i", text, "--window", "1")
    assert (code, output.count("\n")) == (0, 2)
    assert "attlas: translating line 1: 0 of 1 line, 0 s so far\n" in error
    assert "attlas: translating line 2: 0 of 1 line, 0 s so far\n" in error
    code, _, error = translate(run, text, "--into", tmp_path / "into")
    assert code == 0
    assert f"attlas: {text}: 0 of 2 lines, 0 s so far\n" in error


@pytest.mark.parametrize(
    ("batching", "said"),
    [
        (3, "expected a table [batching] in"),
        ({"max_length": "x"}, "config.toml: a whole number; got 'x'"),
    ],
)
def test_a_recipe_that_was_changed_by_hand_is_read_as_such(
    run: Path, tmp_path: Path, batching: object, said: str
) -> None:
    copied = Path(shutil.copytree(run, tmp_path / "run"))
    tables = {**Run(run).config, "batching": batching}
    (copied / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    code, out, error = translate(copied, text="1 2\n")
    assert (code, out) == (2, "")
    assert said in error


def test_a_long_line_is_reported_with_its_number_also_of_a_file_and_not_where_it_is_cut(
    run: Path, tmp_path: Path
) -> None:
    copied, text = trained_on_single_words(run, tmp_path / "run"), tmp_path / "text"
    text.write_text(f"1\n2\n{LONG}\n", encoding="utf-8")
    error = translate(copied, "-i", text, "--window", 2)[2]
    assert "attlas: line 3: 9 tokens, where" in error
    error = translate(copied, text, "--into", tmp_path / "out", "--window", 2)[2]
    assert f"attlas: {text}: line 3: 9 tokens, where" in error
    assert "9 tokens" not in translate(run, "-i", text)[2]
    error = translate(copied, "-i", text, "--set", "decoding.max_source_length=1")[2]
    assert "9 tokens" not in error
    assert "line 3: The text is longer than this model is set to read" in error


def test_a_prefix_begins_every_translation_but_those_of_empty_lines(
    run: Path, tmp_path: Path
) -> None:
    text = "1 2 3\n\n4 5\n"
    code, out, error = translate(run, "--prefix", "3 2", text=text)
    assert code == 0, error
    first, second, third, _ = out.split("\n")
    assert first.startswith("3 2")
    assert (second, third.startswith("3 2")) == ("", True)
    (tmp_path / "text").write_text(text, encoding="utf-8")
    into = (run, tmp_path / "text", "--into", tmp_path / "out")
    assert translate(*into, "--prefix", "3 2")[0] == 0
    assert (tmp_path / "out" / "text").read_text(encoding="utf-8") == out
    code, _, error = translate(*into, "--prefix", "3")
    assert (code, "; got prefix = 3" in error) == (2, True)
    code, _, error = translate(run, "--prefix", "never heard", text=text)
    assert (code, "expected a prefix of words that the model can write" in error) == (2, True)


def test_names_that_a_model_has_not_learnt_are_taken_over_from_the_source(
    recipe: Path, tmp_path: Path
) -> None:
    names = [f"N{n}" for n in range(60)]
    pairs = [f"my name is {name}\tich heiße {name}\n" for name in names]
    (tmp_path / "train.tsv").write_text("".join(pairs), encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("".join(pairs[:3]), encoding="utf-8")
    rest = recipe.read_text(encoding="utf-8").partition("[vocabulary]")
    table = '[data]\nkind = "files"\ntrain = "train.tsv"\nvalid = "valid.tsv"\n\n'
    text = table + "".join(rest[1:]).replace("size = 64", "size = 9").replace(
        "max_steps = 3", "max_steps = 60\nlearning_rate = 2e-2"
    )
    (tmp_path / "names.toml").write_text(text, encoding="utf-8")
    folder = tmp_path / "names"
    code, _, error = called("train", tmp_path / "names.toml", "--out", folder)
    assert code == 0, error
    lines = "my name is Zoë\nmy name is O’Hara\n"
    kept = translate(folder, text=lines)[1]
    assert kept == "ich heiße <unk>\n" * 2
    replace = ("--set", "decoding.unknown=replace")
    code, out, error = translate(folder, *replace, text=lines)
    config = DecodingConfig.read({**Run(folder).table("decoding"), "unknown": "replace"}, "")
    translator = Translator(folder, config)
    expected = []
    for line in lines.splitlines():
        trace = translator(line).trace
        assert trace is not None
        (layer,) = trace
        weights = trace[layer].weights()[0].mean(0)[2, :4]
        expected.append(f"ich heiße {line.split()[int(weights.argmax())]}\n")
    assert (code, out) == (0, "".join(expected)), error
    code, lists, error = translate(folder, *replace, "--n-best", "2", text=lines)
    texts = [line.split(" ||| ")[:2] for line in lists.splitlines()]
    assert [f"{text}\n" for _, text in texts[::2]] == expected
    assert len({*map(tuple, texts)}) == len(texts) == 4
