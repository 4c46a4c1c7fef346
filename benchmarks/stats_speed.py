"""How many texts a second `attlas stats` measures.

python benchmarks/stats_speed.py FOLDER-OF-A-HUGGING-FACE-ENCODER

Texts of 10 to 14 words of the corpus that comes with attlas. By turns come `attlas stats`, the same
with one text in each batch, and the loop that one would write: observe a text, and summarise layer
by layer. Seconds are CPU time of one thread; ratios are turn by turn.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import attlas
from attlas.jobs.statistics import StatisticsOptions, run_statistics
from attlas.training import read_recipe

MAX_TOKENS = 2048  # the default of the command
NAMES = ("entropy", "max_weight", "distance", "self_weight", "first_weight", "last_weight")


def texts_of(count: int) -> list[str]:
    """The first so many English texts of 10 to 14 words."""
    pairs = read_recipe("demo").data.load().train.pairs
    found = [pair.source for pair in pairs if 10 <= len(pair.source.split()) <= 14]
    return found[:count]


def by_command(model: Path, corpus: Path, folder: Path, max_tokens: int) -> None:
    """`attlas stats`, anew each time."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        run_statistics(
            StatisticsOptions(
                model=model, corpus=str(corpus), output=Path(fresh) / "stats.csv", target=None,
                by="head", threshold=0.3, also=(), layers=None, max_tokens=max_tokens,
                num_beams=None, checkpoint="best", device="cpu", settings=(),
            )
        )  # fmt: skip


def by_loop(model: Path, texts: list[str]) -> None:
    """A text and a layer at a time."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, encoder = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model)
    encoder.eval()
    for text in texts:
        with torch.inference_mode(), attlas.observe(encoder) as trace:
            encoder(**tokenizer(text, return_tensors="pt"))
        for layer in trace:
            trace[layer].summary(*NAMES)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="a folder of Hugging Face, with its tokenizer")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts = texts_of(given.texts)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "texts.txt"
        corpus.write_text("\n".join(texts) + "\n", encoding="utf-8", newline="\n")
        ways: dict[str, Callable[[], None]] = {
            "a loop over texts and layers": lambda: by_loop(given.model, texts),
            "attlas stats, one text in a batch": lambda: by_command(
                given.model, corpus, Path(folder), 1
            ),
            "attlas stats": lambda: by_command(given.model, corpus, Path(folder), MAX_TOKENS),
        }
        turns = []
        for _ in range(given.turns + 1):
            seconds = {}
            for name, work in ways.items():
                begun = time.process_time()
                work()
                seconds[name] = time.process_time() - begun
            turns.append(seconds)
    first = next(iter(ways))
    print(f"{len(texts)} texts, torch {torch.__version__}, 1 thread, {given.turns} turns")
    print("| way | ms a text | texts a second, loop = 1 |")
    print("|---|---|---|")
    for name in ways:
        taken = [1000 * turn[name] / len(texts) for turn in turns[1:]]
        ratios = [turn[first] / turn[name] for turn in turns[1:]]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"| {name} | {statistics.median(taken):.2f} | "
              f"{statistics.median(ratios):.2f} ({spread}) |")  # fmt: skip


if __name__ == "__main__":
    main()
