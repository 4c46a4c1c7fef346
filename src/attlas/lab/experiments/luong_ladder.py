"""The steps of Luong's first table: reversal, dropout, attention, input feeding, a local window."""

import gzip
import math
from collections.abc import Iterator
from itertools import pairwise

import torch
from torch.nn import functional as F

from attlas.data.vocabulary import BEGIN, END
from attlas.lab.data import Pair, parallel_files, required, spaced_words
from attlas.lab.experiment import (
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Published,
    Source,
)
from attlas.lab.experiments.alignment import bleu_of, ending
from attlas.lab.trainings import ForcedBatch, pairs_of, trained
from attlas.lab.verdict import All, Difference, Provided, Ratio
from attlas.runs import Run

BLEU, PERPLEXITY = "BLEU on new captions", "perplexity of a subword of new captions"
NUMBERS = "parameters"
GLOBAL = ("model.dropout=0.2", "model.attention=general", "model.decoder=luong")
LOCAL = (
    "model.dropout=0.2",
    "model.attention=local",
    "model.local={centre='predictive', radius=5, score='general'}",
    "model.decoder=luong",
)
FEEDING = "model.input_feeding=true"
# Each has what the one before it has. The window of the last takes the place of all positions.
MODELS: dict[str, tuple[str, ...]] = {
    "base": ("model.dropout=0", "model.attention=none"),
    "reversal": ("model.dropout=0", "model.attention=none"),
    "dropout": ("model.dropout=0.2", "model.attention=none"),
    "attention": GLOBAL,
    "input feeding": (*GLOBAL, FEEDING),
    "local-p": (*LOCAL, FEEDING),
}


def captions(split: str, most: int) -> list[Pair]:
    """English captions of at most so many words and marks, with German ones."""
    sides = []
    for language in ("en", "de"):
        content = (required("multi30k") / f"{split}.{language}.gz").read_bytes()
        sides.append(map(spaced_words, gzip.decompress(content).decode().splitlines()))
    return [pair for pair in zip(*sides, strict=True) if len(pair[0].split()) <= most]


def reversed_sources(pairs: list[Pair]) -> list[Pair]:
    """The words of each source from the last to the first."""
    return [(" ".join(reversed(source.split())), target) for source, target in pairs]


def measure_ladder(context: Context) -> Iterator[Measurement]:
    """Train each model on the same captions for as many updates, and translate new ones."""
    s = context.settings
    train = captions("train", s["most words"])[: s["pairs"]]
    new = captions("test_2016_flickr", s["most words"])[: s["new"]]
    files = dict[bool, list[str]]()
    for reverse in (False, True):
        read, translated = (
            parallel_files(
                context.folder,
                f"{name}-reversed" if reverse else name,
                reversed_sources(pairs) if reverse else pairs,
            )
            for name, pairs in (("train", train), ("new", new))
        )
        valid = (f"data.{split}={translated}" for split in ("valid", "test"))
        files[reverse] = [f"data.train={read}", *valid]
    for name, settings in MODELS.items():
        label = name.replace(" ", "-")
        of_model = [*files[name != "base"], *s["recipe"], *settings]
        run = trained(context, label, "multi30k", of_model)
        total = sum(parameter.numel() for parameter in run.model().parameters())
        yield Measurement(NUMBERS, float(total), {"model": name})
        yield Measurement(BLEU, bleu_of(run), {"model": name})
        yield Measurement(PERPLEXITY, perplexity_of(run), {"model": name})


def perplexity_of(run: Run) -> float:
    """exp of the mean cross-entropy of all tokens of new captions and their ends, in nats."""
    model, vocabularies = run.model(), run.vocabularies()
    losses = list[float]()
    for pair in pairs_of(run, "valid").pairs:
        target = [*vocabularies.target.encode(pair.target), END]
        sides = [*vocabularies.source.encode(pair.source), END], [BEGIN, *target[:-1]], target
        batch = ForcedBatch(*(torch.tensor([ids]) for ids in sides))
        losses += F.cross_entropy(
            batch.logits(model)[0], batch.expected[0], reduction="none"
        ).tolist()
    return math.exp(sum(losses) / len(losses))


def _step(more: str, less: str, bound: float) -> Provided:
    """What a step adds, where one of the two models has learnt to translate."""
    one: Condition = {"model": more}
    other: Condition = {"model": less}
    return Provided(Difference(BLEU, one, other, bound), BLEU, 5.0, one, other)


def _lower(more: str, less: str) -> Ratio:
    return Ratio(PERPLEXITY, {"model": less}, {"model": more}, 1.03)


