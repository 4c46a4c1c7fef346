"""`attlas figure` and `attlas look`."""

import json
import os
import signal
import urllib.request
from pathlib import Path
from subprocess import PIPE

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from attlas.cli.main import app
from attlas.inference import Translator
from attlas.monitoring import watch
from attlas.recording import Trace
from attlas.recording.serialization import trace_checksum
from attlas.runs import Run
from attlas.training import read_recipe, train
from support.command_line import called
from support.warm_processes import WarmProcess

HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def figure(*arguments: object) -> tuple[int, str, str]:
    return called("figure", *arguments)


@pytest.fixture(scope="module")
def trace(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    path = folder / "trace.safetensors"
    code, _, error = figure(run, "1 2 3", "-o", folder / "m.png", "--save-trace", path)
    assert code == 0, error
    return path


@pytest.mark.parametrize("suffix", HEADS)
def test_a_translation_becomes_a_map(run: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map.{suffix}"
    code, out, _ = figure(run, "1 2 3", "--output", path)
    assert (code, out) == (0, f"{path}\n")
    assert path.read_bytes().startswith(HEADS[suffix])


def test_a_saved_trace_becomes_the_same_map(run: Path, trace: Path, tmp_path: Path) -> None:
    assert figure(run, "1 2 3", "-o", tmp_path / "a.svg")[0] == 0
    assert figure(trace, "-o", tmp_path / "b.svg")[0] == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_tokens_of_both_sides_stand_in_the_map(trace: Path, tmp_path: Path) -> None:
    figure(trace, "-o", tmp_path / "map.svg")
    text = (tmp_path / "map.svg").read_text(encoding="utf-8")
    loaded = Trace.load(trace)
    for token in (*loaded.source[0], *loaded.target[0]):
        assert f">{token.replace('<', '&lt;').replace('>', '&gt;')}</text>" in text


def test_a_query_that_is_not_there_is_the_callers_mistake(trace: Path, tmp_path: Path) -> None:
    code, _, error = figure(trace, "--query", 99, "-o", tmp_path / "bars.svg")
    assert code == 2
    assert "expected a target token from 0 to" in error


def test_a_layer_that_is_not_there_names_those_that_are(trace: Path, tmp_path: Path) -> None:
    code, _, error = figure(trace, "--layer", "encoder", "-o", tmp_path / "m.svg")
    assert code == 2
    assert "choose from: decoder.attention" in error


def test_a_trace_without_a_map_is_reported(tmp_path: Path) -> None:
    Trace().save(tmp_path / "t.safetensors")
    code, _, error = figure(tmp_path / "t.safetensors", "-o", tmp_path / "m.svg")
    assert code == 2
    assert error.startswith("attlas: expected ")
    assert not (tmp_path / "m.svg").exists()


@pytest.mark.parametrize("suffix", ["gif", ""])
def test_another_suffix_names_the_valid_ones_before_any_work(tmp_path: Path, suffix: str) -> None:
    code, _, error = figure(tmp_path / "no-run", "a", "-o", tmp_path / f"map.{suffix}")
    assert code == 2
    assert "expected a file name that ends in .png, .svg, .pdf" in error


def test_a_run_wants_a_text_and_a_trace_wants_none(run: Path, trace: Path, tmp_path: Path) -> None:
    code, _, error = figure(run, "-o", tmp_path / "m.png")
    assert code == 2
    assert "expected a text to read" in error
    code, _, error = figure(trace, "a text", "-o", tmp_path / "m.png")
    assert code == 2
    assert "expected no text with a trace" in error


@pytest.mark.parametrize("text", ["", " \t "])
def test_an_empty_text_is_refused_before_anything_is_translated_or_drawn(
    run: Path, trace: Path, tmp_path: Path, text: str
) -> None:
    code, out, error = figure(run, text, "-o", tmp_path / "m.png")
    assert (code, out) == (2, "")
    assert error == (
        "attlas: expected a text to read; got an empty one; write a sentence: attlas figure "
        f'{run} "a text"\n'
    )
    code, _, error = figure(trace, text, "-o", tmp_path / "m.png")
    assert (code, error.count("leave it out: a trace holds its own text")) == (2, 1)
    assert not (tmp_path / "m.png").exists()


def test_a_model_without_attention_has_nothing_to_draw(blind_run: Path, tmp_path: Path) -> None:
    code, _, error = figure(blind_run, "1 2", "-o", tmp_path / "m.png")
    assert code == 2
    assert "the model has no attention" in error
    assert not (tmp_path / "m.png").exists()


def test_inspecting_a_trace_shows_its_layers_and_tokens(trace: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", str(trace)])
    assert result.exit_code == 0
    assert "decoder.attention  weights  1 × 1 × " in result.stdout
    assert "source: 1 2 3 </s>" in result.stdout


def test_a_trace_is_inspected_whatever_its_file_is_called(trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "morning.trace"
    other.write_bytes(trace.read_bytes())
    assert called("inspect", other)[:2] == called("inspect", trace)[:2]


@pytest.mark.parametrize("option", ["--output", "--save-trace"])
def test_a_folder_that_does_not_exist_is_the_callers_mistake(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)  # where map.png goes by default
    path = tmp_path / "none" / "map.png"
    code, _, error = figure(run, "1 2", option, path)
    assert code == 2
    assert str(path) in error


def test_a_damaged_trace_is_the_callers_mistake(tmp_path: Path) -> None:
    (tmp_path / "t.safetensors").write_bytes(b"nonsense")
    code, _, error = figure(tmp_path / "t.safetensors", "-o", tmp_path / "m.png")
    assert code == 2
    assert "expected a whole trace file" in error


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "trace"])
def test_look_prints_where_it_listens_serves_and_ends_with_ctrl_c(
    kind: str, run: Path, trace: Path
) -> None:
    subject = {"run": run, "trace": trace}[kind]
    command = ("look", subject, "--port", 0, "--no-browser")
    with WarmProcess(*command, stdout=PIPE, stderr=PIPE) as process:
        url = process.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{url}api/model", timeout=60) as answer:
            reported = json.load(answer)
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
    assert reported["facts"]["name"] == subject.name
    assert reported["texts"] == (["1 2 3 </s>"] if kind == "trace" else None)
    assert process.returncode == 0
    assert error == ""


def test_of_a_trace_nothing_is_searched(trace: Path) -> None:
    code, _, error = called("look", trace, "--num-beams", 3, "--no-browser")
    assert code == 2
    assert "options that a trace has a use for; got --num-beams" in error


def test_looking_at_a_file_that_is_no_trace_says_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "m.png").write_bytes(b"\x89PNG and so on")
    code, _, error = called("look", tmp_path / "m.png", "--no-browser")
    assert code == 2
    assert "expected a trace" in error


def test_the_text_stands_beside_its_translation(run: Path, tmp_path: Path) -> None:
    _, _, error = figure(run, "1 2 3", "-o", tmp_path / "m.svg")
    assert error.splitlines()[0] == f"1 2 3 → {Translator(run)('1 2 3').text}"


def test_what_is_drawn_is_what_the_search_that_was_asked_for_found(
    run: Path, tmp_path: Path
) -> None:
    texts = [f"{i} {j} {k}" for i in range(8) for j in range(8) for k in range(8)]
    beam = Translator(run)
    greedy = Translator(run, beam.config.model_copy(update={"method": "greedy"}))
    pairs = zip(texts, beam.stream(texts, window=32), greedy.stream(texts, window=32), strict=True)
    text = next(text for text, wide, narrow in pairs if wide.text != narrow.text)
    wanted = greedy(text)
    path = tmp_path / "trace.safetensors"
    search = ("--set", "decoding.method=greedy", "--save-trace", path)
    code, _, error = figure(run, text, *search, "-o", tmp_path / "m.svg")
    assert code == 0
    assert error.splitlines()[0] == f"{text} → {wanted.text}"
    assert Trace.load(path).target == (wanted.tokens,)


def test_what_is_drawn_is_what_the_checkpoint_that_was_asked_for_looked_at(
    recipe: Path, tmp_path: Path
) -> None:
    often = ("training.max_steps=6", "training.save_every=3", "training.learning_rate=0.1")
    run = Run(train(read_recipe(recipe, often), tmp_path / "run").path)
    path = tmp_path / "trace.safetensors"
    early, *_, late = run.checkpoints()
    drawn = {}
    for name in (early, late):
        chosen = ("--checkpoint", int(name), "--save-trace", path)
        assert figure(run.path, "1 2 3", *chosen, "-o", tmp_path / "m.svg")[0] == 0
        drawn[name] = Trace.load(path)["decoder.attention"].weights()
        trace = Translator(run, checkpoint=name)("1 2 3").trace
        assert trace is not None
        assert torch.equal(drawn[name], trace["decoder.attention"].weights())
    assert not torch.equal(drawn[early][:, :, 0], drawn[late][:, :, 0])


def test_a_file_that_is_no_trace_is_called_what_it_is(run: Path, tmp_path: Path) -> None:
    picture = tmp_path / "m.png"
    picture.write_bytes(b"\x89PNG and so on")
    code, _, error = figure(picture, "-o", tmp_path / "m.svg")
    assert code == 2
    assert (
        "expected a trace, which attlas figure --save-trace wrote, or the folder of a run or of a "
        f"model; got {picture}, which is none of them" in error
    )
    checkpoint = next((run / "checkpoints").iterdir())
    for command in (["figure", str(checkpoint)], ["inspect", str(checkpoint)]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2
        assert "which is a checkpoint" in result.stderr
        assert str(run) in result.stderr.partition("name the folder of its run: ")[2]


@pytest.mark.parametrize("option", ["--output", "--save-trace"])
def test_a_missing_folder_is_reported_before_any_work(tmp_path: Path, option: str) -> None:
    path = tmp_path / "none" / "m.png"
    code, _, error = figure(tmp_path / "no-run", "a", option, path)
    assert code == 2
    assert error.startswith(f"attlas: expected to write {path}; got no folder {path.parent};")


def test_a_figure_and_its_trace_are_different_files(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.png"
    code, out, error = figure(run, "1 2", "-o", path, "--save-trace", tmp_path / "." / "m.png")
    assert (code, out) == (2, "")
    assert "expected different files to read and to write" in error
    assert not path.exists()


@pytest.mark.parametrize("option", ["--output", "--save-trace"])
def test_a_trace_is_not_written_over_by_what_is_made_of_it(
    trace: Path, tmp_path: Path, option: str
) -> None:
    named = tmp_path / "trace.svg"
    named.write_bytes(trace.read_bytes())
    beside = () if option == "--output" else ("-o", tmp_path / "m.svg")
    code, _, error = figure(named, *beside, option, named)
    assert code == 2
    assert f"got {named} twice" in error
    assert named.read_bytes() == trace.read_bytes()


@pytest.mark.parametrize("command", ["figure", "inspect"])
def test_a_trace_that_does_not_fit_together_is_the_callers_mistake(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / "t.safetensors"
    metadata = {"format": "attlas trace 2", "source": "[]", "target": "[]", "axes": "{}"}
    attention_maps = '[{"layer": 5, "form": "dense"}]'
    metadata["maps"] = attention_maps
    tensors = {"0.weights": torch.ones(1, 1, 2, 2)}
    content = json.dumps(dict(sorted(metadata.items())), ensure_ascii=False)
    save_file(tensors, path, {**metadata, "sha256": trace_checksum(tensors, content)})
    result = CliRunner().invoke(app, [command, str(path)])
    assert result.exit_code == 2
    assert f"expected 'layer' of an attention map as str; got 5 in {path}" in result.stderr


@pytest.mark.parametrize(
    "option",
    [
        ("--num-beams", 3),
        ("--set", "decoding.num_beams=3"),
        ("--checkpoint", "last"),
        ("--device", "auto"),
    ],
)
def test_what_only_a_run_has_a_use_for_is_refused_with_a_trace(
    trace: Path, tmp_path: Path, option: tuple[object, ...]
) -> None:
    code, _, error = figure(trace, "-o", tmp_path / "m.svg", *option)
    assert code == 2
    assert f"expected options that a trace has a use for; got {option[0]}; leave that out" in error
    assert not (tmp_path / "m.svg").exists()


@pytest.mark.parametrize("option", ["--output", "--save-trace"])
def test_a_place_that_cannot_be_written_is_reported_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)  # where map.png goes by default
    path = tmp_path / "there" / "m.png"
    path.mkdir(parents=True)
    command = ("figure", tmp_path / "no-run", "a", option, path)
    assert f"expected to write {path}; got a folder of that name" in called(*command)[2]
    path.rmdir()
    for _ in range(2):  # it comes by a new name, so that what stands there makes no difference
        with monkeypatch.context() as locked:
            locked.setattr(os, "access", lambda requested, _: str(requested) != str(path.parent))
            assert f"expected to write {path}; got no right to write there" in called(*command)[2]
        path.write_bytes(b"an older one")
    read_only = str(path), os.W_OK
    monkeypatch.setattr(os, "access", lambda requested, right: (str(requested), right) != read_only)
    assert "expected the folder of a run" in called(*command)[2]


def test_a_watch_file_is_drawn_as_heads_and_steps(tmp_path: Path) -> None:
    model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
    path, output = tmp_path / "watch.jsonl", tmp_path / "heads.svg"
    with watch(model, path=path) as watched:
        model(torch.randn(2, 5, 16))
        watched.step()
    code, printed, error = figure(path, "--statistic", "entropy", "-o", output)
    assert (code, printed.strip()) == (0, str(output)), error
    drawn = output.read_text(encoding="utf-8")
    assert all(f"self_attn · {head}" in drawn for head in range(4))
    assert "entropy" in drawn
    for words, expected in (
        (["--statistic", "entropies"], "a statistic among"),
        (["--vmax", "1"], "got --vmax"),
        (["a text"], "got a text"),
    ):
        code, _, error = figure(path, *words, "-o", output)
        assert code == 2
        assert expected in error
    code, _, error = figure(tmp_path / "missing.jsonl", "-o", output)
    assert code == 2
    assert error == (
        f"attlas: expected a watch file at {tmp_path / 'missing.jsonl'}; got no such file or "
        "directory; check the path\n"
    )


def test_a_statistic_is_of_a_watch_file(trace: Path, tmp_path: Path) -> None:
    code, _, error = figure(trace, "--statistic", "entropy", "-o", tmp_path / "x.png")
    assert code == 2
    assert "a watch file" in error


def test_the_architecture_of_a_run_is_drawn_from_its_settings(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.svg"
    code, printed, error = figure(run, "--architecture", "-o", output)
    assert (code, printed.strip()) == (0, str(output)), error
    model = Run(run).model()
    drawn = output.read_text(encoding="utf-8")
    assert f"{sum(p.numel() for p in model.parameters()):,} parameters" in drawn
    assert "encoder" in drawn
    assert "decoder" in drawn
    for words, expected in (
        (["a text"], "got a text"),
        (["--query", "1"], "got --query"),
        (["--num-beams", "3"], "got --num-beams"),
    ):
        code, _, error = figure(run, *words, "--architecture", "-o", output)
        assert code == 2
        assert expected in error
    code, _, error = figure(tmp_path / "missing", "--architecture", "-o", output)
    assert code == 2
    assert "missing" in error
