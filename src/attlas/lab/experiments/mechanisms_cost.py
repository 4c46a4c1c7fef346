"""Score functions on captions and on Japanese, and the time and the memory of their training."""

import time
import weakref
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attlas.data.vocabulary import END
from attlas.lab.data import Pair, tanaka_pairs
from attlas.lab.experiment import (
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Published,
    Source,
)
from attlas.lab.experiments.alignment import RECURRENT, bleu_of, ending, sampled
from attlas.lab.experiments.luong_ladder import captions
from attlas.lab.experiments.mechanisms import SCORES, translator
from attlas.lab.sources import chapter_4, lesson
from attlas.lab.verdict import All, Difference, Provided, Ratio, Rule

BLEU, NUMBERS = "BLEU on new pairs", "parameters"
SECONDS = "milliseconds of processor time, forward and back"
BYTES = "most mebibytes held, forward and back, beside parameters"
CAPTIONS, JAPANESE = "captions, English to German", "Tanaka corpus, English to Japanese"


class HeldBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that are made inside the block, and keeps the most held at
    a time. A tensor is counted until its memory is free. What a kernel takes and gives back before
    it returns is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held = self.most = 0
        self._storages: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for value in tree_leaves(found):
            if isinstance(value, Tensor):
                self._count(value.untyped_storage())
        return found

    def _count(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._storages:
            return

        def freed(_: Any) -> None:
            del self._storages[key]
            self.held -= size

        self._storages[key] = weakref.ref(storage, freed)
        self.held += size
        self.most = max(self.most, self.held)


def passes(model: nn.Module, source: Tensor, target: Tensor) -> None:
    """Cross-entropy of all target tokens, forward and back."""
    logits = model(source, target[:, :-1])
    torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()))
    model.zero_grad(set_to_none=True)


def costs(models: Mapping[str, nn.Module], context: Context) -> Iterator[Measurement]:
    """What a pass of each model takes, on one batch. The models take turns."""
    s = context.settings
    torch.manual_seed(context.seed)
    ids = torch.randint(END + 1, s["symbols"], (2, s["rows"], s["tokens"]))
    spent: dict[str, list[float]] = {score: [] for score in models}
    for score, model in models.items():
        model.train()
        passes(model, *ids)
        with HeldBytes() as counted:
            passes(model, *ids)
        yield Measurement(BYTES, counted.most / 2**20, {"score": score})
        total = sum(parameter.numel() for parameter in model.parameters())
        yield Measurement(NUMBERS, float(total), {"score": score})
    for _ in range(s["repeats"]):
        for score, model in models.items():
            begun = time.process_time()
            passes(model, *ids)
            spent[score].append(1000 * (time.process_time() - begun))
    for score, found in spent.items():
        yield Measurement(SECONDS, median(found), {"score": score})


def corpora(context: Context) -> dict[str, tuple[list[Pair], list[Pair]]]:
    """Pairs to train with, and others, of each corpus."""
    s = context.settings
    sizes, most = (s["pairs"], s["held back"]), s["most words"]
    pairs = [pair for pair in tanaka_pairs() if len(pair[0].split()) <= most]
    new = captions("test_2016_flickr", most)[: s["held back"]]
    return {
        CAPTIONS: (captions("train", most)[: s["pairs"]], new),
        JAPANESE: sampled(pairs, context.seed, sizes, s["least words"]),
    }


def measure_costs(context: Context) -> Iterator[Measurement]:
    """Train each score function on each corpus for as many updates; what a pass takes."""
    models = dict[str, nn.Module]()
    for corpus, (train, new) in corpora(context).items():
        for score in SCORES:
            label = f"{corpus.split(',')[0]}-{score.split(',')[0]}".replace(" ", "-")
            run = translator(context, label, train, new, score)
            yield Measurement(BLEU, bleu_of(run), {"score": score, "corpus": corpus})
            if corpus == CAPTIONS:
                models[score] = run.model()
    yield from costs(models, context)


def _of(score: str, corpus: str) -> Condition:
    return {"score": score, "corpus": corpus}


def _more(more: str, less: str, bound: float) -> Rule:
    """A difference on each corpus, where one of the two models has learnt to translate."""
    return All(
        *(
            Provided(
                Difference(BLEU, _of(more, corpus), _of(less, corpus), bound),
                BLEU,
                5.0,
                _of(more, corpus),
                _of(less, corpus),
            )
            for corpus in (CAPTIONS, JAPANESE)
        )
    )


