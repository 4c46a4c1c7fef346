"""Processes that train together: torchrun on this machine, gloo between them."""

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import attlas
from attlas._parallel import POSSIBLE
from attlas.config import read_toml, write_toml
from attlas.errors import AttlasError
from attlas.ops import linear
from attlas.ops.linear import bf16_linear
from attlas.runs import Run
from attlas.training import Recipe, read_recipe, train
from attlas.training import distributed as process_group
from attlas.training.distributed import (
    Command,
    ProcessGroup,
    device_of_rank,
    is_main_process,
    open_process_group,
)
from attlas.training.setup import join_run
from support import threads_left
from support.killed_trainings import recipe as tiny
from support.labelled_runs import reviews, tables, write_lines
from support.warm_processes import ranks

UPDATES = 24
RECIPE = """
[data]
kind = "toy"
task = "reverse"
length = [3, 8]
symbols = 12
train = 101
valid = 9

[vocabulary]
kind = "words"

[batching]
max_tokens = 128
max_length = 40

[model]
kind = "transformer"
embed_dim = 16
num_heads = 2
ffn_dim = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.2
attention_dropout = 0.1

[training]
max_steps = 24
gradient_accumulation_steps = 2
save_every = 8
log_every = 1
label_smoothing = 0.1
device = "cpu"

[training.averaging]
kind = "ema"

[training.validation]
criterion = "accuracy"
every = 10
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "small.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def one(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process with a thread group of two."""
    folder = tmp_path_factory.mktemp("one") / "run"
    train(read_recipe(recipe, ["training.threads=2"]), folder)
    return folder


def torchrun(*words: object) -> subprocess.Popen[str]:
    """`torchrun words…`, its processes and all."""
    command = [sys.executable, "-m", "torch.distributed.run", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def together(recipe: Path, folder: Path, *settings: str, processes: int = 2) -> str:
    """Train with so many processes; what they print."""
    extra = [word for setting in settings for word in ("--set", setting)]
    codes, printed = ranks(processes, "train", recipe, "--out", folder, *extra)
    assert codes == [0] * processes, printed
    return printed


def losses(folder: Path) -> list[tuple[str, int, float]]:
    """Of every update and validation, in their order."""
    return [
        (event["event"], event["update"], event["loss"])
        for event in Run(folder).events()
        if "loss" in event
    ]


def assert_learned_alike(one: Path, other: Path) -> None:
    """That every loss of training is the same to the bit, and of validation up to rounding: one
    process validates with all the cores of the thread group, the first of two with its own.
    """
    found, wanted = losses(one), losses(other)
    assert [entry for entry in found if entry[0] == "trained"] == [
        entry for entry in wanted if entry[0] == "trained"
    ]
    assert [entry[:2] for entry in found] == [entry[:2] for entry in wanted]
    assert [loss for *_, loss in found] == pytest.approx([loss for *_, loss in wanted], rel=1e-6)


def weights(folder: Path, update: int = UPDATES) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoints" / f"{update:08d}.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["training.rdrop_alpha=5.0"]], ids=["plain", "R-Drop"])
def test_two_processes_learn_what_a_thread_group_of_two_learns_to_the_bit(
    recipe: Path, tmp_path: Path, more: list[str]
) -> None:
    printed = together(recipe, tmp_path / "two", *more)
    train(read_recipe(recipe, [*more, "training.threads=2"]), tmp_path / "one")
    assert_learned_alike(tmp_path / "two", tmp_path / "one")
    assert same(weights(tmp_path / "two"), weights(tmp_path / "one"))
    assert printed.count("finished after 24 updates") == 1  # only the first process speaks


