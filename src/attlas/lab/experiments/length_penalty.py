"""The length of outputs by the width of the beam, with and without a length penalty."""

from collections.abc import Iterator
from typing import Any

from attlas.data.sources import ToyData
from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published, Source
from attlas.lab.trainings import SMALL_RECURRENT, toy_settings, trained, translations
from attlas.lab.verdict import Difference
from attlas.metrics import token_accuracy

TOKENS, LENGTH = "token accuracy", "tokens of the outputs for each token of the references"
BEAMS = (4, 10)
PENALTIES = (0.0, 1.0)


def measure_penalties(context: Context) -> Iterator[Measurement]:
    """One model, searched greedily and with each beam and penalty."""
    s = context.settings
    settings = [
        *toy_settings("reverse", s["lengths"], s["updates"]),
        *s["recipe"],
        "model.attention=none",
    ]
    run = trained(context, "none", "reverse", settings)
    toy = ToyData(
        task="reverse", length=s["lengths"], symbols=16, test=s["texts"], seed=context.seed
    )
    corpus = toy.corpus("test")
    vocabulary = run.vocabularies().target
    references = [vocabulary.encode(text) for text in corpus.targets]
    searches: list[tuple[int, float, dict[str, Any]]] = [(1, 0.0, {})]
    searches += [
        (beam, penalty, {"method": "beam", "num_beams": beam, "length_penalty": penalty})
        for beam in BEAMS
        for penalty in PENALTIES
    ]
    for beam, penalty, search in searches:
        outputs = [vocabulary.encode(found.text) for found in translations(run, corpus, **search)]
        ratio = sum(map(len, outputs)) / sum(map(len, references))
        yield Measurement(LENGTH, ratio, _of(beam, penalty))
        yield Measurement(TOKENS, token_accuracy(outputs, references), _of(beam, penalty))


def _of(beam: int, penalty: float) -> dict[str, int | float]:
    return {"beam": beam, "length penalty": penalty}


_WU = Source("Wu et al., 2016", "section 7, table 2", read=True)
EXPERIMENTS = (
    Experiment(
        name="length-penalty",
        title="The length of outputs, and a length penalty",
        method="A GRU without attention learns to reverse, and stays unsure of most symbols. It is "
        "searched greedily (beam 1), and with wider beams. The log-probability of an output is "
        "divided by a power of its length (length penalty 1), or is left as it is (0).",
        measure=measure_penalties,
        settings={
            "quick": {
                "recipe": SMALL_RECURRENT,
                "lengths": (4, 12),
                "updates": 120,
                "texts": 200,
            },
            "full": {
                "recipe": SMALL_RECURRENT,
                "lengths": (4, 12),
                "updates": 250,
                "texts": 200,
            },
        },
        seeds={"quick": 2, "full": 5},
        claims=(
            Claim(
                "A wider beam makes outputs shorter.",
                Source("Murray & Chiang, 2018", "section 2", read=False),
                Difference(LENGTH, _of(1, 0.0), _of(10, 0.0), 0.02),
                "Outputs of a beam of 10 that are less than 2 % shorter than greedy ones.",
                judged_at=("full",),
            ),
            Claim(
                "A length penalty makes them longer again.",
                _WU,
                Difference(LENGTH, _of(10, 1.0), _of(10, 0.0), 0.02),
                "Outputs with a penalty that are less than 2 % longer than without one.",
                judged_at=("full",),
            ),
            Claim(
                "With a length penalty the outputs of a beam are better.",
                _WU,
                Difference(TOKENS, _of(10, 1.0), _of(10, 0.0), 0.01),
                "Outputs without a penalty that are within 1 point.",
                (
                    Published("BLEU, no penalties", 30.3, _WU),
                    Published("BLEU, penalties of length and coverage of 0.2", 31.4, _WU),
                ),
                judged_at=("full",),
            ),
        ),
        plots=(Plot(LENGTH, "beam", "length penalty"),),
    ),
)
