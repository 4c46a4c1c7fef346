"""Texts that are longer than those of the training, by the way in which positions are known."""

from collections.abc import Iterator

from attlas.data.sources import ToyData
from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published, Source
from attlas.lab.sources import chapter_17, lesson
from attlas.lab.trainings import SMALL_TRANSFORMER, score, toy_settings, trained
from attlas.lab.verdict import ONE_TEST, Alike, Difference, Provided, Rule

TOKENS = "token accuracy"


def measure_lengths(context: Context) -> Iterator[Measurement]:
    """Copy sequences of the trained lengths, and longer ones."""
    s = context.settings
    for positions in ("sinusoidal", "learned", "rotary", "none"):
        settings = [
            *toy_settings("copy", s["trained"], s["updates"]),
            *s["recipe"],
            f"model.positions={positions}",
        ]
        run = trained(context, positions, "copy", settings)
        for length in s["lengths"]:
            data = ToyData(
                task="copy", length=(length, length), symbols=16, test=200, seed=context.seed
            )
            found = score(run, data.corpus("test")).token_accuracy
            yield Measurement(TOKENS, found, {"positions": positions, "length": length})


def _of(positions: str, length: int) -> dict[str, str | int]:
    return {"positions": positions, "length": length}


def _learnt(rule: Rule, *positions: str) -> Provided:
    """The rule, where one of these models copies the longest of the trained lengths."""
    return Provided(rule, TOKENS, 0.9, *(_of(name, 12) for name in positions))


_VASWANI = Source("Vaswani et al., 2017", "table 3, base and row E", read=True)
_PRESS = Source("Press et al., 2022", "section 2.2", read=True)
EXPERIMENTS = (
    Experiment(
        name="longer-than-trained",
        title="Texts that are longer than those of the training",
        method="Two-layer Transformers learn to copy sequences of 4 to 12 symbols. "
        "They differ in how positions are known. They then copy sequences of 12 symbols, and "
        "longer ones. A learned position that no training text reached keeps the vector that it "
        "began with.",
        measure=measure_lengths,
        settings={
            "quick": {
                "recipe": SMALL_TRANSFORMER,
                "trained": (4, 12),
                "lengths": (12, 24),
                "updates": 150,
            },
            "full": {
                "recipe": SMALL_TRANSFORMER,
                "trained": (4, 12),
                "lengths": (12, 24),
                "updates": 600,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Sinusoidal positions generalise to lengths that the training did not have.",
                chapter_17("4"),
                _learnt(
                    Difference(TOKENS, _of("sinusoidal", 24), _of("sinusoidal", 12), -0.1),
                    "sinusoidal",
                ),
                "An accuracy at length 24 that is more than 10 points below that at length 12.",
                (
                    Published(
                        "tokens beyond 512 trained ones that lower the perplexity, sinusoidal",
                        20.0,
                        _PRESS,
                    ),
                ),
            ),
            Claim(
                "Rotary positions generalise to longer texts better than sinusoidal ones.",
                _PRESS,
                _learnt(
                    Difference(TOKENS, _of("rotary", 24), _of("sinusoidal", 24), 0.02),
                    "rotary",
                    "sinusoidal",
                ),
                "Rotary positions that are at most 2 points better at length 24.",
                (
                    Published(
                        "tokens beyond 512 trained ones that lower the perplexity, sinusoidal",
                        20.0,
                        _PRESS,
                    ),
                    Published(
                        "tokens beyond 512 trained ones that lower the perplexity, rotary",
                        200.0,
                        _PRESS,
                    ),
                ),
            ),
            Claim(
                "At trained lengths learned positions are as good as sinusoidal ones.",
                _VASWANI,
                _learnt(
                    Alike(TOKENS, _of("learned", 12), _of("sinusoidal", 12), 0.02),
                    "learned",
                    "sinusoidal",
                ),
                "A difference of more than 2 points.",
                (
                    Published("BLEU, sinusoidal positions", 25.8, _VASWANI),
                    Published("BLEU, learned positions", 25.7, _VASWANI),
                ),
                revised=ONE_TEST,
            ),
            Claim(
                "Without positions a Transformer does not know the order of a text.",
                lesson("Positional encoding: the missing piece"),
                _learnt(
                    Difference(TOKENS, _of("sinusoidal", 12), _of("none", 12), 0.2), "sinusoidal"
                ),
                "A model without positions that copies within 20 points as well as one with them.",
            ),
        ),
        plots=(Plot(TOKENS, "length", "positions"),),
    ),
)
