"""Texts of a test that the model was trained on."""

import sys
from collections.abc import Sequence

from attlas._text import count_noun
from attlas.errors import AttlasError
from attlas.runs import CONFIG, Run
from attlas.training import Recipe

MOST = 1_000_000  # texts of a training set that is read for this


def training_texts(run: Run) -> frozenset[str]:
    """The sources of the training data, each with single spaces.

    There are none if the data is generated, comes from the standard input, has more than `MOST`
    texts, or is not at hand any more.
    """
    data = Recipe.read(run.config, str(run.path / CONFIG)).data
    recorded = run.provenance().get("data", {}).get("train", {})
    sizes = [recorded[name] for name in ("pairs", "texts") if name in recorded]
    if data.passing or getattr(data, "kind", None) == "toy" or not sizes or max(sizes) > MOST:
        return frozenset()
    try:
        corpus = data.corpus("train")
    except AttlasError:
        return frozenset()
    return frozenset(_one_spaced(text) for text in corpus.sources)


def warn_of_training_texts(run: Run, texts: Sequence[str]) -> None:
    """Say on the standard error how many of these texts the model was trained on."""
    trained = training_texts(run)
    num_seen = sum(_one_spaced(text) in trained for text in texts)
    if num_seen:
        print(
            f"attlas: WARNING: {num_seen:,} of {count_noun(len(texts), 'text')} are in the "
            f"training data of {run.path}: a score on them says little about new texts",
            file=sys.stderr,
        )


def _one_spaced(text: str) -> str:
    return " ".join(text.split())
