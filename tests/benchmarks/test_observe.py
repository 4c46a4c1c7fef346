"""What is measured of observing computes what it is said to."""

import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import observe_exact  # noqa: E402
import observe_maps  # noqa: E402
from observe_generation import GENERATIONS  # noqa: E402
from observe_maps import HAND, HELD, MAPS  # noqa: E402
from observe_models import MODELS  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_observed_says_the_same(name: str) -> None:
    suite, shape = MODELS[name], (2, 9)
    observed, plain = (suite.contenders[one](shape) for one in ("observed", "not observed"))
    if name != "nn.TransformerEncoder":  # which leaves its inference fast path
        assert torch.equal(observed.forward(), plain.forward())
    torch.testing.assert_close(observed.run(), plain.run(), rtol=0, atol=0)
    for make in suite.contenders.values():
        torch.testing.assert_close(make(shape).forward(), plain.forward(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", GENERATIONS)
def test_a_generation_that_is_observed_writes_the_same(name: str) -> None:
    every = GENERATIONS[name].contenders
    observed, plain = (every[one]((2, 5)).forward() for one in ("observed", "not observed"))
    translates = name.endswith(("BART", "T5"))
    assert observed.shape == (2, 6 if translates else 133)
    assert torch.equal(observed, plain)


@pytest.mark.parametrize("name", ["summary", "causal summary"])
def test_a_reading_says_of_a_map_what_the_held_matrix_says(name: str) -> None:
    suite, shape = MAPS[name], (1, 2, 300, 16)
    attention_map, held = (
        suite.contenders[one](shape).forward() for one in ("attention_map.summary()", HELD)
    )
    torch.testing.assert_close(attention_map, held, rtol=1e-4, atol=1e-4)
    assert suite.contenders[HAND](shape).forward().shape == shape


def test_an_overview_is_the_held_matrix_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe_maps, "CELLS", 16)
    suite, shape = MAPS["overview"], (1, 2, 64, 8)
    held = suite.formula(shape).forward()
    assert held.shape == (1, 2, 16, 16)
    torch.testing.assert_close(suite.contenders["attention_map.pool()"](shape).forward(), held)
    zoomed = MAPS["very long"].contenders["attention_map.pool(), zoomed"](shape).forward()
    assert zoomed.shape == held.shape


def test_the_script_that_compares_a_long_map_sees_a_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["observe_exact.py", "--length", "1024", "--places", "2"])
    observe_exact.main()
    assert "a window, zoomed in: " in capsys.readouterr().out
    exact = observe_exact.rows
    monkeypatch.setattr(observe_exact, "rows", lambda *requested: exact(*requested).float() * 1.001)
    with pytest.raises(SystemExit, match="expected at most 1e-05"):
        observe_exact.main()
