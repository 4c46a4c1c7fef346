"""Four faults are put into a small Transformer: does `attlas.watch` say so before the loss does?

    python scripts/watch_faults.py FOLDER

writes docs/how_to/watch_faults.json, watch.svg and watch_x_10.svg, and a watch file for each run
into the folder.

The model is trained on the corpus that comes with attlas. Each run is made for each seed: healthy,
and with one fault. Runs of a seed have the same first weights and the same batches.

The rules, which were written before the runs:

watch       the first step with an alarm, at the default thresholds, of a kind that the healthy run
            of the seed has at no step
loss        the first step at which the mean of the last 20 losses is 10 % above the lowest such
            mean so far, or a loss is not finite: what somebody sees who has this run alone
beside      the first step at which that mean differs by 10 % from that of the healthy run of the
            seed, in either direction: what somebody sees who has both
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F

import attlas
from attlas import figures
from attlas.layers import MultiheadAttention, scaled_dot_product
from attlas.models import TransformerConfig, build
from attlas.monitoring import Alarm, read_history
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Pattern, causal, either, window
from attlas.training import read_recipe
from attlas.training.tasks import task_of

DOCS = Path(__file__).resolve().parents[1] / "docs" / "how_to"
STEPS, EVERY, SEEDS = 300, 5, (1, 2, 3)
WINDOW, SHARE = 20, 0.1
RATE = 2e-3

Result = dict[str, Any]


def half_precision(
    query: torch.Tensor,
    cache: KeyValueCache,
    pattern: Pattern,
    query_offset: int,
    scale: float,
    dropout: float,
) -> torch.Tensor:
    """exp(s) / Σ exp(s), all of it in float16: exp(11.1) is more than float16 can hold."""
    queries, keys = query.shape[2], cache.keys.shape[2]
    allowed = pattern.mask(queries, keys, query_offset)[None, None]
    if cache.token_mask is not None:
        allowed = allowed & cache.token_mask[:, None, None, :]
    scores = (query.half() @ cache.keys.half().mT) * scale
    weights = torch.exp(scores) * allowed
    weights = weights / weights.sum(-1, keepdim=True)
    return (weights @ cache.values.half()).to(query.dtype)


@contextmanager
def float16_attention() -> Iterator[None]:
    """Every layer computes its attention by `half_precision`."""
    kernels = scaled_dot_product.dense_attention, scaled_dot_product.banded_attention
    scaled_dot_product.dense_attention = half_precision
    scaled_dot_product.banded_attention = half_precision
    try:
        yield
    finally:
        scaled_dot_product.dense_attention, scaled_dot_product.banded_attention = kernels


def look_ahead(model: torch.nn.Module) -> None:
    """A query of the decoder also sees the next token, which it is to predict."""
    for module in model.modules():
        if isinstance(module, MultiheadAttention) and module.pattern == causal:
            module.pattern = either(causal, window(1))


def rate_of(fault: str, step: int) -> float:
    """The learning rate of an update."""
    if fault == "learning rate × 10":
        return 10 * RATE
    if fault == "learning rate that grows":
        return RATE * 1000 ** (step / STEPS)  # to a thousand times, as a warm-up without an end
    return RATE


def run(task: Any, seed: int, fault: str, path: Path) -> Result:
    """The losses and alarms of one training."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        embed_dim=64, num_heads=4, ffn_dim=128, encoder_layers=2, decoder_layers=2,
        dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    sizes = len(task.vocabularies.source), len(task.vocabularies.target)
    model = build(config, *sizes).train()
    if fault == "mask off by one":
        look_ahead(model)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    batches = task.batches(seed)
    order = batches.epoch(seed)
    losses: list[float] = []
    alarms: list[Alarm] = []
    path.unlink(missing_ok=True)
    kernels: Callable[[], Any] = float16_attention if fault == "float16 attention" else _unchanged
    with kernels(), attlas.watch(model, every=EVERY, path=path, on_alarm=alarms.append) as watch:
        for step in range(STEPS):
            batch = batches.batch(order[step])
            with watch.forward(token_mask=batch.expected_mask):
                logits = model(batch.source, batch.decoder_input, token_mask=batch.source_mask)
            mask = batch.expected_mask
            loss = F.cross_entropy(logits[mask], batch.expected[mask])
            for group in optimizer.param_groups:
                group["lr"] = rate_of(fault, step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            watch.step()
            if not math.isfinite(losses[-1]):
                break
    return {
        "losses": losses,
        "alarms": [{"step": alarm.step, **alarm.record()} for alarm in alarms],
    }


@contextmanager
def _unchanged() -> Iterator[None]:
    yield


def means(losses: list[float]) -> list[float]:
    """The mean of the last 20 losses at each step, from the 20th on."""
    return [fmean(losses[end - WINDOW : end]) for end in range(WINDOW, len(losses) + 1)]


def seen_alone(losses: list[float]) -> int | None:
    """The step of the rule "loss"."""
    lowest = math.inf
    for step, loss in enumerate(losses, 1):
        if not math.isfinite(loss):
            return step
        if step >= WINDOW:
            mean = fmean(losses[step - WINDOW : step])
            lowest = min(lowest, mean)
            if mean > (1 + SHARE) * lowest:
                return step
    return None


def seen_beside(losses: list[float], healthy: list[float]) -> int | None:
    """The step of the rule "beside"."""
    for step, pair in enumerate(zip(means(losses), means(healthy), strict=False), WINDOW):
        if not math.isfinite(pair[0]) or abs(pair[0] - pair[1]) > SHARE * pair[1]:
            return step
    finite = [math.isfinite(loss) for loss in losses]
    return None if all(finite) else finite.index(False) + 1


def seen_by_watch(result: Result, healthy: Result) -> Result | None:
    """The first alarm of the rule "watch"."""
    known = {alarm["kind"] for alarm in healthy["alarms"]}
    return next((alarm for alarm in result["alarms"] if alarm["kind"] not in known), None)


FAULTS = (
    "learning rate that grows",
    "learning rate × 10",
    "float16 attention",
    "mask off by one",
)


def main(folder: Path) -> None:
    """Make all runs; the file has the rows of those that have ended."""
    recipe = read_recipe("demo", ["batching.max_tokens=512", "vocabulary.size=1000"])
    kind = task_of(recipe)
    splits = recipe.data.load()
    task = kind(recipe, splits, kind.vocabularies_of(recipe, splits))
    folder.mkdir(exist_ok=True)
    rows = []
    for seed in SEEDS:
        results = {}
        for fault in ("healthy", *FAULTS):
            name = fault.replace(" × ", "_x_").replace(" ", "_")
            path = folder / f"{name}-{seed}.jsonl"
            results[fault] = result = run(task, seed, fault, path)
            healthy = results["healthy"]
            alarm = seen_by_watch(result, healthy)
            row = {
                "seed": seed,
                "run": fault,
                "watch": alarm and alarm["step"],
                "loss": seen_alone(result["losses"]),
                "beside": seen_beside(result["losses"], healthy["losses"]),
                "alarm": alarm and alarm["message"],
                "kinds": sorted({alarm["kind"] for alarm in result["alarms"]}),
                "steps": len(result["losses"]),
                "last_loss": result["losses"][-1] if math.isfinite(result["losses"][-1]) else None,
                "losses": [
                    round(loss, 3) if math.isfinite(loss) else None
                    for loss in means(result["losses"])[::EVERY]
                ],
            }
            rows.append(row)
            shown = {name: value for name, value in row.items() if name != "losses"}
            print(json.dumps(shown, ensure_ascii=False), file=sys.stderr, flush=True)
            text = json.dumps(
                {"torch": torch.__version__, "rows": rows}, ensure_ascii=False, indent=1
            )
            (DOCS / "watch_faults.json").write_text(text + "\n")
    for name, picture in (
        ("learning_rate_that_grows", "watch"),
        ("learning_rate_x_10", "watch_x_10"),
    ):
        history = read_history(folder / f"{name}-2.jsonl")
        figures.save(figures.plot_history(history, "normalized_entropy"), DOCS / f"{picture}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
