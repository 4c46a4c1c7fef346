"""Film reviews: what self-attention learns of them, and whether its weights explain it."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from attlas.analysis import (
    AttentionTarget,
    gradient_correlation,
    leave_one_out_correlation,
    permutation_distance,
    single_erasure,
    uniform_distance,
)
from attlas.data.lines import stream_lines
from attlas.data.vocabulary import END
from attlas.inference.classifier import TextClassifier
from attlas.lab.data import required, spaced_words
from attlas.lab.experiment import (
    AttentionExample,
    Claim,
    Context,
    Experiment,
    Measurement,
    Published,
    Source,
)
from attlas.lab.sources import chapter_4, lesson
from attlas.lab.trainings import trained
from attlas.lab.verdict import All, AtLeast, AtMost, Difference, Provided, Ratio, Rule
from attlas.runs import Run

ACCURACY, ODDS = "accuracy on new reviews", "mean log-odds of a word, without its sign"
CHANGE, FLIPS = "total variation of the output", "share of decisions that change"
TAU = "Kendall's τ with the weights"
POOLING = "pooling.attention"


@dataclass(frozen=True)
class Review:
    """The first words of a review, and whether it is a good one."""

    text: str
    good: bool


def reviews(seed: int, sizes: tuple[int, int], words: int) -> tuple[list[Review], list[Review]]:
    """Reviews to train with, and others, in words and marks; no text is in both."""
    texts: dict[str, bool] = {}
    for line in stream_lines(required("imdb") / "train.jsonl.gz"):
        row = json.loads(line)
        text = re.sub(r"<br\s*/?>", " ", row["text"])
        texts[" ".join(spaced_words(text).split()[:words])] = str(row["label"]) in ("pos", "1")
    order = sorted(texts)
    random.Random(seed).shuffle(order)
    drawn = [Review(text, texts[text]) for text in order[: sum(sizes)]]
    return drawn[: sizes[0]], drawn[sizes[0] :]


def written(path: Path, some: Sequence[Review]) -> Path:
    """Write reviews as JSON, one a line."""
    rows = [{"text": one.text, "label": "good" if one.good else "bad"} for one in some]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8", newline="\n")
    return path


# What counts of words can do.


def grams(text: str, longest: int) -> list[str]:
    """The words of a text, and up to so many in a row.

    Example:
        >>> grams("not so good", 2)
        ['not', 'so', 'good', 'not so', 'so good']
    """
    words = text.split()
    rows = range(1, longest + 1)
    return [" ".join(words[i : i + n]) for n in rows for i in range(len(words) - n + 1)]


@dataclass(frozen=True)
class Counts:
    """Logistic regression of a weighted bag of n-grams.

    Args:
        columns: The column of each n-gram, and its weight.
    """

    columns: dict[str, tuple[int, float]]
    longest: int
    frequent: bool
    coefficients: Float[Tensor, " columns"]

    @classmethod
    def fitted(
        cls, some: Sequence[Review], weights: dict[str, float], *, longest: int, frequent: bool
    ) -> "Counts":
        """Fit by L-BFGS, with a penalty on the squares of the coefficients.

        Args:
            weights: Of each n-gram.
            frequent: Whether an n-gram counts as often as it occurs, by length 1, or once.
        """
        columns = {gram: (i, weight) for i, (gram, weight) in enumerate(weights.items())}
        model = cls(columns, longest, frequent, torch.zeros(len(columns) + 1, requires_grad=True))
        bags = model._bags([one.text for one in some])
        good = torch.tensor([float(one.good) for one in some])
        search: Any = torch.optim.LBFGS(
            [model.coefficients], max_iter=60, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            search.zero_grad()
            penalty = 0.5 * model.coefficients[:-1].square().sum() / len(some)
            value = F.binary_cross_entropy_with_logits(model._scores(bags), good) + penalty
            torch.autograd.backward(value)
            return value

        search.step(loss)
        return model

    def accuracy(self, some: Sequence[Review]) -> float:
        """The share of right decisions."""
        with torch.no_grad():
            scores = self._scores(self._bags([one.text for one in some]))
        right = (scores > 0) == torch.tensor([one.good for one in some])
        return right.double().mean().item()

    def _bags(self, texts: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        columns, values, starts = list[int](), list[float](), list[int]()
        for text in texts:
            starts.append(len(columns))
            counts = Counter(gram for gram in grams(text, self.longest) if gram in self.columns)
            found = [(*self.columns[gram], count) for gram, count in counts.items()]
            row = [weight * (count if self.frequent else 1) for _, weight, count in found]
            norm = sum(value * value for value in row) ** 0.5 if self.frequent else 1.0
            columns += [column for column, _, _ in found]
            values += [value / (norm or 1.0) for value in row]
        return torch.tensor(columns), torch.tensor(values), torch.tensor(starts)

    def _scores(self, bags: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, " texts"]:
        columns, values, starts = bags
        table = self.coefficients[:-1, None]
        sums = F.embedding_bag(columns, table, starts, mode="sum", per_sample_weights=values)
        return sums[:, 0] + self.coefficients[-1]


def inverse_frequencies(some: Sequence[Review], longest: int) -> dict[str, float]:
    """ln((1 + n) / (1 + n_g)) + 1 of each n-gram that two texts have."""
    found = Counter(gram for one in some for gram in set(grams(one.text, longest)))
    total = torch.tensor(1.0 + len(some)).log()
    return {
        gram: (total - torch.tensor(1.0 + count).log()).item() + 1
        for gram, count in found.items()
        if count > 1
    }


def log_odds(some: Sequence[Review], longest: int) -> dict[str, float]:
    """ln of (p_g / Σ p) / (q_g / Σ q), with 1 added to the texts p, q, good and bad, of a gram g.

    Wang & Manning, 2012, section 2.1.
    """
    sides = [
        Counter(g for one in some if one.good is good for g in set(grams(one.text, longest)))
        for good in (True, False)
    ]
    names = [gram for gram, count in (sides[0] + sides[1]).items() if count > 1]
    good, bad = (torch.tensor([1.0 + side[gram] for gram in names]) for side in sides)
    ratios = (good / good.sum()).log() - (bad / bad.sum()).log()
    return dict(zip(names, ratios.tolist(), strict=True))


# What self-attention does.

RECIPE = (
    "vocabulary.kind=words",
    "vocabulary.size=8000",
    "model.embed_dim=32",
    "model.ffn_dim=64",
    "model.dropout=0.3",
    "model.word_dropout=0.2",
    "training.rdrop_alpha=0",
    "training.learning_rate=3e-3",
    "training.optimizer={kind='adamw', weight_decay=0.1}",
    "training.averaging={kind='none'}",
)
MODELS = {
    "mean": ("model.pooling=mean", "model.patterns=['everywhere']", "model.num_heads=2"),
    "attentive": ("model.pooling=attentive", "model.patterns=['everywhere']", "model.num_heads=2"),
    "itself alone": ("model.pooling=mean", "model.patterns=['window(0)']", "model.num_heads=2"),
}


def classifier_of(context: Context, name: str, train: Sequence[Review]) -> Run:
    """A classifier of the reviews; some of them choose its checkpoint."""
    s = context.settings
    data = written(context.folder / "train.jsonl", train)
    updates = s["epochs"] * -(-len(train) * s["words"] // 4096)
    ends = [
        f"data.train='{data}'",
        f"data.held_back={len(train) // 10}",
        f"training.max_epochs={s['epochs']}",
        f"training.schedule={{kind='cosine', warmup={updates // 10}, total_steps={updates}}}",
    ]
    return trained(
        context, name.replace(" ", "-"), "imdb", [*ends, *s["recipe"], *s["models"][name]]
    )


def accuracy_of(run: Run, some: Sequence[Review]) -> float:
    """The share of right labels."""
    found = TextClassifier(run).stream([one.text for one in some])
    right = [(one.label == "good") == review.good for one, review in zip(found, some, strict=True)]
    return sum(right) / len(right)


def measure_sentiment(context: Context) -> Iterator[Measurement]:
    """Classifiers with and without self-attention, and what the weights of one say."""
    s = context.settings
    train, test = reviews(context.seed, (s["train"], s["test"]), s["words"])
    model = Counts.fitted(train, inverse_frequencies(train, 1), longest=1, frequent=True)
    yield Measurement(ACCURACY, model.accuracy(test), {"model": "TF-IDF"})
    odds = log_odds(train, 2)
    model = Counts.fitted(train, odds, longest=2, frequent=False)
    yield Measurement(ACCURACY, model.accuracy(test), {"model": "naive Bayes, two words"})
    for name in s["models"]:
        run = classifier_of(context, name, train)
        yield Measurement(ACCURACY, accuracy_of(run, test), {"model": name})
        if name == "attentive":
            yield from looks_of(run, test, odds)
            yield from explanations_of_reviews(run, test[: s["explained"]], context.seed)


OWN_REVIEW = (
    "The story is dull at first and the music is awful, but the ending is wonderful, and the "
    "actors are great."
)


def review_examples(context: Context) -> Iterator[AttentionExample]:
    """What the attentive classifier looks at in a review that is in no collection."""
    s = context.settings
    train, _ = reviews(context.seed, (s["train"], s["test"]), s["words"])
    found = TextClassifier(classifier_of(context, "attentive", train))(spaced_words(OWN_REVIEW))
    caption = f"A review of our own, taken for {found.label}."
    yield AttentionExample("review", caption, found.trace, list(found.trace)[-1])


def looks_of(run: Run, some: Sequence[Review], odds: dict[str, float]) -> Iterator[Measurement]:
    """How telling the word is that the pooling looks at most, beside all words."""
    classifier, vocabulary = run.classifier(), run.labelled_vocabularies().text
    best, every = list[float](), list[float]()
    for one in some:
        ids = vocabulary.encode(one.text)
        with torch.no_grad():
            _, weights = classifier.forward_with_weights(torch.tensor([[*ids, END]]))
        words = [abs(odds.get(word, 0.0)) for word in one.text.split()]
        best.append(words[int(weights[0, 0, : len(words)].argmax())])
        every += words
    yield Measurement(ODDS, sum(best) / len(best), {"word": "most looked at"})
    yield Measurement(ODDS, sum(every) / len(every), {"word": "any"})


def explanations_of_reviews(run: Run, some: Sequence[Review], seed: int) -> Iterator[Measurement]:
    """What becomes of the output with other weights, and what the weights go along with."""
    model, vocabulary = run.classifier(), run.labelled_vocabularies().text
    rows = [torch.tensor([*vocabulary.encode(one.text), END]) for one in some]
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def logits() -> Tensor:
        found: Tensor = model(source)
        return found

    target = AttentionTarget(POOLING)
    permuted = permutation_distance(model, logits, seed=seed, draws=20, layers=POOLING).median
    yield Measurement(CHANGE, permuted.mean().item(), {"weights": "permuted"})
    even = uniform_distance(model, logits, layers=POOLING)
    yield Measurement(CHANGE, even.mean().item(), {"weights": "even"})
    erased = single_erasure(model, logits, target, seed=seed, draws=5)
    for name, key in (("most looked at", erased.greatest), ("random", erased.random)):
        yield Measurement(FLIPS, key.flipped.double().mean().item(), {"without the word": name})
    for name, correlation in (
        ("gradients", gradient_correlation),
        ("leaving one out", leave_one_out_correlation),
    ):
        tau = correlation(model, logits, target).tau
        yield Measurement(TAU, tau[~tau.isnan()].mean().item(), {"of": name})


def _of(model: str) -> dict[str, str]:
    return {"model": model}


def _learnt(rule: Rule) -> Provided:
    """The rule, where the model with attentive pooling has learnt to tell reviews apart."""
    return Provided(rule, ACCURACY, 0.7, _of("attentive"))


_KERAS = Source("Keras, Text classification with Transformer", "the last output", read=False)
_WANG = Source("Wang & Manning, 2012", "table 2", read=False)
_JAIN = Source("Jain & Wallace, 2019", "table 2", read=False)
_WIEGREFFE = Source("Wiegreffe & Pinter, 2019", "table 3", read=False)
_SERRANO = Source("Serrano & Smith, 2019", "section 4", read=False)
EXPERIMENTS = (
    Experiment(
        name="sentiment",
        title="Film reviews: what self-attention learns, and whether its weights explain it",
        method="Classifiers read the first words of film reviews: embedding, one layer of "
        "self-attention, pooling, a linear map. They differ in the pooling; in one of them a word "
        "sees itself alone. Beside them are logistic regressions of counted words: TF-IDF of "
        "words, and the log-odds of words and pairs (naive Bayes). New reviews come from the same "
        "collection, and may be of the same films, so accuracies are not those of the test set. "
        "What weights explain is asked of the attentive pooling, which has one weight for a word.",
        measure=measure_sentiment,
        examples=review_examples,
        settings={
            "quick": {
                "train": 1500,
                "test": 400,
                "words": 80,
                "epochs": 3,
                "explained": 20,
                "recipe": RECIPE,
                "models": MODELS,
            },
            "full": {
                "train": 4000,
                "test": 1000,
                "words": 120,
                "epochs": 5,
                "explained": 60,
                "recipe": RECIPE,
                "models": MODELS,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Embedding, self-attention, pooling and a linear map tell good reviews from bad.",
                chapter_4("Exercise 4.3"),
                AtLeast(ACCURACY, 0.75, _of("mean")),
                "An accuracy below 75 %.",
                (Published("accuracy, Keras' one block", 0.865, _KERAS),),
                judged_at=("full",),
            ),
            Claim(
                "Self-attention is better at it than counted words.",
                chapter_4("Exercise 4.3"),
                _learnt(
                    All(
                        Difference(ACCURACY, _of("mean"), _of("TF-IDF")),
                        Difference(ACCURACY, _of("mean"), _of("naive Bayes, two words")),
                    )
                ),
                "Counted words that are better, by either method.",
                (Published("accuracy, NB-SVM with pairs of words", 0.912, _WANG),),
            ),
            Claim(
                "It helps that a word sees the others.",
                chapter_4("Exercise 4.3"),
                _learnt(Difference(ACCURACY, _of("mean"), _of("itself alone"), 0.01)),
                "A model in which each word sees itself alone, and which is within 1 point.",
            ),
            Claim(
                "Weights show the telling words.",
                lesson("Attention as interpretability"),
                _learnt(Ratio(ODDS, {"word": "most looked at"}, {"word": "any"}, 1.5)),
                "A word with the greatest weight that is less than 1.5 times as telling as any.",
            ),
            Claim(
                "Weights can be permuted without changing the output of a trained model.",
                lesson("Attention as interpretability"),
                _learnt(AtMost(CHANGE, 0.05, {"weights": "permuted"})),
                "A mean total variation above 0.05, of the median over permutations.",
            ),
            Claim(
                "A model that is trained with even weights is about as good.",
                _WIEGREFFE,
                _learnt(Difference(ACCURACY, _of("mean"), _of("attentive"), -0.03)),
                "Even weights (mean pooling) that cost more than 3 points.",
                (
                    Published("F1, even weights", 0.879, _WIEGREFFE),
                    Published("F1, learnt weights", 0.902, _WIEGREFFE),
                ),
            ),
            Claim(
                "Weights rank words as gradients and leaving a word out do.",
                chapter_4("4.7"),
                _learnt(
                    All(
                        AtLeast(TAU, 0.5, {"of": "gradients"}),
                        AtLeast(TAU, 0.5, {"of": "leaving one out"}),
                    )
                ),
                "A rank correlation below 0.5.",
                (
                    Published("τ with gradients", 0.37, _JAIN),
                    Published("τ with leaving one out", 0.23, _JAIN),
                ),
            ),
            Claim(
                "Without the word with the greatest weight more decisions change than without "
                "another.",
                _SERRANO,
                _learnt(
                    Difference(
                        FLIPS,
                        {"without the word": "most looked at"},
                        {"without the word": "random"},
                        0.01,
                    )
                ),
                "A difference below 1 point.",
            ),
        ),
        needs=("imdb",),
    ),
)
