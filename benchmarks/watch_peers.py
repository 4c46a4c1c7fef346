"""What `attlas.watch` and two other monitors say of the same attention: errors and costs.

python benchmarks/watch_peers.py
python benchmarks/watch_peers.py --eole attention_entropy.py --probe probe.py

One attention of random queries and keys, of which each head is more peaked than the one before, in
float32. The mean entropy and the largest logit of each head are compared with float64, in which
every query that the padding leaves counts once. The largest difference of a head is printed.

eole     `compute_attention_entropy` of eole (`eole/utils/attention_entropy.py`), given the weights
         of attention as eole's layers return them; imported where eole is installed
xFormers `_compute_attn_stats_sdpa` of the probe of xFormers, an example of its repository that
         projects copy (`lingua/probe.py` of facebookresearch/lingua), and which imports xformers

A peer that is not there is left out, and the table says so. The cost is CPU time beside one fused
pass of the same attention, which is 1: what is added to it. eole's needs the weights, so that its
cost is that of attention with weights and its function, less the fused pass.
"""

import argparse
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import attlas

BATCH, HEADS, WIDTH = 2, 8, 64
Found = dict[str, Tensor]  # a number of each head, by the name of the statistic
Work = Callable[["Case"], Found | None]


class Monitor(NamedTuple):
    """What it finds, and whether the work has a pass of attention in it."""

    work: Work
    passes: int


class Case:
    """One attention.

    Args:
        padding: The share of the second text that is hidden.
    """

    def __init__(
        self, tokens: int, causal: bool, padding: float = 0.0, dropout: float = 0.0
    ) -> None:
        chance = torch.Generator().manual_seed(0)
        sizes = BATCH, HEADS, tokens, WIDTH
        peaked = 2 ** (torch.arange(HEADS) / 2)[:, None, None]
        self.query = peaked * torch.randn(sizes, generator=chance)
        self.key, self.value = (torch.randn(sizes, generator=chance) for _ in range(2))
        self.causal, self.dropout = causal, dropout
        self.is_token = torch.ones(BATCH, tokens, dtype=torch.bool)
        if padding:
            self.is_token[1, -int(padding * tokens) :] = False
        self.mask = None if not padding else self.is_token[:, None, None]

    def fused(self) -> Tensor:
        """As a model calls it."""
        output: Tensor = F.scaled_dot_product_attention(
            self.query, self.key, self.value, self.mask, self.dropout, is_causal=self.causal
        )
        return output

    def logits(self, dtype: torch.dtype) -> Tensor:
        """−∞ where a key is hidden."""
        scores: Tensor = self.query.to(dtype) @ self.key.to(dtype).mT / WIDTH**0.5
        if self.causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -torch.inf)
        return scores

    def exact(self) -> Found:
        """In float64."""
        logits = self.logits(torch.float64)
        entropy = torch.special.entr(logits.softmax(-1)).sum(-1)
        counts = self.is_token[:, None].expand_as(entropy)
        of_heads = [entropy[:, head][counts[:, head]].mean() for head in range(HEADS)]
        largest = logits.masked_fill(~counts[..., None], -torch.inf)
        return {"entropy": torch.stack(of_heads), "max_logit": largest.amax((0, 2, 3))}


CASES: dict[str, dict[str, Any]] = {
    "causal": {"causal": True},
    "padding": {"causal": False, "padding": 1 / 3},
    "causal, dropout 0.1": {"causal": True, "dropout": 0.1},
}


# What each says; None: nothing.


class _Attention(nn.Module):
    def forward(self, case: Case) -> Tensor:
        return case.fused()


def watched(case: Case) -> Found | None:
    """By `attlas.watch`."""
    with attlas.watch(_Attention(), every=1, on_alarm=None) as watch:
        with watch.forward(token_mask=case.is_token):
            watch.model(case)
        reading = watch.step()
    if reading is None:
        return None
    names = "entropy", "max_logit"
    return {name: torch.tensor([getattr(h, name) for h in reading.heads]) for name in names}


def of_eole(module: Any) -> Work:
    """By eole's function, of weights before dropout."""

    def found(case: Case) -> Found:
        weights = case.logits(torch.float32).softmax(-1)
        F.dropout(weights, case.dropout) @ case.value
        return {"entropy": module.compute_attention_entropy(weights).mean(0)}

    return found


def of_probe(module: Any) -> Work:
    """By the function of xFormers' probe."""

    def found(case: Case) -> Found | None:
        store: dict[str, Tensor] = {}
        probe = SimpleNamespace(store={}, log_tensor=lambda name, x, **_: store.update({name: x}))
        module._compute_attn_stats_sdpa(
            probe, "", case.query, case.key, case.value,
            attn_mask=case.mask, dropout_p=case.dropout, is_causal=case.causal,
        )  # fmt: skip
        if not store:
            return None
        entropy, logits = store["::attn_entropy"], store["::attn_logits"]
        return {"entropy": entropy.mean((0, 2)), "max_logit": logits.amax((0, 2, 3))}

    return found


def loaded(path: Path | None, name: str) -> ModuleType | None:
    """The module in a file, or of this name; None where there is none, or where it has no module
    that it needs.
    """
    try:
        if path is None:
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


# Errors and costs.


def error(found: Found | None, exact: Found, name: str) -> str:
    """The largest difference of a head."""
    if found is None or name not in found:
        return "–"
    return f"{float((found[name].double() - exact[name]).abs().max()):.1e}"


def cost(monitor: Monitor, case: Case, turns: int) -> float:
    """CPU time that a monitor adds to a fused pass, which is 1."""

    def seconds(work: Callable[[], object]) -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    ratios = []
    for turn in range(turns + 1):
        fused = seconds(case.fused)
        if turn:  # the first one warms up
            ratios.append(seconds(lambda: monitor.work(case)) / fused - monitor.passes)
        else:
            monitor.work(case)
    return statistics.median(ratios)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--eole", type=Path, help="eole/utils/attention_entropy.py")
    parser.add_argument("--probe", type=Path, help="probe.py")
    options = parser.parse_args()
    torch.set_num_threads(1)
    modules = {
        "eole": loaded(options.eole, "eole.utils.attention_entropy"),
        "xFormers": loaded(options.probe, "probe"),
    }
    monitors = {"attlas.watch": Monitor(watched, 1)}
    if modules["eole"]:
        monitors["eole"] = Monitor(of_eole(modules["eole"]), 1)
    if modules["xFormers"]:
        monitors["xFormers"] = Monitor(of_probe(modules["xFormers"]), 0)
    print(f"{BATCH} texts, {HEADS} heads of {WIDTH}, {options.tokens:,} tokens, float32, "
          f"torch {torch.__version__}, 1 thread, {options.turns} turns")  # fmt: skip
    for name in modules.keys() - monitors.keys():
        print(f"{name}: not there")
    print("| attention | monitor | error of the entropy | error of the largest logit | cost |")
    print("|---|---|---|---|---|")
    for of_case, settings in CASES.items():
        case = Case(options.tokens, **settings)
        exact = case.exact()
        for name, monitor in monitors.items():
            found = monitor.work(case)
            errors = [error(found, exact, statistic) for statistic in exact]
            price = "–" if found is None else f"{cost(monitor, case, options.turns):.2f}"
            print(f"| {of_case} | {name} | {' | '.join(errors)} | {price} |")


if __name__ == "__main__":
    main()
