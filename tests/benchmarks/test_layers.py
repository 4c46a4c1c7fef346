"""The layers that are measured compute what they are said to, and every case gets its figures."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import cases  # noqa: E402
from cases import MARK, PASSES, Work, _peak_of, check, contend, played, table  # noqa: E402
from layers_suites import SUITES  # noqa: E402
from turns import Turns  # noqa: E402

EVERY = [(name, one) for name, suite in SUITES.items() for one in suite.contenders]
BY_HAND = "v · tanh(W q + U k) by hand"
TINY = replace(SUITES["dot"], quick=((1, 2, 4, 8), (2, 1, 3, 4)), more=())


@pytest.mark.parametrize(("name", "contender"), EVERY)
def test_a_contender_computes_the_formula_and_its_gradients(name: str, contender: str) -> None:
    suite = SUITES[name]
    check(suite, contender)
    shape = suite.quick[0]
    ours, formula = suite.contenders[contender](shape), suite.formula(shape)
    assert ours.once(PASSES[0])().shape == ours.once(PASSES[1])().shape
    if contender in suite.others:
        assert not torch.allclose(ours.forward(), formula.forward(), rtol=1e-4, atol=1e-4)
        return
    for found, expected in zip(gradients(ours), gradients(formula), strict=False):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def gradients(work: Work) -> list[Tensor]:
    """Those of the inputs, which all of a suite have, and then those of its own weights."""
    out = work.run()
    return list(
        torch.autograd.grad(out, work.leaves, torch.linspace(0, 1, out.numel()).view_as(out))
    )


def test_a_contender_that_computes_something_else_is_found_out() -> None:
    def wrong(shape: tuple[int, ...]) -> Work:
        work = TINY.formula(shape)
        return Work(lambda: work.run() + 0.01, work.leaves)

    suite = replace(TINY, contenders={"wrong": wrong})
    with pytest.raises(AssertionError, match="not close"):
        check(suite, "wrong")
    check(replace(suite, others=("wrong",)), "wrong")


def test_a_contender_answers_every_block_with_the_speed_of_its_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("0\n1\n2\n3\n4\n5\n"))
    monkeypatch.setattr(sys, "stdout", answers)
    contend(TINY, "attlas.scaled_dot_product_attention", quick=True, seconds=1e-9)
    ready, warm, *speeds = (json.loads(line) for line in answers.getvalue().splitlines())
    assert (ready, warm) == ("ready", 0.0)
    assert len(speeds) == 5
    assert all(speed > 0 for speed in speeds)


def test_every_case_gets_its_own_blocks_and_a_line_for_each_contender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells, blocks = TINY.cells(quick=True), 3
    lost = "softmax(q kᵀ) v by hand"

    def turns(commands: dict[str, list[str]], count: int) -> Turns:
        assert list(commands) == list(TINY.contenders)
        assert count == blocks * len(cells)
        figures = {name: [1.0 + n for n in range(count)] for name in commands if name != lost}
        return Turns(figures, {lost: "no memory"})

    monkeypatch.setattr(cases, "turns", turns)
    settings = {"quick": True, "blocks": blocks, "seconds": 0.1}
    found: list[dict[str, Any]] = played("layers", "dot", TINY, 1, **settings)
    assert [(tuple(one["shape"]), one["pass"]) for one in found] == cells
    for place, one in enumerate(found, start=1):
        first, other, gone = one["contenders"]
        assert first["blocks"] == other["blocks"] == [place, place + 4, place + 8]
        assert gone == {"name": lost, "lost": "no memory"}
    text = table(found)
    for name in TINY.contenders:
        assert text.count(f"| {name} |") == len(cells)


@pytest.mark.slow
@pytest.mark.skipif(not MARK.exists(), reason="only Linux tells of a process's peak")
def test_a_peak_is_what_one_pass_adds() -> None:
    command = [sys.executable, str(BENCHMARKS / "layers_speed.py"), "--threads", "1"]
    commands = {BY_HAND: [*command, "--contender", "additive", BY_HAND]}
    most = _peak_of(commands, BY_HAND, (64, 32, 32), PASSES[0])
    assert most is not None
    assert most > 64 * 32 * 32 * 256 * 4 / 2**20  # a tensor of every pair, and one beside it
    assert _peak_of(commands, BY_HAND, (64, 32), PASSES[0]) is None  # which is no shape of it