@pytest.mark.slow
def test_two_processes_multiply_in_bfloat16_as_a_thread_group_of_two_does(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def product(*given: torch.Tensor) -> torch.Tensor:
        made.append(given[0].numel())
        return bf16_linear(*given)

    monkeypatch.setattr(linear, "bf16_linear", product)
    large = ["model.embed_dim=64", "model.ffn_dim=128", "batching.max_tokens=1024"]
    more = [*large, "model.word_dropout=0.1", "training.autocast=bf16"]
    together(recipe, tmp_path / "two", *more)
    train(read_recipe(recipe, [*more, "training.threads=2"]), tmp_path / "one")
    assert made
    assert_learned_alike(tmp_path / "two", tmp_path / "one")
    assert same(weights(tmp_path / "two"), weights(tmp_path / "one"))


@pytest.mark.slow
def test_a_model_in_parts_learns_the_same_within_rounding_and_saves_whole_checkpoints(
    recipe: Path, one: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    together(recipe, folder, "training.distribution=fsdp", "training.max_steps=16")
    found, wanted = losses(folder), [entry for entry in losses(one) if entry[1] <= 16]
    assert [entry[:2] for entry in found][: len(wanted)] == [entry[:2] for entry in wanted]
    for (_, _, loss), (_, _, expected) in zip(found, wanted, strict=False):
        assert loss == pytest.approx(expected, rel=1e-5)
    parts, whole = weights(folder, 16), weights(one, 16)
    assert {n: t.shape for n, t in parts.items()} == {n: t.shape for n, t in whole.items()}
    # Any number of processes goes on from there, and so does one alone.
    together(recipe, folder, "training.distribution=fsdp", "training.max_steps=20")
    train(read_recipe(recipe, ["training.threads=2"]), folder)
    assert losses(folder)[-1][1] == UPDATES
    assert losses(folder)[-1][2] == pytest.approx(losses(one)[-1][2], rel=1e-4)


@pytest.mark.slow
def test_a_run_of_one_process_goes_on_with_two_and_with_three(
    recipe: Path, one: Path, tmp_path: Path
) -> None:
    folder, alone = tmp_path / "run", tmp_path / "alone"
    train(read_recipe(recipe, ["training.threads=2", "training.max_steps=8"]), folder)
    together(recipe, folder, "training.max_steps=16")
    assert same(weights(folder, 16), weights(one, 16))
    shutil.copytree(folder, alone)
    together(recipe, folder, processes=3)
    train(read_recipe(recipe, ["training.threads=3"]), alone)
    # Three processes add up in another order than three threads do.
    found, wanted = losses(folder), losses(alone)
    assert [entry[:2] for entry in found] == [entry[:2] for entry in wanted]
    for (_, _, loss), (_, _, expected) in zip(found, wanted, strict=True):
        assert loss == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(weights(folder), weights(alone), rtol=0, atol=1e-3)


@pytest.mark.slow
def test_two_readings_by_a_model_in_parts_teach_what_those_by_a_whole_one_do(
    recipe: Path, tmp_path: Path
) -> None:
    read_twice = ["training.rdrop_alpha=5.0", "training.max_steps=6"]
    together(recipe, tmp_path / "parts", "training.distribution=fsdp", *read_twice)
    train(read_recipe(recipe, [*read_twice, "training.threads=2"]), tmp_path / "whole")
    found, wanted = losses(tmp_path / "parts"), losses(tmp_path / "whole")
    assert [entry[:2] for entry in found] == [entry[:2] for entry in wanted]
    for (_, _, loss), (_, _, expected) in zip(found, wanted, strict=True):
        assert loss == pytest.approx(expected, rel=1e-5)


@pytest.fixture(params=["recurrent", "classifier", "muon"])
def other(request: pytest.FixtureRequest, recipe: Path, tmp_path: Path) -> Path:
    """The recipe of another model or optimizer; of eight updates, the last of which is saved."""
    begun = read_toml(recipe)
    if request.param == "muon":
        begun["training"]["optimizer"] = {"kind": "muon", "weight_decay": 0.1}
    else:
        begun["model"] = {
            "kind": "recurrent", "embed_dim": 8, "hidden_dim": 8, "encoder_hidden_dim": 8,
            "dropout": 0.2,
            "attention_dropout": 0.1, "coverage": True,
        }  # fmt: skip
    if request.param == "classifier":
        begun = tables(write_lines(tmp_path / "reviews.jsonl", reviews(120)))
    begun["training"] |= {
        "max_steps": 8,
        "log_every": 1,
        "gradient_accumulation_steps": 2,
        "threads": 1,
    }
    (tmp_path / "other.toml").write_text(write_toml(begun))
    return tmp_path / "other.toml"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_two_processes_learn_any_model_as_a_thread_group_of_two_does_to_the_bit(
    other: Path, tmp_path: Path
) -> None:
    together(other, tmp_path / "two")
    train(read_recipe(other, ["training.threads=2"]), tmp_path / "one")
    assert_learned_alike(tmp_path / "two", tmp_path / "one")
    assert same(weights(tmp_path / "two", 8), weights(tmp_path / "one", 8))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_any_model_in_parts_learns_the_same_within_rounding_and_goes_on_alone(
    other: Path, tmp_path: Path
) -> None:
    together(other, tmp_path / "two", "training.distribution=fsdp", "training.max_steps=6")
    train(read_recipe(other, ["training.max_steps=6", "training.threads=2"]), tmp_path / "one")
    parts, whole = weights(tmp_path / "two", 6), weights(tmp_path / "one", 6)
    assert {n: t.shape for n, t in parts.items()} == {n: t.shape for n, t in whole.items()}
    for folder in ("one", "two"):
        train(read_recipe(other, ["training.threads=2"]), tmp_path / folder)
    found, wanted = losses(tmp_path / "two"), losses(tmp_path / "one")
    assert [entry[:2] for entry in found] == [entry[:2] for entry in wanted]
    for (_, _, loss), (_, _, expected) in zip(found, wanted, strict=True):
        assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_batch_of_fewer_rows_than_processes_is_learned_from_all_the_same(
    recipe: Path, tmp_path: Path
) -> None:
    few = ["batching.rows=1", "training.max_steps=6", "training.validation.every=6"]
    together(recipe, tmp_path / "two", *few)
    alone = read_recipe(recipe, [*few, "training.threads=2"])
    train(alone, tmp_path / "one")
    for (_, _, loss), (_, _, expected) in zip(
        losses(tmp_path / "two"), losses(tmp_path / "one"), strict=True
    ):
        assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="only Linux tells the children of a process")
def test_a_process_that_is_killed_is_started_again_and_the_job_ends_with_the_same_bits(
    recipe: Path, one: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    process = torchrun(
        "--nproc-per-node", 2, "--max-restarts", 2, "-m", "attlas", "train", recipe, "--out", folder
    )
    for rank, update in ((0, 9), (1, 17)):
        os.kill(child(process.pid, rank, folder, update), signal.SIGKILL)
    printed = process.communicate(timeout=600)[0]
    assert process.returncode == 0, printed
    assert same(weights(folder), weights(one))
    assert printed.count("continuing after update") == 2


def child(torchrun: int, rank: int, folder: Path, update: int) -> int:
    """The process of this rank, once the training has come to this update."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        time.sleep(0.005)
        if not (folder / "metrics.jsonl").is_file() or f'"update": {update},' not in (
            folder / "metrics.jsonl"
        ).read_text(encoding="utf-8"):
            continue
        children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
        for number in map(int, children):
            variables = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
            if f"RANK={rank}".encode() in variables:
                return number
    raise AssertionError("the training did not come so far")


@pytest.mark.slow
def test_a_mistake_is_reported_as_ever_and_ends_all_processes(recipe: Path, tmp_path: Path) -> None:
    process = torchrun(
        "--nproc-per-node", 2, "-m", "attlas", "train", recipe, "--out", tmp_path / "run",
        "--set", "model.num_heads=3",
    )  # fmt: skip
    printed = process.communicate(timeout=600)[0]
    assert process.returncode != 0
    assert "attlas: expected an embed_dim that num_heads divides" in printed
    # A traceback, if there is one, is torchrun's own.
    assert f'File "{Path(attlas.__file__).parent}' not in printed


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="only Linux lists the threads of a process")
@pytest.mark.parametrize(
    ("distribution", "failing"), [("ddp", 0), ("fsdp", 0), ("ddp", 3)], ids=["ddp", "fsdp", "error"]
)
def test_no_thread_of_gloo_outlives_a_training(
    recipe: Path, tmp_path: Path, distribution: str, failing: int
) -> None:
    """One that waits for Python's lock while Python ends would end the process with SIGABRT."""
    script = Path(threads_left.__file__).read_text(encoding="utf-8")
    codes, printed = ranks(2, recipe, tmp_path / "run", distribution, failing, code=script)
    assert codes == [0, 0], printed
    lines = re.findall("^(.*); threads at work (.*); left (.*)$", printed, re.MULTILINE)
    ends = (
        ["finished", "finished"] if not failing else ["ended by AttlasError", "ended by ValueError"]
    )
    assert sorted(end for end, _, _ in lines) == ends, printed
    assert max(int(count) for _, count, _ in lines) > 0  # in the process that reports
    assert [left for _, _, left in lines] == ["[]", "[]"], printed


def test_alone_everything_is_as_without_a_fleet() -> None:
    process_group = ProcessGroup()
    assert process_group.is_main
    assert process_group.all_reduce(2.5) == 2.5
    assert process_group.broadcast(7) == 7
    process_group.send(Command.UPDATE)
    with open_process_group(torch.device("cpu")) as found:
        assert found.size == 1


def test_the_first_process_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_main_process()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert not is_main_process()
    monkeypatch.setenv("RANK", "0")
    assert is_main_process()


def test_each_process_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert device_of_rank(torch.device("cuda")) == torch.device("cuda:3")
    assert device_of_rank(torch.device("cuda:1")) == torch.device("cuda:1")
    assert device_of_rank(torch.device("cpu")) == torch.device("cpu")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(AttlasError, match=r"'cuda:1' for all 4 of them; set .* = 'cuda', by which"):
        device_of_rank(torch.device("cuda:1"))


def test_more_processes_than_gpus_are_an_error_that_says_how_many_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, value in (("LOCAL_RANK", "2"), ("LOCAL_WORLD_SIZE", "4")):
        monkeypatch.setenv(name, value)
    with pytest.raises(AttlasError, match=r"got 4 processes and 2 GPUs; .*--nproc-per-node 2 "):
        device_of_rank(torch.device("cuda"))
    assert device_of_rank(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        (
            {"gradient_accumulation_steps": 3},
            r"training\.gradient_accumulation_steps = 3 instead of 2; give the same recipe",
        ),
        ({"distribution": "fsdp"}, r"training\.distribution = 'fsdp' instead of 'ddp'"),
    ],
)
def test_a_process_with_another_recipe_than_the_first_is_refused(
    tmp_path: Path, settings: dict[str, Any], reported: str
) -> None:
    train(tiny(1), tmp_path)
    assert join_run(tiny(1, threads=1, log_every=7), tmp_path).recipe.training.log_every == 7
    with pytest.raises(AttlasError, match=reported):
        join_run(tiny(1, **settings), tmp_path)


def test_a_process_works_on_its_own_gpu_before_it_meets_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)  # so that they never meet
    for device in ("cuda:1", "cpu"):
        with (
            pytest.raises(AttlasError, match="expected 2 processes"),
            open_process_group(torch.device(device)),
        ):
            raise AssertionError("they met")
    assert chosen == [torch.device("cuda:1")]


def test_a_torch_without_processes_that_reach_each_other_trains_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("distributed_c10d", "rendezvous"):
        monkeypatch.setitem(sys.modules, f"torch.distributed.{name}", None)
    afresh = runpy.run_path(process_group.__file__)  # what every recipe imports
    with afresh["open_process_group"](torch.device("cpu")) as alone:
        assert alone.all_reduce(2.5) == 2.5
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(AttlasError, match=r"without torch\.distributed .* train with one process"),
        afresh["open_process_group"](torch.device("cpu")),
    ):
        raise AssertionError("they met")


def test_the_standard_input_cannot_be_shared(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    table: dict[str, Any] = read_recipe(recipe).tables()
    table["data"] = {"kind": "files", "train": "-", "valid": "valid.tsv"}
    with pytest.raises(AttlasError, match="the standard input, which comes once; name files"):
        train(Recipe.read(json.loads(json.dumps(table)), "the test"), tmp_path / "run")


def test_processes_that_cannot_meet_are_an_error_that_says_how_to_start_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with (
        pytest.raises(AttlasError, match="start them with torchrun"),
        open_process_group(torch.device("cpu")),
    ):
        raise AssertionError("they met")
