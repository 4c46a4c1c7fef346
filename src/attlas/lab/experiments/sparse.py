"""Sparse patterns beside dense attention: accuracy on reviews and on long copying."""

from collections.abc import Iterator, Mapping

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published, Source
from attlas.lab.experiments.sentiment import RECIPE, accuracy_of, classifier_of, reviews
from attlas.lab.trainings import SMALL_TRANSFORMER, score, toy_settings, trained
from attlas.lab.verdict import Difference, Provided

ACCURACY = "accuracy on new reviews"
TOKENS, SEQUENCES = "token accuracy", "sequence accuracy"


def patterns_of(radius: int, stride: int) -> dict[str, str]:
    """The patterns by name. "strided" and "global" have the window of "local" in them."""
    return {
        "dense": "everywhere",
        "local": f"window({radius})",
        "strided": f"either(window({radius}), strided({stride}))",
        "global": f"either(window({radius}), landmarks(0))",
    }


def reading_models(patterns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The settings of each classifier beside its recipe."""
    return {name: (f"model.patterns=['{pattern}']",) for name, pattern in patterns.items()}


def measure_reviews(context: Context) -> Iterator[Measurement]:
    """Classifiers that differ in what a word may see."""
    s = context.settings
    train, test = reviews(context.seed, (s["train"], s["test"]), s["words"])
    for name in s["models"]:
        run = classifier_of(context, name, train)
        yield Measurement(ACCURACY, accuracy_of(run, test), {"pattern": name})


def measure_copying(context: Context) -> Iterator[Measurement]:
    """Transformers that differ in what the self-attention of encoder and decoder may see."""
    s = context.settings
    for name, pattern in s["patterns"].items():
        settings = [
            *toy_settings("copy", (s["length"], s["length"]), s["updates"]),
            *s["recipe"],
            f"model.encoder_patterns=['{pattern}']",
            f"model.decoder_patterns=['{pattern}']",
        ]
        found = score(trained(context, name, "copy", settings))
        yield Measurement(TOKENS, found.token_accuracy, {"pattern": name})
        yield Measurement(SEQUENCES, found.sequence_accuracy, {"pattern": name})


def _as_good(metric: str, pattern: str, learnt: float) -> Provided:
    """At most 2 points below dense attention, where one of the two has learnt the task."""
    sides = ({"pattern": pattern}, {"pattern": "dense"})
    return Provided(Difference(metric, *sides, -0.02), metric, learnt, *sides)


def _worse(metric: str, pattern: str, learnt: float) -> Provided:
    """At least 2 points below dense attention, where one of the two has learnt the task."""
    sides = ({"pattern": "dense"}, {"pattern": pattern})
    return Provided(Difference(metric, *sides, 0.02), metric, learnt, *sides)


READING = (
    *RECIPE,
    "model.layers=2",
    "model.num_heads=2",
    "model.pooling=mean",
)
_CHILD = Source("Child et al., 2019", "section 4.3 and table 2", read=True)
_BELTAGY = Source("Beltagy et al., 2020", "table 7", read=False)
_BITS = (
    Published("bits per byte on Enwik8, dense", 1.0, _CHILD),
    Published("bits per byte on Enwik8, fixed", 0.99, _CHILD),
    Published("bits per byte on Enwik8, strided", 1.13, _CHILD),
)
_TURNED = (
    "the claim was that the strided pattern is as good as dense attention, and cited the paper "
    "for it. The paper says of text that the strided pattern can fail there, and has a fixed "
    "pattern for it. So the claim and the rule were turned round. The bound of 2 points is the "
    "same."
)
_IMDB = (
    Published("accuracy in % on IMDB, dense, 512 tokens", 95.3, _BELTAGY),
    Published("accuracy in % on IMDB, window and global tokens", 95.7, _BELTAGY),
)
EXPERIMENTS = (
    Experiment(
        name="sparse-reviews",
        title="Sparse attention on film reviews",
        method="Classifiers of two layers read the first words of film reviews, and pool by the "
        "mean. They differ in what a word sees. With dense attention it sees all words, with local "
        "attention a window. With strided attention it also sees each word whose distance is a "
        "multiple of the stride. With global attention it sees the window and the first word, "
        "which sees all. What it costs is in `sparse-cost`.",
        measure=measure_reviews,
        settings={
            "quick": {
                "train": 1000,
                "test": 400,
                "words": 100,
                "epochs": 2,
                "recipe": READING,
                "models": reading_models(patterns_of(4, 10)),
            },
            "full": {
                "train": 2500,
                "test": 1000,
                "words": 160,
                "epochs": 3,
                "recipe": READING,
                "models": reading_models(patterns_of(8, 16)),
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A window is enough to tell good reviews from bad.",
                _BELTAGY,
                _as_good(ACCURACY, "local", 0.7),
                "A window that is more than 2 points worse than dense attention.",
                _IMDB,
            ),
            Claim(
                "On text a window and a stride can be worse than dense attention.",
                _CHILD,
                _worse(ACCURACY, "strided", 0.7),
                "A stride that is at most 2 points worse than dense attention.",
                _BITS,
                revised=_TURNED,
            ),
            Claim(
                "With a window and a global word a classifier is as good as with dense attention.",
                _BELTAGY,
                _as_good(ACCURACY, "global", 0.7),
                "A pattern that is more than 2 points worse than dense attention.",
                _IMDB,
            ),
        ),
        needs=("imdb",),
    ),
    Experiment(
        name="sparse-copying",
        title="Sparse attention on long copying",
        method="Two-layer Transformers copy sequences of one length. They differ in "
        "what the self-attention of encoder and decoder sees. Dense attention sees everything, and "
        "local attention a window. Strided attention also sees each distance that is a multiple of "
        "the stride. Global attention sees the window and the first position. The decoder sees no "
        "later token besides. Cross-attention sees the whole source in all of them.",
        measure=measure_copying,
        settings={
            "quick": {
                "recipe": SMALL_TRANSFORMER,
                "length": 16,
                "updates": 80,
                "patterns": patterns_of(2, 4),
            },
            "full": {
                "recipe": SMALL_TRANSFORMER,
                "length": 64,
                "updates": 400,
                "patterns": patterns_of(8, 8),
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Windows copy long sequences as well as dense attention.",
                _BELTAGY,
                _as_good(TOKENS, "local", 0.9),
                "Windows that are more than 2 points worse than dense attention.",
            ),
            Claim(
                "Where nothing in the data aligns with the stride, windows and strides copy worse "
                "than dense attention.",
                _CHILD,
                _worse(TOKENS, "strided", 0.9),
                "A stride that is at most 2 points worse than dense attention.",
                revised=_TURNED,
            ),
            Claim(
                "Windows and a global position copy long sequences as well as dense attention.",
                _BELTAGY,
                _as_good(TOKENS, "global", 0.9),
                "A pattern that is more than 2 points worse than dense attention.",
            ),
        ),
    ),
)
