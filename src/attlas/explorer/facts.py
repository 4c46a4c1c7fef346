"""What the page says about the model it shows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attlas.explorer.looking import Looking
from attlas.runs import Run

# Sentences as they are in the corpus that comes with attlas, and as in captions of pictures.
_EVERYDAY = {
    "en": "I do not want to go to school today.",
    "de": "Ich will heute nicht zur Schule gehen.",
}
_EXAMPLES = {
    "en": "A man in a blue shirt is reading a book.",
    "de": "Ein Mann in einem blauen Hemd liest ein Buch.",
    "fr": "Un homme en chemise bleue lit un livre.",
    "cs": "Muž v modré košili čte knihu.",
    "es": "Un hombre con una camisa azul lee un libro.",
    "it": "Un uomo con una camicia blu legge un libro.",
    "ja": "青いシャツを着た男の人が本を読んでいる。",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """None = not known, and then the page does not say it.

    Languages are codes such as "de". bleu is that of the best validation, over `bleu_sentences`
    sentences, with sacrebleu's signature. attention: the score function, or "none".
    """

    name: str | None
    source_language: str | None
    target_language: str | None
    attention: str | None
    parameters: int | None
    bleu: float | None
    bleu_sentences: int | None
    bleu_signature: str | None
    example: str | None


def facts(translator: Looking) -> Facts:
    """What a translator and the run it came from tell about themselves."""
    known = translator.facts
    parameters = known.get("parameters")
    count = parameters if isinstance(parameters, int) else None
    if not isinstance(known.get("run"), str):
        return Facts(None, None, None, None, count, None, None, None, None)
    run = Run(Path(str(known["run"])))
    data = run.table("data")
    source, target = languages(data)
    attention = run.table("model").get("attention")
    best = _best_validation(run.events())
    return Facts(
        name=run.path.resolve().name,
        source_language=source,
        target_language=target,
        attention=attention if isinstance(attention, str) else None,
        parameters=count,
        bleu=best.get("bleu"),
        bleu_sentences=best.get("sentences"),
        bleu_signature=best.get("signature"),
        example=_example(source, data),
    )


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


def _best_validation(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The last validation that was the best so far and has a BLEU; {} where there is none."""
    best = [e for e in events if e.get("event") == "validated" and e.get("best")]
    return best[-1] if best and best[-1].get("bleu") is not None else {}


def _example(language: str | None, data: Mapping[str, Any]) -> str | None:
    """A sentence of the kind that the model was trained on; None where none is known."""
    if language is None:
        return _symbols(data)
    known = _EVERYDAY if "direction" in data else _EXAMPLES
    return known.get(language)


def _symbols(data: Mapping[str, Any]) -> str | None:
    """A sequence of a toy task; its symbols are the numbers below `symbols`."""
    symbols, length = data.get("symbols"), data.get("length")
    if not isinstance(symbols, int) or not isinstance(length, Sequence):
        return None
    size = min(max(8, int(length[0])), int(length[-1]))
    return " ".join(str((5 * i + 2) % symbols) for i in range(size))
