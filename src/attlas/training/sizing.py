"""The settings of a recipe by the size of the data: one rule for each setting."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attlas._text import count_noun
from attlas.errors import DataError

FEWEST_PAIRS, FEWEST_TEXTS = 50, 20  # with fewer there is nothing to measure on
_FEW_PAIRS, _FEW_TEXTS = 10_000, 200  # with fewer the result is poor, and the user is warned
_MIDDLE = 3_000  # pairs: the size that the rules for pairs are written from
_REVIEWS = 22_500  # texts: the size that the rules for texts are written from
_MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class DataSize:
    """The facts about the data that the rules use.

    Args:
        examples: Pairs, or labelled texts.
        length: Characters of an example, on average; of a pair those of its longer side.
        longest: Characters of the longest text.
        alphabet: Different characters.
        labels: How many texts have each label; empty for pairs.
        common: The share of the target's letters that the source has as well.
        bleu_tokenizer: The tokenizer of BLEU that suits the target; another than "13a" where it has
            no spaces between words.
        decomposed: Whether there are letters that Unicode also has as one character, such as e
            with U+0301.
    """

    examples: int
    length: float
    longest: int
    alphabet: int
    labels: Mapping[str, int] = field(default_factory=dict)
    common: float = 1.0
    bleu_tokenizer: str = "13a"
    decomposed: bool = False

    @property
    def example(self) -> str:
        """What an example is: "pair" or "text"."""
        return "text" if self.labels else "pair"

    @property
    def decades(self) -> float:
        """log₁₀(examples / 3,000): 0 for 3,000 pairs, 1 for 30,000."""
        return math.log10(self.examples / _MIDDLE)


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting by its dotted name, its value, and the reason for it."""

    setting: str
    value: Any
    why: str


Chosen = Mapping[str, Any]
"""The settings that are chosen already, by their dotted names."""
Rule = Callable[[DataSize, Chosen], tuple[Any, str] | None]
"""The value of one setting and the reason; None: the setting is left out."""
SET_BY_USER = "set with --set"


def choose(size: DataSize, fixed: Mapping[str, Any] | None = None) -> list[Choice]:
    """The settings for data of this size.

    Args:
        size: The data.
        fixed: Settings that are fixed already, by their dotted names. They take the place of what
            a rule says, and later rules go by them: half of the updates, half of the warm-up.

    Returns:
        One choice for each setting, in the order of a recipe.

    Raises:
        DataError: For too few examples, or fewer than two labels.
    """
    _check_enough(size)
    chosen, choices = dict(fixed or {}), []
    for setting, rule in (_TEXTS if size.labels else _PAIRS).items():
        if setting in chosen:
            choices.append(Choice(setting, chosen[setting], SET_BY_USER))
        elif (value := rule(size, chosen)) is not None:
            chosen[setting], reason = value
            choices.append(Choice(setting, chosen[setting], reason))
    return choices


def warnings_of(size: DataSize) -> list[str]:
    """Warnings about the size of the data."""
    num_examples = count_noun(size.examples, size.example)
    if size.labels:
        if size.examples < _FEW_TEXTS:
            return [f"{num_examples} are few: expect many wrong labels"]
        return [
            f"the label {label!r} has {count_noun(count, 'text')}: expect it rarely right. If it "
            "is a mistake in the data, correct it there"
            for label, count in size.labels.items()
            if count < _RARE
        ]
    if size.examples < 1_000:
        return [
            f"{num_examples} are too few to learn to translate: expect sentences that have little "
            "to do with their source. Collect more pairs, 10,000 or more"
        ]
    if size.examples < _FEW_PAIRS:
        return [
            f"{num_examples} are few: expect some right words, and few right sentences. From about "
            "10,000 pairs on, short sentences begin to come out right"
        ]
    if size.examples > 300_000:
        return [
            f"{num_examples} are more than the rules were made for: compare with the recipe base"
        ]
    return []


def _check_enough(size: DataSize) -> None:
    fewest = FEWEST_TEXTS if size.labels else FEWEST_PAIRS
    if size.examples < fewest:
        raise DataError(
            f"at least {fewest} {size.example}s to train on",
            count_noun(size.examples, size.example),
            "add more; a model needs thousands to learn much",
        )
    if len(size.labels) == 1:
        raise DataError(
            "texts with two labels or more",
            f"the label {next(iter(size.labels))!r} alone",
            "check the column of the label (--set data.label=…)",
        )


