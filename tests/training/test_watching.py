"""`[training.watch]`: the attention of a training, in watch.jsonl."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import attlas
from attlas.config import write_toml
from attlas.errors import AttlasError
from attlas.monitoring import read_history
from attlas.runs import Run
from attlas.training import Recipe, train
from attlas.training.events import Event, Watched

UPDATES = 8


def recipe(kind: str = "transformer", updates: int = UPDATES, **training: Any) -> Recipe:
    models = {
        "transformer": {
            "kind": "transformer", "embed_dim": 16, "num_heads": 2, "ffn_dim": 32,
            "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.2, "attention_dropout": 0.1,
        },
        "recurrent": {
            "kind": "recurrent", "embed_dim": 8, "hidden_dim": 8, "encoder_hidden_dim": 8,
            "dropout": 0.2,
        },
    }  # fmt: skip
    return Recipe.read(
        {
            "data": {"kind": "toy", "length": [2, 6], "symbols": 8, "train": 60, "valid": 6},
            "vocabulary": {"kind": "words"},
            "batching": {"max_tokens": 96, "max_length": 16},
            "model": models[kind],
            "training": {
                "max_steps": updates, "device": "cpu", "threads": 1, "save_every": 4,
                "gradient_accumulation_steps": 2, "log_every": 2,
                "validation": {"translate": False, "every": 50}, **training,
            },
        },
        "the test",
    )  # fmt: skip


WATCHED: dict[str, Any] = {"watch": {"every": 2}}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoints" / f"{UPDATES:08d}.safetensors")


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@pytest.mark.parametrize("more", [{}, {"rdrop_alpha": 2.0}, {"threads": 2}], ids=str)
def test_a_watched_training_learns_the_same_bits(
    tmp_path: Path, kind: str, more: dict[str, Any]
) -> None:
    train(recipe(kind, **more), tmp_path / "plain")
    train(recipe(kind, **more, **WATCHED), tmp_path / "watched")
    plain, watched = weights(tmp_path / "plain"), weights(tmp_path / "watched")
    assert plain.keys() == watched.keys()
    assert all(torch.equal(plain[name], watched[name]) for name in plain)
    assert not (tmp_path / "plain" / "watch.jsonl").exists()
    records = read_history(tmp_path / "watched" / "watch.jsonl")
    assert [record["step"] for record in records] == [1, 2, 4, 6, 8]
    layers = {head["layer"] for head in records[0]["heads"]}
    assert len(layers) == (3 if kind == "transformer" else 1)


def test_queries_of_padding_do_not_count(tmp_path: Path) -> None:
    """Each token of the target, with the end, is predicted by one query of each layer."""
    seen: list[Event] = []
    train(recipe(**WATCHED), tmp_path, report=seen.append)
    run = Run(tmp_path)
    assert run.events()[0]["event"] == "started"
    readings = [event.reading for event in seen if isinstance(event, Watched)]
    for reading in readings:
        by_layer = {head.layer: head.queries for head in reading.heads}
        decoder = {count for layer, count in by_layer.items() if layer.startswith("decoder")}
        assert len(decoder) == 1
        # A reversed text is as long as its source, which has an end, too.
        assert decoder == {count for layer, count in by_layer.items() if "encoder" in layer}


def test_scheduled_sampling_reads_the_same_queries(tmp_path: Path) -> None:
    """Its decoder goes step by step, and the steps of padding do not count."""
    for name, probability in (("forced", 1.0), ("sampled", 0.5)):
        sampling = {"kind": "constant", "p": probability}
        train(recipe("recurrent", scheduled_sampling=sampling, **WATCHED), tmp_path / name)
    counts = [
        [
            head["queries"]
            for r in read_history(tmp_path / name / "watch.jsonl")
            for head in r["heads"]
        ]
        for name in ("forced", "sampled")
    ]
    assert counts[0] == counts[1]


def test_a_run_that_goes_on_has_the_file_of_an_undisturbed_one(tmp_path: Path) -> None:
    """Also of what a kill wrote after the last checkpoint, and of alarms that went on."""
    watch = {"watch": {"every": 1, "max_logit": 0.3}}
    train(recipe(**watch), tmp_path / "whole")
    train(recipe(updates=5, **watch), tmp_path / "parts")
    path = tmp_path / "parts" / "watch.jsonl"
    with path.open("ab") as file:
        file.write(b'{"step": 6, "alarms": [], "heads": []}\n{"st')
    seen: list[Event] = []
    train(recipe(**watch), tmp_path / "parts", report=seen.append)
    whole = (tmp_path / "whole" / "watch.jsonl").read_bytes()
    assert path.read_bytes() == whole
    assert any(record["alarms"] for record in read_history(path))


def test_the_settings_of_a_watch_may_change_between_sessions(tmp_path: Path) -> None:
    train(recipe(updates=3), tmp_path)
    train(recipe(updates=6, **WATCHED), tmp_path)
    train(recipe(updates=8), tmp_path)
    assert [record["step"] for record in read_history(tmp_path / "watch.jsonl")] == [4, 6]


def test_alarms_are_reported_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from attlas.training.progress import Progress

    with Progress() as report:
        train(recipe(watch={"every": 4, "max_logit": 1e-3}), tmp_path, report=report)
    printed = capsys.readouterr().err
    (line,) = [line for line in printed.splitlines() if "the largest attention score" in line]
    assert line.startswith("WARNING: step 1, layer '")
    assert "; the same in 'encoder.layers.0.self_attention' head" in line


def test_thresholds_without_a_reading_are_an_error_of_the_recipe() -> None:
    with pytest.raises(AttlasError, match=r"training\.watch\.every.*max_logit alone"):
        recipe(watch={"max_logit": 3.0})


def test_a_wrong_threshold_is_an_error_of_the_recipe() -> None:
    with pytest.raises(AttlasError, match=r"training\.watch\.min_entropy"):
        recipe(watch={"every": 4, "min_entropy": 3})
    assert "[training.watch]" in write_toml(recipe().tables())
    assert attlas.training.TrainingConfig(max_steps=1).watch.every is None
