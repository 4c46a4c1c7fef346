"""What every contender is told, and how many threads it may use."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `turns`, wherever we run

from turns import Pace

ROWS, LENGTH = 64, 16  # of a batch of sentences, and of what is written for each, in a search


def read() -> tuple[argparse.Namespace, Pace]:
    """Called before a peer is imported, so that what it prints is not taken for an answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, required=True, help="made by corpus.py")
    parser.add_argument("--folder", type=Path, required=True, help="for whatever it writes")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch, padding included")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--beam", type=int, default=1, help="of a search; 1 = greedy")
    parser.add_argument("--seconds", type=float, required=True, help="of a block, at least")
    options = parser.parse_args()
    pace = Pace(options.seconds)
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    return options, pace