# Rules for pairs and for texts.


def _held_back(size: DataSize, chosen: Chosen) -> tuple[int, str] | None:
    if chosen.get("data.valid"):
        return None
    max_pairs = 1_000
    count = min(size.examples // 10, max_pairs)
    share = "a tenth" if count < max_pairs else f"{count / size.examples:.1%}"
    return count, f"{share} of the {size.example}s, to choose the best weights by"


def _normalization(size: DataSize, chosen: Chosen) -> tuple[str, str] | None:
    if not size.decomposed:
        return None
    return "nfc", "some letters are written as two characters, and others like them as one"


def _learning_rate(size: DataSize, chosen: Chosen) -> tuple[float, str]:
    kind = chosen.get("training.optimizer.kind")
    return {"muon": 6e-3}.get(str(kind), 1.5e-3), f"what {kind} needs"


def _warmup(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    return max(1, _steps_of(size, chosen) // 12), "a twelfth of the updates"


def _total_steps(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    return max(_steps_of(size, chosen), chosen["training.schedule.warmup"] + 1), (
        "the learning rate falls until the last update"
    )


def _validation_interval(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    parts = 4
    return max(1, _steps_of(size, chosen) // parts), f"{parts} times in the training"


def _max_steps(size: DataSize, chosen: Chosen) -> tuple[int, str] | None:
    if "training.max_epochs" in chosen:
        return None
    steps, passes = _plan_updates(size, chosen)
    remark = ", the most" if steps == _MOST_STEPS else ""
    return steps, f"each {size.example} is read about {passes:,.0f} times{remark}"


def _steps_of(size: DataSize, chosen: Chosen) -> int:
    """The updates of the whole training, also where max_epochs ends it."""
    return int(chosen.get("training.max_steps") or _plan_updates(size, chosen)[0])


def _plan_updates(size: DataSize, chosen: Chosen) -> tuple[int, float]:
    """How many updates are to be made, and how often each example is then read."""
    passes = float(chosen.get("training.max_epochs") or _passes(size))
    updates = passes * size.examples / _examples_in_batch(size, chosen)
    steps = _rounded(updates)
    if "training.max_epochs" not in chosen:
        steps = min(max(steps, 100), _MOST_STEPS)
    return steps, passes * steps / updates


def _examples_in_batch(size: DataSize, chosen: Chosen) -> float:
    """An estimate: batches are about nine tenths full."""
    examples_in_full_batch = 0.9 * chosen["batching.max_tokens"] / _tokens(size)
    rows = float(chosen.get("batching.rows") or math.inf)
    return max(1.0, min(float(examples_in_full_batch), rows))


def _tokens(size: DataSize) -> float:
    """Tokens of an example, its end included; longer subwords are learned of more text."""
    return size.length / (2.9 + 0.6 * max(-1.0, min(size.decades, 2.0))) + 1.0


def _passes(size: DataSize) -> float:
    """Ten times the data is read a third as often, so both data and work grow."""
    if size.labels:
        return min(60.0, max(3.0, 4.0 * math.sqrt(_REVIEWS / size.examples)))
    return min(60.0, max(3.0, 40.0 * math.sqrt(_MIDDLE / size.examples)))


def _rounded(number: float) -> int:
    """With two leading digits."""
    if number < 10:
        return max(1, round(number))
    unit = int(10 ** (math.floor(math.log10(number)) - 1))
    return round(number / unit) * unit


def _power_of_two(number: float) -> int:
    """The largest one that is not above the number."""
    return int(2 ** math.floor(math.log2(number)))


def _fixed(value: Any, reason: str) -> Rule:
    return lambda size, chosen: (value, reason)


_LABEL_SMOOTHING = _fixed(0.1, "the same for all sizes")
_SCHEDULE: dict[str, Rule] = {
    "training.schedule.kind": _fixed("cosine", "rises, then falls to 0"),
    "training.schedule.warmup": _warmup,
    "training.schedule.total_steps": _total_steps,
}
"""The schedule of the learning rate, the same for pairs and texts."""


# Rules for pairs. The same for all sizes, or by √n or log n from what suits 3,000 and 30,000.


def _size_of_pairs(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    wanted_size = _rounded(25 * math.sqrt(size.examples))
    least = 260 + size.alphabet + 40
    if wanted_size <= least:
        return least, "the least: 256 bytes, each character, and a few subwords"
    chosen_size = min(wanted_size, 16_000)
    return chosen_size, "25 · √pairs: few pairs show few words often enough to learn them"


def _share_vocabulary(size: DataSize, chosen: Chosen) -> tuple[bool, str]:
    if size.common < 0.5:
        return False, "the languages have different letters"
    return True, "the languages have the same letters"


def _tokens_of_pairs(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    budget = _power_of_two(1024 * 10 ** (0.5 * size.decades))
    max_tokens = 4096
    return min(max(budget, 512), max_tokens), "few pairs: small batches, so that an epoch has many"


def _embed_dim(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    dim = 64 * min(max(round(2 + size.decades), 1), 4)
    return dim, "64 more for ten times the pairs: a larger model needs more text"


def _ffn_dim(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    return 3 * int(chosen["model.embed_dim"]), "3 · embed_dim"


def _layers(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    return (2 if size.examples < 1_000 else 3), "2 below 1,000 pairs, else 3"


def _dropout_of_pairs(size: DataSize, chosen: Chosen) -> tuple[float, str]:
    dropout = min(max(0.3 - 0.15 * size.decades, 0.1), 0.4)
    return round(20 * dropout) / 20, "the fewer the pairs, the more: else they are learned by heart"


def _criterion_of_pairs(size: DataSize, chosen: Chosen) -> tuple[str, str]:
    validation_size = chosen.get("data.held_back")
    few = (
        validation_size is not None
        and validation_size * (size.examples if validation_size < 1 else 1) < 100
    )
    if few:
        return "loss", "BLEU of fewer than 100 pairs says little"
    return "bleu", "the loss is lowest long before the translations are best"


def _bleu_tokenizer(size: DataSize, chosen: Chosen) -> tuple[str, str] | None:
    if size.bleu_tokenizer == "13a":
        return None
    return size.bleu_tokenizer, "the target has no spaces between words"


_PAIRS: dict[str, Rule] = {
    "data.held_back": _held_back,
    "vocabulary.kind": _fixed("bpe", "subwords: no word is unknown"),
    "vocabulary.size": _size_of_pairs,
    "vocabulary.shared": _share_vocabulary,
    "vocabulary.normalization": _normalization,
    "batching.max_tokens": _tokens_of_pairs,
    "model.kind": _fixed("transformer", "faster to train than a recurrent model"),
    "model.embed_dim": _embed_dim,
    "model.num_heads": _fixed(4, "the same for all sizes"),
    "model.ffn_dim": _ffn_dim,
    "model.encoder_layers": _layers,
    "model.decoder_layers": _layers,
    "model.dropout": _dropout_of_pairs,
    "training.max_steps": _max_steps,
    "training.optimizer.kind": _fixed("muon", "needs fewer updates than Adam"),
    "training.optimizer.iterations": _fixed(3, "as good as 5 for models of this size"),
    "training.learning_rate": _learning_rate,
    "training.label_smoothing": _LABEL_SMOOTHING,
    **_SCHEDULE,
    "training.validation.every": _validation_interval,
    "training.validation.criterion": _criterion_of_pairs,
    "training.validation.sentences": _fixed(300, "at most so many are translated each time"),
    "training.validation.bleu_tokenizer": _bleu_tokenizer,
    "decoding.num_beams": _fixed(5, "the same for all sizes"),
}


# Rules for labelled texts, from the recipe imdb.


def _size_of_texts(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    least = 260 + size.alphabet + 40
    wanted_size = _rounded(10 * math.sqrt(size.examples * max(1.0, size.length / 50)))
    max_size = 24_000
    return max(least, min(wanted_size, max_size)), "grows with the square root of the text"


def _tokens_of_texts(size: DataSize, chosen: Chosen) -> tuple[int, str]:
    full_batch = size.longest / 2 + 2
    budget = max(1024, 2 * _power_of_two(full_batch)) if full_batch < 4096 else 8192
    return budget, "room for the longest text" if full_batch < 4096 else "longer texts are cut"


def _layer_pattern(size: DataSize, chosen: Chosen) -> tuple[list[str], str]:
    if size.longest > 1_000:
        return ["window(16)"], "long texts: each token sees 16 to each side"
    return ["everywhere"], "short texts: each token sees all others"


_RARE = 10  # texts: a label with fewer cannot be learned


def _learnable(size: DataSize) -> dict[str, int]:
    """The labels that have enough texts, and how many; all labels if there are none of these."""
    return {k: n for k, n in size.labels.items() if n >= _RARE} or dict(size.labels)


def _imbalance(size: DataSize) -> float:
    counts = _learnable(size).values()
    return max(counts) / min(counts)


def _class_weights(size: DataSize, chosen: Chosen) -> tuple[str | dict[str, float], str] | None:
    """ "balanced"; where labels are too rare to be learned, weights that do not raise these.

    A label with one text of 600 would weigh hundreds of times as much as the others, and the model
    would give it to every text.
    """
    if _imbalance(size) < 3:
        return None
    why = f"one label is {_imbalance(size):,.0f} times as frequent as another"
    counts = _learnable(size)
    if len(counts) == len(size.labels):
        return "balanced", why
    total = sum(counts.values())
    weights = {k: float(f"{total / (len(counts) * n):.4g}") for k, n in counts.items()}
    return weights, f"{why}; labels with fewer than {_RARE} texts weigh 1"


def _criterion_of_texts(size: DataSize, chosen: Chosen) -> tuple[str, str]:
    if _imbalance(size) < 3:
        return "accuracy", "the labels are about equally frequent"
    return "macro_f1", "each label counts as much as any other"


def _averaging(size: DataSize, chosen: Chosen) -> tuple[str, str] | None:
    if _steps_of(size, chosen) < 2_000:
        return None
    return "ema", "a training this long gains from it"


_TEXTS: dict[str, Rule] = {
    "data.held_back": _held_back,
    "vocabulary.kind": _fixed("bpe", "subwords: no word is unknown"),
    "vocabulary.size": _size_of_texts,
    "vocabulary.normalization": _normalization,
    "batching.max_tokens": _tokens_of_texts,
    "batching.rows": _fixed(32, "at most so many texts an update, however short"),
    "batching.overlong": _fixed("cut", "of a text too long, the beginning is read"),
    "model.kind": _fixed("classifier", "labels come out"),
    "model.embed_dim": _fixed(64, "the same for all sizes"),
    "model.num_heads": _fixed(4, "the same for all sizes"),
    "model.ffn_dim": _fixed(128, "the same for all sizes"),
    "model.patterns": _layer_pattern,
    "model.dropout": _fixed(0.4, "the same for all sizes"),
    "model.word_dropout": _fixed(0.3, "no single word decides"),
    "training.max_steps": _max_steps,
    "training.optimizer.kind": _fixed("adamw", "with a decay of the weights"),
    "training.optimizer.weight_decay": _fixed(0.1, "the same for all sizes"),
    "training.learning_rate": _learning_rate,
    "training.label_smoothing": _LABEL_SMOOTHING,
    "training.class_weights": _class_weights,
    **_SCHEDULE,
    "training.averaging.kind": _averaging,
    "training.validation.every": _validation_interval,
    "training.validation.criterion": _criterion_of_texts,
}


def as_tables(choices: Sequence[Choice]) -> dict[str, Any]:
    """The choices as the nested tables of a recipe."""
    tables: dict[str, Any] = {}
    for choice in choices:
        *outer, key = choice.setting.split(".")
        table = tables
        for name in outer:
            table = table.setdefault(name, {})
        table[key] = choice.value
    return tables


_NAMED = 2  # names of a list beside the first two


def choice_rows(choices: Sequence[Choice]) -> Iterator[tuple[str, str, str]]:
    """The choices in words: setting, value, reason."""
    for choice in choices:
        value = choice.value
        if isinstance(value, bool):
            shown = str(value).lower()
        elif isinstance(value, int):
            shown = f"{value:,}"
        elif isinstance(value, list | tuple):
            parts = [
                " and ".join(map(str, part)) if isinstance(part, list | tuple) else str(part)
                for part in value
            ]
            others = len(parts) - 2
            shown = ", ".join(parts[:2] if others > _NAMED else parts)
            shown += f", and {others:,} more" if others > _NAMED else ""
        else:
            shown = str(value)
        yield choice.setting, shown, choice.why
