"""What `attlas.watch` costs a training: steps that are not read, steps that are, and the mean.

python benchmarks/watch_speed.py

Whole updates (forward, backward, Adam) of three models on random tokens, by the CPU time of one
thread. In each turn come a plain update, one that is watched and not read, and one that is read.
Ratios are to the plain update of the same turn; the table has their medians and quartiles. The
statistics' own cost is what the sums over rows of a read step take, apart from hooks and recording.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import attlas
from attlas._hardware import disable_malloc_trim
from attlas.models import TransformerConfig, build
from attlas.monitoring import reader

VOCABULARY = 2000
Loss = Callable[[nn.Module], Tensor]


def _tokens(rows: int, length: int) -> Tensor:
    return torch.randint(5, VOCABULARY, (rows, length))


def translator() -> tuple[nn.Module, Loss]:
    """The Transformer of attlas, 3 + 3 layers of width 256 with 4 heads."""
    config = TransformerConfig(
        embed_dim=256, num_heads=4, ffn_dim=1024, encoder_layers=3, decoder_layers=3
    )

    def loss(model: nn.Module) -> Tensor:
        target = _tokens(64, 33)
        logits = model(_tokens(64, 32), target[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())

    return build(config, VOCABULARY, VOCABULARY), loss


def encoder() -> tuple[nn.Module, Loss]:
    """PyTorch's encoder, 4 layers of width 256 with 4 heads."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, 256),
        nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
        nn.Linear(256, VOCABULARY),
    )

    def loss(model: nn.Module) -> Tensor:
        tokens = _tokens(32, 64)
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    return model, loss


def decoder() -> tuple[nn.Module, Loss]:
    """GPT-2 of Hugging Face, 4 layers of width 256 with 4 heads, texts of 256 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 256}
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0, **sizes)
    )

    def loss(model: nn.Module) -> Tensor:
        tokens = _tokens(8, 256)
        found: Tensor = model(input_ids=tokens, labels=tokens).loss
        return found

    return model, loss


MODELS = {
    "attlas 3 + 3, 32 tokens": translator,
    "nn.TransformerEncoder, 64 tokens": encoder,
    "GPT-2, 256 tokens": decoder,
}


@contextmanager
def timed_statistics() -> Iterator[list[float]]:
    """The seconds of each call that sums rows or compares what was read."""
    seconds: list[float] = []
    works = reader.totals_of, reader.context_errors

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            try:
                return work(*args, **kwargs)
            finally:
                seconds.append(time.process_time() - begun)

        return done

    reader.totals_of, reader.context_errors = map(timed, works)
    try:
        yield seconds
    finally:
        reader.totals_of, reader.context_errors = works


def measure(make: Callable[[], tuple[nn.Module, Loss]], turns: int) -> dict[str, list[float]]:
    """Ratios of each turn to its plain update."""
    torch.manual_seed(0)
    model, loss_of = make()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    model.train()

    def update() -> float:
        begun = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model).backward()
        optimizer.step()
        return time.process_time() - begun

    found: dict[str, list[float]] = {"not read": [], "read": [], "read, without statistics": []}
    for turn in range(turns + 1):
        plain = update()
        with attlas.watch(model, every=1 << 30, step=1, on_alarm=None) as watch:
            begun = time.process_time()
            update()
            watch.step()
            unread = time.process_time() - begun
        with (
            timed_statistics() as own,
            attlas.watch(model, every=1, step=1, on_alarm=None) as watch,
        ):
            begun = time.process_time()
            update()
            reading = watch.step()
            read = time.process_time() - begun
        assert reading is not None
        if turn:  # the first one warms up
            found["not read"].append(unread / plain)
            found["read"].append(read / plain)
            found["read, without statistics"].append((read - sum(own)) / plain)
    return found


def _shown(ratios: list[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=30, help="of each model")
    parser.add_argument("--every", type=int, default=50, help="of the mean over steps")
    parser.add_argument("--json", action="store_true", help="print the ratios of all turns")
    options = parser.parse_args()
    torch.set_num_threads(1)
    disable_malloc_trim()
    results = {name: measure(make, options.turns) for name, make in MODELS.items()}
    if options.json:
        print(json.dumps(results))
        return
    print(f"torch {torch.__version__}, 1 thread, {options.turns} turns; plain update = 1")
    print(f"| model | not read | read | read, without statistics | mean, every {options.every} |")
    print("|---|---|---|---|---|")
    for name, found in results.items():
        unread, read = (statistics.median(found[way]) for way in ("not read", "read"))
        mean = unread + (read - unread) / options.every
        print(f"| {name} | {' | '.join(map(_shown, found.values()))} | {mean:.3f} |")


if __name__ == "__main__":
    main()
