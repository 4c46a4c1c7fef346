"""What monitors say of the same attention: errors beside float64, and who is not there."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import watch_peers
from watch_peers import CASES, Case


@pytest.mark.parametrize("name", CASES)
def test_the_watch_is_exact(name: str) -> None:
    case = Case(30, **CASES[name])
    exact, found = case.exact(), watch_peers.watched(case)
    for statistic in exact:
        assert float(watch_peers.error(found, exact, statistic)) < 1e-5


def test_weights_are_those_of_the_fused_pass() -> None:
    for name in ("causal", "padding"):
        case = Case(30, **CASES[name])
        weights = case.logits(torch.float32).softmax(-1)
        torch.testing.assert_close(weights @ case.value, case.fused())


def test_padding_does_not_count() -> None:
    case = Case(30, causal=False, padding=0.5)
    logits = case.logits(torch.float64)
    entropy = torch.special.entr(logits.softmax(-1)).sum(-1)
    expected = (entropy[0].sum(-1) + entropy[1, :, :15].sum(-1)) / 45
    torch.testing.assert_close(case.exact()["entropy"], expected)


def test_a_peer_is_given_what_it_asks_for() -> None:
    entropy = watch_peers.of_eole(
        SimpleNamespace(compute_attention_entropy=lambda weights: weights.amax(-1).mean(-1))
    )
    case = Case(30, causal=True)
    found = entropy(case)
    assert found is not None
    assert found["entropy"].shape == (watch_peers.HEADS,)
    assert watch_peers.error(found, case.exact(), "max_logit") == "–"


@pytest.mark.parametrize("skips", [True, False])
def test_a_probe_that_skips_says_nothing(skips: bool) -> None:
    def stats(probe: Any, path: str, query: torch.Tensor, *rest: Any, **more: Any) -> None:
        if not skips:
            probe.log_tensor(f"{path}::attn_entropy", query[..., 0])
            probe.log_tensor(f"{path}::attn_logits", query, remove_inf=True)

    case = Case(30, causal=True)
    found = watch_peers.of_probe(SimpleNamespace(_compute_attn_stats_sdpa=stats))(case)
    assert (found is None) == skips
    if found is not None:
        torch.testing.assert_close(found["max_logit"], case.query.amax((0, 2, 3)))


def test_a_peer_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "probe.py").write_text("import a_module_that_nobody_has\n", encoding="utf-8")
    (tmp_path / "entropy.py").write_text(
        "def compute_attention_entropy(weights):\n    return weights.sum(-1).mean(-1)\n",
        encoding="utf-8",
    )
    peers = ["--probe", str(tmp_path / "probe.py"), "--eole", str(tmp_path / "entropy.py")]
    monkeypatch.setattr(sys, "argv", ["watch_peers.py", "--tokens", "8", "--turns", "1", *peers])
    threads = torch.get_num_threads()
    try:
        watch_peers.main()
    finally:
        torch.set_num_threads(threads)
    printed = capsys.readouterr().out
    assert "xFormers: not there" in printed
    assert "| causal | eole |" in printed
    assert "| padding | attlas.watch |" in printed
