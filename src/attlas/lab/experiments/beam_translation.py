"""The width of the beam in translation, by the length of the sentence."""

from collections.abc import Iterator

from attlas.data.corpus import corpus_of
from attlas.data.sources import ShippedData
from attlas.lab.experiment import (
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Plot,
    Published,
    Source,
)
from attlas.lab.experiments.alignment import ending
from attlas.lab.sources import lesson
from attlas.lab.trainings import trained, translations
from attlas.lab.verdict import Difference, Provided, Rule, Widens
from attlas.metrics import corpus_bleu

BLEU = "BLEU on new pairs"
# Words of the English sentence; those of shipped pairs are 3 to 10.
LENGTHS = {"all": (1, 100), "short": (1, 5), "long": (7, 100)}


def measure_widths(context: Context) -> Iterator[Measurement]:
    """One model, which translates the same new sentences with each width."""
    s = context.settings
    run = trained(context, "additive", "demo", s["recipe"])
    corpus = corpus_of(ShippedData().corpus("test").pairs[: s["new"]], "new pairs")
    sizes = [len(source.split()) for source in corpus.sources]
    for beam in s["beams"]:
        search = {} if beam == 1 else {"method": "beam", "num_beams": beam}
        texts = [one.text for one in translations(run, corpus, **search)]
        for length, (low, high) in LENGTHS.items():
            chosen = [i for i, size in enumerate(sizes) if low <= size <= high]
            found = [texts[i] for i in chosen]
            bleu = corpus_bleu(found, [corpus.targets[i] for i in chosen]).value
            yield Measurement(BLEU, bleu, {"sentences": length, "beam": beam})


def _of(beam: int, sentences: str = "all") -> Condition:
    return {"sentences": sentences, "beam": beam}


def _learnt(rule: Rule) -> Provided:
    """The rule, where the model has learnt to translate."""
    return Provided(rule, BLEU, 10.0, _of(1))


def _recipe(updates: int) -> tuple[str, ...]:
    return (
        *ending(updates, "linear"),
        "vocabulary.size=2000",
        "batching.max_tokens=1024",
        "model.embed_dim=128",
        "model.hidden_dim=192",
        "model.encoder_hidden_dim=96",
        "model.dropout=0.1",
        "training.learning_rate=4e-3",
    )


_BRITZ = Source("Britz et al., 2017", "table of beam widths", read=False)
_PUBLISHED = {1: 20.66, 3: 21.55, 5: 21.60, 10: 21.57, 100: 21.10}


def _published(*beams: int) -> tuple[Published, ...]:
    return tuple(Published(f"BLEU, beam of {beam}", _PUBLISHED[beam], _BRITZ) for beam in beams)


EXPERIMENTS = (
    Experiment(
        name="beam-translation",
        title="The width of the beam in translation",
        method="A GRU with additive attention learns to translate English to German with the pairs "
        "that come with attlas (Tatoeba, 3 to 10 English words). It translates new sentences "
        "greedily (beam 1) and with wider beams. The log-probability of an output is divided by "
        "the usual power of its length (length penalty 1). Short sentences have at most 5 English "
        "words, long ones at least 7. The rules were written before any training. After 400 "
        "updates no model had 10 BLEU, and nothing was judged, so there are 1,000 now.",
        measure=measure_widths,
        settings={
            "quick": {"recipe": _recipe(15), "new": 20, "beams": (1, 5, 10)},
            "full": {"recipe": _recipe(1000), "new": 300, "beams": (1, 3, 5, 10, 25, 100)},
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A beam of 5 translates better than greedy search.",
                _BRITZ,
                _learnt(Difference(BLEU, _of(5), _of(1), 0.5)),
                "Greedy search that is within half a BLEU point.",
                _published(1, 3, 5),
                judged_at=("full",),
            ),
            Claim(
                "A beam of 100 translates worse than a beam of 5.",
                _BRITZ,
                _learnt(Difference(BLEU, _of(5), _of(100), 0.2)),
                "A beam of 100 that is within 0.2 BLEU.",
                _published(5, 10, 100),
                judged_at=("full",),
            ),
            Claim(
                "For short sentences greedy search translates as well as a beam of 5.",
                lesson("Exercise 2 of the solutions"),
                _learnt(Difference(BLEU, _of(1, "short"), _of(5, "short"), -0.5)),
                "A beam that is more than half a BLEU point better.",
                judged_at=("full",),
            ),
            Claim(
                "What a beam gains over greedy search in translation grows with length.",
                lesson("Exercise 2 of the solutions"),
                _learnt(
                    Widens(
                        BLEU,
                        {"beam": 5},
                        {"beam": 1},
                        {"sentences": "long"},
                        {"sentences": "short"},
                        0.3,
                    )
                ),
                "A gain on long sentences that is within 0.3 BLEU of that on short ones.",
                judged_at=("full",),
            ),
        ),
        plots=(Plot(BLEU, "beam", "sentences"),),
    ),
)
