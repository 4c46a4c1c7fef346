"""What every contender is told, and how many threads it may use."""

import argparse
import json
import sys
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `turns`, wherever we run

from agreement import complete
from turns import Pace

WEIGHTS = "weights.pt"  # of a run, for JoeyNMT
LINES, ROWS = 512, 64  # of the text that a search translates over and over, and of a batch of it


def read() -> tuple[argparse.Namespace, Pace]:
    """Called before a peer is imported, so that what it prints is not taken for an answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, required=True, help="made by corpus.py")
    parser.add_argument("--folder", type=Path, required=True, help="for whatever it writes")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch, padding included")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--num-beams", type=int, default=1, help="of a search; 1 = greedy")
    parser.add_argument("--run", type=Path, help="whose model searches")
    parser.add_argument("--updates", type=int, help="of the training that a search needs first")
    parser.add_argument("--seconds", type=float, required=True, help="of a block, at least")
    options = parser.parse_args()
    pace = Pace(options.seconds)
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    return options, pace


def text(corpus: Path) -> list[str]:
    """The lines that a search translates."""
    with (corpus / "source.txt").open(encoding="utf-8", newline="\n") as file:
        return [line.removesuffix("\n") for line in islice(file, LINES)]


def answer(run: Path, contender: str, lines: list[str], translations: list[str]) -> None:
    """What a contender wrote the first time, kept beside the run."""
    complete(lines, translations)
    path = run / f"{contender}.json"
    if not path.is_file():
        path.write_text(json.dumps(translations), encoding="utf-8")
