"""Classify lines: python classify.py < texts > labels

The label of each line and its probability, by classifier.onnx beside this file, with numpy,
onnxruntime and, for subwords, sentencepiece. Take from it what you need.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

PAD, UNKNOWN, BEGIN, END = range(4)
BATCH = 8  # lines; a text may be long
BREAK = re.compile(r"<\s*(?:/\s*)?br\b[^<>]*>", re.IGNORECASE)


def encoder(folder: Path) -> Callable[[str], list[int]]:
    """How the ids of a text are found."""
    path = folder / "tokenizer.model"
    return subwords(path) if path.is_file() else listed(folder / "tokenizer.json")


def subwords(path: Path) -> Callable[[str], list[int]]:
    """A sentencepiece model with byte fallback; "▁", its sign of a space, is spelt in bytes."""
    import sentencepiece

    model: Any = sentencepiece.SentencePieceProcessor(model_file=str(path))
    of_space = [model.piece_to_id(f"<0x{byte:02X}>") for byte in "▁".encode()]

    def ids(text: str) -> list[int]:
        first, *others = f" {text}".split("▁")
        found: list[int] = model.encode(first)
        for other in others:
            found += [*of_space, *model.encode(other)]
        return found

    return ids


def listed(path: Path) -> Callable[[str], list[int]]:
    """Words or characters: id 4 + n is token n of a list."""
    table = json.loads(path.read_text(encoding="utf-8"))
    number = {token: id_ for id_, token in enumerate(table["tokens"], 4)}
    words = table["kind"] == "words"
    return lambda text: [number.get(token, UNKNOWN) for token in (text.split() if words else text)]


class Classifier:
    """Texts in, the probabilities of their labels out."""

    def __init__(self, folder: Path) -> None:
        self.encode = encoder(folder)
        self.labels: list[str] = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        self.model = onnxruntime.InferenceSession(folder / "classifier.onnx")
        facts = self.model.get_modelmeta().custom_metadata_map
        self.longest = int(facts.get("longest", sys.maxsize))  # tokens that have a position

    def __call__(self, texts: Sequence[str], first: int = 1) -> list[dict[str, float]]:
        """Of each text the probability of every label, in one batch.

        What is not read is told on the standard error, with the number of its line; first: that of
        the first text.
        """
        rows = [self.read(text, f"line {number}") for number, text in enumerate(texts, first)]
        sizes = np.array([len(row) for row in rows])
        real = np.arange(sizes.max()) < sizes[:, None]
        source = np.full(real.shape, PAD, dtype=np.int64)
        for row, ids in enumerate(rows):
            source[row, : len(ids)] = ids
        (found,) = self.model.run(["probabilities"], {"source": source, "real": real})
        return [dict(zip(self.labels, row, strict=True)) for row in found.tolist()]

    def read(self, text: str, place: str) -> list[int]:
        """The ids of a text, and the end."""
        line = " ".join(BREAK.sub(" ", text).split())
        ids = self.encode(line)
        kept = ids[: self.longest - 1]
        if not line:
            print(f"{place}: there is no word in it", file=sys.stderr)
        if cut := len(ids) - len(kept):
            tokens = "1 token" if cut == 1 else f"{cut:,} tokens"
            part = f"{tokens} of it had no part in its label"
            print(f"{place}: longer than the model can read: {part}", file=sys.stderr)
        return [*kept, END]


def lines(stream: Any) -> Iterator[str]:
    """The lines of a stream, which end with a line feed and nothing else."""
    for line in stream:
        yield line.decode("utf-8")


if __name__ == "__main__":
    classifier = Classifier(Path(__file__).resolve().parent)
    texts, number = lines(sys.stdin.buffer), 1
    while batch := list(islice(texts, BATCH)):
        for found in classifier(batch, number):
            best = max(found, key=found.__getitem__)
            sys.stdout.buffer.write(f"{best}\t{found[best]:.4f}\n".encode())
        sys.stdout.buffer.flush()
        number += len(batch)
