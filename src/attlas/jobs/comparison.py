"""`attlas compare`: several runs on one test set."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attlas._text import count_noun
from attlas.data import LabelledCorpus
from attlas.errors import ConfigError, DataError
from attlas.figures import heatmaps, save
from attlas.figures.heatmap import HeadMap
from attlas.figures.trace import maps_of
from attlas.inference import TextClassifier, Translator
from attlas.jobs.evaluation import ScoredTexts, classified, tokenizer_of, translated
from attlas.jobs.inputs import UnscoredError
from attlas.metrics import (
    BleuTokenizer,
    better_tokenizers,
    label_scores,
    macro_f1,
    wilson_interval,
)
from attlas.recording import Trace
from attlas.runs import Run

SAMPLES = 1_000
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Compared:
    """One run of a comparison.

    Args:
        run: Its folder.
        checkpoint: Which checkpoint was scored.
        seconds: How long the test set took.
        scores: Each score by its name: value, interval, and p of the difference to the first run.
        facts: Parameters, bytes of the checkpoint, updates and seconds of the training.
    """

    run: str
    checkpoint: str
    seconds: float
    scores: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)


def check_comparable(runs: Sequence[Run]) -> bool:
    """Returns True where all runs are classifiers, False where all of them translate.

    Raises:
        ConfigError: For fewer runs than two, the same run twice, and runs of both tasks.
    """
    if len(runs) < 2:
        raise ConfigError("two runs or more to compare", count_noun(len(runs), "run"), "name them")
    paths = [run.path.resolve() for run in runs]
    repeated_run = next((run for run in runs if paths.count(run.path.resolve()) > 1), None)
    if repeated_run is not None:
        raise ConfigError(
            "different runs to compare", f"{repeated_run.path} twice", "leave one out"
        )
    of_labels = [str(run.path) for run in runs if run.classifies]
    if of_labels and len(of_labels) < len(runs):
        others = [str(run.path) for run in runs if not run.classifies]
        raise ConfigError(
            "runs that all translate, or all classify",
            f"{', '.join(others)} for translation and {', '.join(of_labels)} for classification",
            "compare runs of one task",
        )
    return bool(of_labels)


def check_same_test(names: Sequence[str], checksums: Sequence[str], option: str) -> None:
    """Check that all runs are scored on the same data.

    Raises:
        UnscoredError: Where the test sets differ.
    """
    if (other := _first_different(checksums)) is not None:
        raise UnscoredError(
            "the same test set in all runs",
            f"sha256 {checksums[0][:12]}… in {names[0]} and {checksums[other][:12]}… in "
            f"{names[other]}",
            f"name one for all of them: {option}",
        )


def common_tokenizer(runs: Sequence[Run], requested: str | None) -> BleuTokenizer:
    """The common tokenizer of BLEU.

    Raises:
        UnscoredError: If the runs were validated with different ones, and none is named.
    """
    tokenizers = [tokenizer_of(run, requested) for run in runs]
    if (other := _first_different(tokenizers)) is not None:
        raise UnscoredError(
            "one tokenizer of BLEU for all runs",
            f"{tokenizers[0]} in {runs[0].path} and {tokenizers[other]} in {runs[other].path}",
            f"choose one: --bleu-tokenizer {tokenizers[0]}",
        )
    return tokenizers[0]


def _first_different(values: Sequence[str]) -> int | None:
    """The index of the first value that differs from the first one; None if all are equal."""
    return next((i for i, value in enumerate(values) if value != values[0]), None)


def timed_translations(translator: Translator, test_set: ScoredTexts) -> tuple[list[str], float]:
    """The translations of the scored sources, and the seconds for all sources."""
    start = time.perf_counter()
    translations = translated(translator, test_set)
    seconds = time.perf_counter() - start
    return [translations[index].text for index in test_set.scored_indices], seconds


def timed_labels(classifier: TextClassifier, test_set: LabelledCorpus) -> tuple[list[str], float]:
    """The labels of all texts, and the seconds that they took."""
    start = time.perf_counter()
    classifications = classified(classifier, test_set)
    return [classification.label for classification in classifications], time.perf_counter() - start


def translation_scores(
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str | None]],
    tokenizer: BleuTokenizer,
    samples: int = SAMPLES,
) -> tuple[list[dict[str, dict[str, Any]]], dict[str, str]]:
    """BLEU and chrF of each system, with intervals and p, by paired bootstrap resampling.

    Each resample draws as many sentences as there are, with replacement, the same for all systems
    (Koehn, 2004). The interval holds 95% of the scores of the resamples. p is the probability of a
    difference to the first system as large as the one found, if there were none; sacrebleu computes
    it.

    Args:
        systems: The translations of each system, of the same sources.
        references: One list or several; None = there is no such reference.
        tokenizer: What BLEU counts as a token.
        samples: How many resamples.

    Returns:
        For each system, its scores by name; and the signature of each score.
    """
    # Only here: sacrebleu is slow to import, and `attlas --help` does not need it.
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.significance import PairedTest

    reference_lists: Any = [list(texts) for texts in references]
    named_translations: list[tuple[str, Sequence[str]]] = [
        (str(number), list(texts)) for number, texts in enumerate(systems)
    ]
    test = PairedTest(
        named_translations,
        {"BLEU": BLEU(tokenize=tokenizer), "chrF": CHRF()},
        reference_lists,
        "bs",
        samples,
    )
    signatures, found = test()
    scores: list[dict[str, dict[str, Any]]] = []
    systems_scores: Any = found
    first = {name: systems_scores[name][0].score for name in signatures}
    for index in range(len(systems)):
        own_scores: dict[str, dict[str, Any]] = {}
        for name in signatures:
            result = systems_scores[name][index]
            p = None if result.p_value is None else float(result.p_value)
            if p is not None and result.score == first[name]:
                p = 1.0  # sacrebleu's count of larger differences is 0 where all of them are 0
            own_scores[name] = {
                "value": float(result.score),
                "low": float(result.mean - result.ci),
                "high": float(result.mean + result.ci),
                "p": p,
            }
        scores.append(own_scores)
    return scores, {name: str(signature) for name, signature in signatures.items()}


def label_comparison(
    expected: Sequence[str], systems: Sequence[Sequence[str]], labels: Sequence[str]
) -> tuple[list[dict[str, dict[str, Any]]], dict[str, str]]:
    """Accuracy (Wilson's interval, McNemar's exact test) and macro-F1 of each classifier.

    Args:
        expected: The right label of each text.
        systems: The labels that each classifier gives.
        labels: All labels.

    Returns:
        For each classifier, its scores by name; and how each score was measured.
    """
    scores: list[dict[str, dict[str, Any]]] = []
    first_correct = [
        predicted == right for predicted, right in zip(systems[0], expected, strict=True)
    ]
    for index, predictions in enumerate(systems):
        correct = [
            predicted == label for predicted, label in zip(predictions, expected, strict=True)
        ]
        low, high = wilson_interval(sum(correct), len(correct), _CONFIDENCE)
        scores.append(
            {
                "accuracy": {
                    "value": 100 * sum(correct) / len(correct),
                    "low": 100 * low,
                    "high": 100 * high,
                    "p": None if index == 0 else mcnemar(first_correct, correct),
                },
                "macro-F1": {"value": 100 * macro_f1(label_scores(expected, predictions, labels))},
            }
        )
    return scores, {
        "accuracy": "interval:Wilson|test:McNemar exact|confidence:0.95",
        "macro-F1": f"average:macro|labels:{len(labels)}|zero_division:0",
    }


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """min(1, 2 Σ_{i ≤ min(b, c)} C(b + c, i) / 2^(b + c)): McNemar's exact test, two-sided.

    b and c count the texts that only the one, and only the other, has right. McNemar, 1947.
    """
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    discordant = only_first + only_second
    tail_count = sum(math.comb(discordant, i) for i in range(min(only_first, only_second) + 1))
    return (
        min(1.0, 2 * tail_count / 2**discordant)
        if discordant < 1_000
        else min(1.0, _ratio(2 * tail_count, discordant))
    )


def _ratio(tail_count: int, discordant: int) -> float:
    """Ways / 2^both, where neither fits a float."""
    shift = max(0, tail_count.bit_length() - 60)
    return math.ldexp(float(tail_count >> shift), shift - discordant)


def facts_of(run: Run, checkpoint: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Size and training of a run.

    Args:
        facts: Of its translator or classifier.
    """
    events = run.events()
    last: dict[str, Any] = next((event for event in reversed(events) if "seconds" in event), {})
    return {
        "parameters": facts["parameters"],
        "bytes": run.store.path(checkpoint).stat().st_size,
        "updates": last.get("update"),
        "training_seconds": last.get("seconds"),
        "peak_memory": run.peak_memory().get("cpu"),
        "seed": run.provenance().get("seed"),
    }