def _recipe(updates: int) -> tuple[str, ...]:
    kept = (one for one in RECURRENT if "vocabulary.size" not in one and "rate" not in one)
    return (
        *kept,
        *ending(updates, "linear"),
        "vocabulary.size=2000",
        "batching.max_tokens=512",
        "training.label_smoothing=0",
        "training.learning_rate=4e-3",
        "training.averaging={kind='none'}",
    )


_LUONG = Source("Luong et al., 2015", "table 4")
_BRITZ = Source("Britz et al., 2017", "table of attention mechanisms", read=False)
_DOT_AND_GENERAL = (
    Published("BLEU, global, dot", 20.5, _LUONG),
    Published("BLEU, global, general", 19.1, _LUONG),
)
EXPERIMENTS = (
    Experiment(
        name="mechanisms-cost",
        title="Score functions on captions and on Japanese, and what their training costs",
        method="GRUs with Bahdanau's decoder learn to translate English captions to German "
        "(Multi30k), and English sentences to Japanese (Tanaka corpus, in words), for as many "
        "updates. They differ in the score function. Local attention reads three positions on "
        "each side of a predicted place. BLEU is that of captions of the test set, and of "
        "sentences that were held back. Time and memory are those of the models of captions, on "
        "one batch of random tokens: cross-entropy and its gradients, without the optimizer. The "
        "models take turns, and the median counts. Memory is what all tensors hold together at "
        "the worst moment, parameters aside.",
        measure=measure_costs,
        alone=True,
        settings={
            "quick": {
                "pairs": 400,
                "held back": 10,
                "least words": 4,
                "most words": 12,
                "recipe": _recipe(4),
                "symbols": 260,
                "rows": 8,
                "tokens": 20,
                "repeats": 2,
            },
            "full": {
                "pairs": 20_000,
                "held back": 200,
                "least words": 4,
                "most words": 12,
                "recipe": _recipe(200),
                "symbols": 1000,
                "rows": 32,
                "tokens": 40,
                "repeats": 15,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A pass of training takes longer with an additive score than with a dot or a "
                "general one.",
                chapter_4("4.3.1"),
                All(
                    *(
                        Ratio(SECONDS, {"score": "additive"}, {"score": score}, 1.1)
                        for score in ("dot", "general")
                    )
                ),
                "A multiplicative score that takes within 10 % of the time.",
                judged_at=("full",),
            ),
            Claim(
                "A pass of training holds more memory with an additive score than with a dot or a "
                "general one.",
                chapter_4("Exercise 4.1"),
                All(
                    *(
                        Ratio(BYTES, {"score": "additive"}, {"score": score}, 1.1)
                        for score in ("dot", "general")
                    )
                ),
                "A multiplicative score that holds within 10 % of the memory.",
                judged_at=("full",),
            ),
            Claim(
                "Attention makes a pass of training take twice as long or more.",
                chapter_4("Exercise 4.1"),
                All(
                    *(
                        Ratio(SECONDS, {"score": score}, {"score": "none"}, 2.0)
                        for score in SCORES
                        if score != "none"
                    )
                ),
                "A score function with which a pass takes less than twice the time without.",
                judged_at=("full",),
            ),
            Claim(
                "Attention translates better than none, of captions and into Japanese.",
                _BRITZ,
                All(*(_more(score, "none", 2.0) for score in ("additive", "dot", "general"))),
                "A score function that is within 2 BLEU of no attention.",
                (
                    Published("BLEU, additive", 22.47, _BRITZ),
                    Published("BLEU, multiplicative", 22.33, _BRITZ),
                    Published("BLEU, no attention", 9.98, _BRITZ),
                ),
            ),
            Claim(
                "A dot score translates about as well as an additive one, of captions and into "
                "Japanese.",
                lesson("Luong attention (multiplicative)"),
                _more("dot", "additive", -1.0),
                "A dot score that is more than 1 BLEU worse.",
            ),
            Claim(
                "A dot score translates better than a general one, of captions and into Japanese.",
                _LUONG,
                _more("dot", "general", 0.5),
                "A general score that is within half a BLEU point.",
                _DOT_AND_GENERAL,
            ),
            Claim(
                "A window in a predicted place (local-p) translates better than all positions, of "
                "captions and into Japanese.",
                _LUONG,
                _more("local-p, general", "general", 0.5),
                "All positions that are within half a BLEU point.",
                (
                    Published("BLEU, global, general", 19.1, _LUONG),
                    Published("BLEU, local-p, general", 20.9, _LUONG),
                ),
            ),
        ),
        needs=("multi30k", "tanaka-en-ja"),
    ),
)
