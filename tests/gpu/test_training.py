"""Trainings and searches on a GPU: as on the CPU, and as each other."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.decoding import DecodingConfig
from attlas.inference import TextClassifier, Translator
from attlas.runs import Run
from attlas.training import Recipe, read_recipe, train
from support.labelled_runs import reviews, tables, write_lines

MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "kind": "transformer", "embed_dim": 64, "num_heads": 2, "ffn_dim": 128, "encoder_layers": 2,
        "decoder_layers": 2, "dropout": 0.0,
    },
    "rotary": {
        "kind": "transformer", "embed_dim": 64, "num_heads": 4, "num_kv_heads": 2, "ffn_dim": 128,
        "encoder_layers": 2, "decoder_layers": 2, "positions": "rotary", "norm": "pre",
        "norm_type": "rms", "activation": "swiglu", "dropout": 0.0,
        "encoder_patterns": ["window(3)", "everywhere"],
    },
    "additive": {"kind": "recurrent", "embed_dim": 32, "hidden_dim": 64, "encoder_hidden_dim": 32,
                 "dropout": 0.0},
    "luong": {"kind": "recurrent", "embed_dim": 32, "hidden_dim": 64, "encoder_hidden_dim": 32,
              "dropout": 0.0, "attention": "general", "decoder": "luong", "cell": "lstm"},
    "local": {"kind": "recurrent", "embed_dim": 32, "hidden_dim": 64, "encoder_hidden_dim": 32,
              "dropout": 0.0, "attention": "local", "decoder": "luong"},
    "none": {"kind": "recurrent", "embed_dim": 32, "hidden_dim": 64, "encoder_hidden_dim": 32,
             "dropout": 0.0, "attention": "none"},
}  # fmt: skip


def recipe(model: dict[str, Any], updates: int = 60, **training: Any) -> Recipe:
    """Sequences that are to be turned round."""
    return Recipe.read(
        {
            "seed": 3,
            "data": {
                "kind": "toy", "length": [1, 9], "symbols": 12, "train": 2000, "valid": 40,
                "test": 1,
            },
            "vocabulary": {"kind": "words", "size": 32},
            "batching": {"max_tokens": 512, "max_length": 16},
            "model": model,
            "training": {
                "max_steps": updates, "device": "cuda", "log_every": 5, "learning_rate": 3e-3,
                "tf32": False,
                "validation": {"every": 30, "translate": False, "decoding": {
                    "max_len_a": 1.0}},
                **training,
            },
        },
        "the test",
    )  # fmt: skip


def losses(folder: Path) -> list[float]:
    """Of training and validation, in order."""
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    return [event["loss"] for event in map(json.loads, lines) if "loss" in event]


@pytest.mark.parametrize("name", MODELS)
def test_a_training_on_a_gpu_learns_as_one_on_the_cpu(name: str, tmp_path: Path) -> None:
    for device in ("cuda", "cpu"):
        train(recipe(MODELS[name], device=device), tmp_path / device)
    there, here = losses(tmp_path / "cuda"), losses(tmp_path / "cpu")
    assert len(there) == len(here) >= 14
    # Rounding differs, and so little by little the weights.
    torch.testing.assert_close(torch.tensor(there), torch.tensor(here), rtol=0.02, atol=0.02)
    assert there[-1] < 0.9 * there[0]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("name", MODELS)
def test_a_run_translates_on_a_gpu_as_on_the_cpu(name: str, method: str, tmp_path: Path) -> None:
    train(recipe(MODELS[name], 30), tmp_path / "run")
    requested = {"method": method, **({"num_beams": 4, "n_best": 2} if method == "beam" else {})}
    there, here = (
        Translator(tmp_path / "run", DecodingConfig.model_validate(requested), device=device)
        for device in ("cuda", "cpu")
    )
    texts = ["3 1 4 1 5", "", "9 2 6 5 3 5 8 9", "7"] * 5
    ours, theirs = list(there.stream(texts)), list(here.stream(texts))
    if method == "sample":  # each device draws its own
        assert len(ours) == len(theirs)
        return
    assert [one.text for one in ours] == [one.text for one in theirs]
    scores = ([one.score for one in found] for found in (ours, theirs))
    torch.testing.assert_close(*map(torch.tensor, scores), atol=1e-3, rtol=1e-3)
    if name != "none":
        for one, other in zip(ours[:1], theirs[:1], strict=True):
            assert one.trace is not None
            assert other.trace is not None
            assert tuple(one.trace) == tuple(other.trace)
            for layer in one.trace:
                looked, should = (each.trace[layer].weights().cpu() for each in (one, other))
                torch.testing.assert_close(looked, should, atol=1e-4, rtol=0)


HALF = ["fp16", *["bf16", "auto"] * torch.cuda.is_bf16_supported(False)]


@pytest.mark.parametrize("autocast", HALF)
@pytest.mark.parametrize("name", ["transformer", "additive", "luong"])
def test_half_precision_learns_and_searches(name: str, autocast: str, tmp_path: Path) -> None:
    train(recipe(MODELS[name], autocast=autocast), tmp_path / "half")
    train(recipe(MODELS[name]), tmp_path / "whole")
    half, whole = losses(tmp_path / "half"), losses(tmp_path / "whole")
    assert abs(half[-1] - whole[-1]) < 0.1 * whole[0]
    number = "bf16" if autocast == "auto" else autocast
    config = DecodingConfig.model_validate({"autocast": number, "method": "greedy"})
    found = Translator(tmp_path / "half", config, device="cuda").stream(["3 1 4 1 5", "9 2 6"])
    assert all(one.tokens for one in found)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(
    optimizer: str, tmp_path: Path
) -> None:
    expected = {**MODELS["transformer"], "dropout": 0.1}
    plan = recipe(expected, 40, optimizer={"kind": optimizer}, averaging={"kind": "ema"})

    def stopped(event: object) -> None:
        if getattr(event, "update", 0) == 20:
            raise KeyboardInterrupt

    train(plan, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(plan, tmp_path / "half", report=stopped)
    train(plan, tmp_path / "half")
    torch.testing.assert_close(losses(tmp_path / "half")[-1], losses(tmp_path / "whole")[-1])
    one, other = (Run(tmp_path / name).model("last").state_dict() for name in ("whole", "half"))
    for name, weights in one.items():
        torch.testing.assert_close(other[name], weights, atol=1e-4, rtol=1e-4)


def test_the_shipped_recipe_trains_on_a_gpu(tmp_path: Path) -> None:
    few = {"max_steps": 20, "device": "cuda", "schedule": {"kind": "constant"}}
    tables = read_recipe("demo").tables()
    tables["training"] = {**tables["training"], **few}
    train(Recipe.read(tables, "the test"), tmp_path / "run")
    assert Translator(tmp_path / "run", device="cuda")("The cat is sleeping.").text is not None


def test_a_classifier_on_a_gpu_learns_and_answers_as_on_the_cpu(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "reviews.jsonl", reviews(400))
    plan = Recipe.read(tables(lines, max_steps=60, device="cuda"), "the test")
    train(plan, tmp_path / "run")
    there, here = (TextClassifier(tmp_path / "run", device=name) for name in ("cuda", "cpu"))
    texts = [one["text"] for one in reviews(20, seed=7)]
    for one, other in zip(there.stream(texts), here.stream(texts), strict=True):
        assert one.label == other.label
        for layer in one.trace:
            looked, should = (each.trace[layer].weights().cpu() for each in (one, other))
            torch.testing.assert_close(looked, should, atol=1e-4, rtol=0)