def draw_side_by_side(
    translators: Mapping[str, Translator], text: str, layer: str | None, path: Path
) -> dict[str, str]:
    """Draw where each run looked while it translated one text, and return the translations.

    Raises:
        DataError: For a text without a word, or a run that looks nowhere.
    """
    maps: dict[str, HeadMap] = {}
    texts: dict[str, str] = {}
    for name, translator in translators.items():
        translation = translator(text)
        texts[name] = translation.text
        if translation.trace is None:
            raise DataError("a text to translate", translation.blank, "try another")
        trace = translation.trace
        layer_path = layer or _last_cross(trace)
        if layer_path is None:
            raise DataError(
                "runs that look at their source", f"{name}, which has no attention", "leave it out"
            )
        layer_maps = maps_of(trace, layer=layer_path)
        maps |= {
            f"{name}: {index}" if len(layer_maps) > 1 else name: map_
            for index, map_ in layer_maps.items()
        }
    save(heatmaps(maps), path)
    return texts


def _last_cross(trace: Trace) -> str | None:
    """The last layer that looks at the source."""
    layers = [layer for layer in trace if trace.kind(layer) == "cross"]
    return layers[-1] if layers else None


def as_text(
    compared: Sequence[Compared], signatures: Mapping[str, str], data: Mapping[str, Any], noun: str
) -> str:
    """The comparison for a reader: a table, and what it was measured with."""
    names = list(signatures)
    rows = [["run", *names, f"{noun}s/s", "parameters", "MB", "trained in", "peak MiB"]]
    rows += [
        [
            result.run,
            *(_score(result.scores[name]) for name in names),
            f"{data[f'{noun}s'] / max(result.seconds, 1e-9):,.1f}",
            f"{result.facts['parameters']:,}",
            f"{result.facts['bytes'] / 1e6:.1f}",
            _duration(result.facts["training_seconds"]),
            _mebibytes(result.facts["peak_memory"]),
        ]
        for result in compared
    ]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if index <= len(names) else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines += ["", f"Brackets: 95% interval. p: of the difference to {compared[0].run}."]
    lines += [f"{name}: {signature}" for name, signature in signatures.items()]
    lines.append(f"data: {data['name']}, {count_noun(data[f'{noun}s'], noun)}, {data['sha256']}")
    return "\n".join(lines)


def _score(score: Mapping[str, Any]) -> str:
    text = f"{score['value']:.2f}"
    if "low" in score:
        text += f" [{score['low']:.2f}, {score['high']:.2f}]"
    if score.get("p") is not None:
        text += " p < 0.001" if score["p"] < 0.001 else f" p = {score['p']:.3f}"
    return text


def _mebibytes(amount: int | None) -> str:
    return "–" if amount is None else f"{amount / 2**20:,.0f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def tokenizer_remark(references: Sequence[str], tokenizer: BleuTokenizer) -> str | None:
    """A remark if this tokenizer does not fit the references."""
    better = better_tokenizers(references, tokenizer)
    if not better:
        return None
    return (
        f"attlas: these references have no spaces between words: BLEU with tokens of {tokenizer} "
        f"says little; add --bleu-tokenizer {' or '.join(better)}"
    )
