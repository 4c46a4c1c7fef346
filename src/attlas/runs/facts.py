"""Facts of a run that a reader is shown: its languages, and its best validation."""

import re
from collections.abc import Mapping, Sequence
from typing import Any


def languages(data: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The codes of the two languages, where the settings of the data name them.

    As a direction ("en-de"), as the columns of a dataset ("translation.en"), or as the ends of two
    files ("train.en", "train.de.gz").
    """
    direction, train = data.get("direction"), data.get("train")
    if isinstance(direction, str):
        named: Sequence[str] = direction.split("-")
    elif "source" in data and "target" in data:
        named = [str(data["source"]), str(data["target"])]
    elif isinstance(train, Sequence) and not isinstance(train, str):
        named = [str(path).removesuffix(".gz") for path in train]
    else:
        return None, None
    codes = [name.rpartition(".")[2].rpartition("/")[2] for name in named]
    # Two letters alone: what is longer is mostly no language ("txt", "src").
    if len(codes) != 2 or not all(re.fullmatch("[a-z]{2}", code) for code in codes):
        return None, None
    return codes[0], codes[1]


def best_validation(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The last validation that was the best so far and has a BLEU; {} where there is none."""
    best = [e for e in events if e.get("event") == "validated" and e.get("best")]
    return best[-1] if best and best[-1].get("bleu") is not None else {}