def _recipe(updates: int) -> tuple[str, ...]:
    return (
        *ending(updates, "linear"),
        "vocabulary.size=1200",
        "vocabulary.sampling=0",
        "batching.max_tokens=256",
        "model.cell=lstm",
        "model.bidirectional=false",
        "model.embed_dim=128",
        "model.hidden_dim=128",
        "model.encoder_hidden_dim=128",
        "training.label_smoothing=0",
        "training.learning_rate=2e-3",
        "training.averaging={kind='none'}",
    )


_LUONG = Source("Luong et al., 2015", "table 1", read=True)
_SUTSKEVER = Source("Sutskever et al., 2014", "section 3.3", read=False)
EXPERIMENTS = (
    Experiment(
        name="luong-ladder",
        title="What reversal, dropout, attention and input feeding add, step by step",
        method="LSTMs learn to translate English captions to German (Multi30k), for as many "
        "updates. The base reads forwards, has no dropout, and its decoder has the encoder's last "
        "state alone. Each further model adds one thing to the one before it. First come the words "
        "of the source in reverse order, then dropout of 0.2. Then come Luong's attention to all "
        "positions (general score) and input feeding. In the last model a window of five positions "
        "on each side of a predicted place (local-p) takes the place of all positions. The paper "
        "stacks four layers of 1,000 and scores global attention by location. Here is one layer of "
        "128, and captions have at most ten words and marks. Models without attention "
        "hardly learn to translate here. So a step is judged by BLEU only where one of its two "
        "models has 5. The perplexity is measured of all: the models are fed with the right "
        "tokens of the captions that they translate.",
        measure=measure_ladder,
        settings={
            "quick": {"pairs": 1000, "new": 20, "most words": 10, "recipe": _recipe(10)},
            "full": {"pairs": 29_000, "new": 1000, "most words": 10, "recipe": _recipe(1000)},
        },
        seeds={"quick": 2, "full": 3},
        deterministic=(NUMBERS,),
        claims=(
            Claim(
                "A reversed source makes translations without attention better.",
                _LUONG,
                _step("reversal", "base", 0.5),
                "A model that reads forwards and is within half a BLEU point.",
                (
                    Published("BLEU, base", 11.3, _LUONG),
                    Published("BLEU, and reversal", 12.6, _LUONG),
                    Published("BLEU, English to French, forwards", 25.9, _SUTSKEVER),
                    Published("BLEU, English to French, reversed", 30.6, _SUTSKEVER),
                ),
            ),
            Claim(
                "To a reversed source, dropout adds.",
                _LUONG,
                _step("dropout", "reversal", 0.5),
                "A model without dropout that is within half a BLEU point.",
                (
                    Published("BLEU, base and reversal", 12.6, _LUONG),
                    Published("BLEU, and dropout", 14.0, _LUONG),
                ),
            ),
            Claim(
                "To a reversed source and dropout, global attention adds.",
                _LUONG,
                _step("attention", "dropout", 1.0),
                "A model without attention that is within 1 BLEU.",
                (
                    Published("BLEU, base, reversal and dropout", 14.0, _LUONG),
                    Published("BLEU, and global attention", 16.8, _LUONG),
                ),
            ),
            Claim(
                "To global attention, input feeding adds.",
                _LUONG,
                _step("input feeding", "attention", 0.5),
                "A model without input feeding that is within half a BLEU point.",
                (
                    Published("BLEU, without input feeding", 16.8, _LUONG),
                    Published("BLEU, with input feeding", 18.1, _LUONG),
                ),
            ),
            Claim(
                "With input feeding a window in a predicted place (local-p) is better than all "
                "positions.",
                _LUONG,
                _step("local-p", "input feeding", 0.5),
                "All positions that are within half a BLEU point.",
                (
                    Published("BLEU, global attention", 18.1, _LUONG),
                    Published("BLEU, local-p attention", 19.0, _LUONG),
                ),
            ),
            Claim(
                "Each of the five steps lowers the perplexity.",
                _LUONG,
                All(*(_lower(more, less) for less, more in pairwise(MODELS))),
                "A step that lowers the perplexity by less than 3 %.",
                tuple(
                    Published(f"perplexity, {name}", value, _LUONG)
                    for name, value in zip(MODELS, (10.6, 9.9, 8.1, 7.3, 6.4, 5.9), strict=True)
                ),
                judged_at=("full",),
            ),
            Claim(
                "With attention, a reversed source and dropout there are 5 BLEU more than with a "
                "reversed source and dropout alone.",
                Source("Luong et al., 2015", "abstract and table 1", read=True),
                _step("local-p", "dropout", 5.0),
                "A model without attention that is within 5 BLEU.",
                (
                    Published("BLEU, base, reversal and dropout", 14.0, _LUONG),
                    Published("BLEU, and local-p attention and input feeding", 19.0, _LUONG),
                ),
            ),
        ),
        needs=("multi30k",),
    ),
)
