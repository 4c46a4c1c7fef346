"""Small classifiers for the tests: reviews whose label is known from one word, or from two."""

import json
import random
from pathlib import Path
from typing import Any

WORDS = ("the", "a", "film", "plot", "actor", "scene", "story", "was", "is", "and", "but", "very")
GOOD, BAD = ("great", "lovely", "superb"), ("awful", "dull", "boring")


def reviews(count: int, seed: int = 1, negated: bool = False) -> list[dict[str, str]]:
    """Texts with one telling word in them; negated: "not" before it turns it round."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        good, turned = draw.random() < 0.5, negated and draw.random() < 0.5
        words = [draw.choice(WORDS) for _ in range(draw.randint(2, 20))]
        reported = ["not"] * turned + [draw.choice(GOOD if good else BAD)]
        if negated and not turned:  # somewhere else it turns nothing round
            words.append("not")
        place = draw.randrange(len(words))
        words[place:place] = reported
        found.append({"text": " ".join(words), "label": "pos" if good != turned else "neg"})
    return found


def write_lines(path: Path, entries: list[dict[str, str]]) -> Path:
    """As JSON lines."""
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    return path


def tables(train: Path, **training: Any) -> dict[str, Any]:
    """The recipe of a small classifier, with a held-back part."""
    return {
        "seed": 3,
        "data": {"kind": "labelled", "train": str(train), "held_back": 30},
        "vocabulary": {"kind": "words", "size": 64},
        "batching": {"max_tokens": 256, "max_length": 64},
        "model": {
            "kind": "classifier", "embed_dim": 16, "num_heads": 2, "ffn_dim": 16, "dropout": 0.1,
            "patterns": ["window(3)"], "pooling": "attentive", "word_dropout": 0.1,
        },
        "training": {
            "max_steps": 3, "device": "cpu", "threads": 1, "log_every": 2, "learning_rate": 5e-3,
            "averaging": {"kind": "ema"}, "validation": {"criterion": "accuracy"},
            **training,
        },
    }  # fmt: skip


def trained(folder: Path, count: int = 200, **training: Any) -> Path:
    """The folder of a small classifier's run."""
    from attlas.training import Recipe, train

    folder.mkdir(parents=True, exist_ok=True)
    lines = write_lines(folder / "reviews.jsonl", reviews(count))
    return train(Recipe.read(tables(lines, **training), "the test"), folder / "run").path
