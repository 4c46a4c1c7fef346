"""Evaluation: a test set, its translations or labels, and a report."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from attlas._output import Bar
from attlas._text import count_noun, describe_memory
from attlas.config import nearest_settings, overridden
from attlas.data import (
    Corpus,
    FilterReport,
    LabelledCorpus,
    LabelledData,
    Labels,
    Lines,
    Pair,
    SplitName,
    read_lines,
)
from attlas.data.corpus import EMPTY_SOURCE
from attlas.data.lines import check_given_again
from attlas.data.vocabulary import UNKNOWN
from attlas.decoding import DecodingConfig
from attlas.decoding.config import idle_settings
from attlas.errors import AttlasError, ConfigError, DataError
from attlas.inference import Classification, TextClassifier, Translation, Translator
from attlas.jobs.inputs import check_tested, instead_of_data
from attlas.jobs.overlap import warn_of_training_texts
from attlas.metrics import (
    BleuTokenizer,
    better_tokenizers,
    check_tokenizer,
    confusion,
    corpus_score,
    label_scores,
    macro_f1,
    macro_f1_signature,
    token_accuracy,
    wilson_interval,
)
from attlas.runs import CONFIG, Run
from attlas.training import Recipe
from attlas.training.setup import code_version
from attlas.training.validation import average_length, exactly_right

_FILES = "--source and --reference"


@dataclass(frozen=True, slots=True)
class ScoredTexts:
    """What is translated and what is scored.

    Args:
        sources: All that is translated.
        scored_indices: Which of them are scored. These are the pairs of `corpus`, with the first
            reference of each.
        further_references: Further references of these, None where there is none.
    """

    corpus: Corpus
    sources: tuple[str, ...]
    scored_indices: tuple[int, ...]
    further_references: tuple[tuple[str | None, ...], ...] = ()

    @property
    def references(self) -> list[Sequence[str | None]]:
        """The lists of references, as scorers have them."""
        return [self.corpus.targets, *self.further_references]

    def references_by_pair(self) -> list[list[str]]:
        """The references of each pair."""
        return [
            [reference for reference in references if reference is not None]
            for references in zip(*self.references, strict=True)
        ]


def test_set_of(
    run: Run, source: str | None, references: Sequence[str], *, valid: bool
) -> ScoredTexts:
    """The files, every line of them; without files, a split of the run's own data.

    A text without a reference and an empty text are not scored, as in every split; this is
    reported. An empty line among several references is no reference.

    Raises:
        AttlasError: For one file without the other, files with `valid`, and unequal numbers of
            lines.
    """
    if source is None and not references:
        split: SplitName = "valid" if valid else "test"
        data = Recipe.read(run.config, str(run.path / CONFIG)).data
        has_test = bool(getattr(data, "test", True))
        check_tested(run, split, has_test, "--source TEXTS --reference TRANSLATIONS")
        if data.passing:
            check_given_again(run.path, f"give it again (< DATA), or name {_FILES}")
        with instead_of_data(_FILES):
            corpus = data.corpus(split)
        assert isinstance(corpus, Corpus)  # a classifier's run has been distinguished before
        if not corpus.pairs:
            raise DataError(
                f"sentence pairs in the {split} set of {run.path}",
                str(corpus.report),
                "name --source and --reference, or take --valid",
            )
        print(corpus.report, file=sys.stderr)
        recorded = run.provenance().get("data", {}).get(split, {})
        if recorded.get("sha256") != corpus.checksum:
            print("attlas: this data has changed since the run was trained", file=sys.stderr)
        return ScoredTexts(corpus, tuple(corpus.sources), tuple(range(len(corpus))))
    if source is None or not references or valid:
        files = {"--source": source, "--reference": references}
        option_names = [name for name, value in files.items() if value]
        missing = [name for name in files if name not in option_names]
        got = " and ".join([*option_names, "--valid"] if valid else option_names)
        raise AttlasError(
            "--source and --reference, or neither, or --valid alone",
            f"{got} without {missing[0]}" if missing else got,
            f"leave out --valid, or {' and '.join(option_names)}"
            if valid
            else f"name {missing[0]} too, or leave out {option_names[0]} for the run's own "
            "test set",
        )
    test_set = _aligned_test_set(
        read_lines(source), [read_lines(reference) for reference in references]
    )
    warn_of_training_texts(run, test_set.corpus.sources)
    return test_set


def _aligned_test_set(ours: Lines, references: Sequence[Lines]) -> ScoredTexts:
    for reference in references:
        if len(ours) != len(reference):
            raise DataError(
                "two files with the same number of lines",
                f"{len(ours):,} in {ours.name} and {len(reference):,} in {reference.name}",
                "make line n of one the translation of line n of the other",
            )
    pairs, indices, others, sourceless = [], [], [], 0
    for index, (source, *own_references) in enumerate(
        zip(ours.texts, *(o.texts for o in references), strict=True)
    ):
        non_empty = [text for text in own_references if text.strip()]
        if not source.strip():
            sourceless += 1
        elif non_empty:
            first, *more = non_empty
            pairs.append(Pair(source, first))
            indices.append(index)
            others.append([*more, *[None] * (len(own_references) - 1 - len(more))])
    name = " and ".join([ours.name, *(reference.name for reference in references)])
    for count, reason in (
        (sourceless, EMPTY_SOURCE),
        (len(ours) - len(indices) - sourceless, "no reference"),
    ):
        if count:
            lines = count_noun(len(ours), "line")
            print(
                f"attlas: {count:,} of {lines} of {name}: not scored, having {reason}",
                file=sys.stderr,
            )
    if not pairs:
        raise DataError(f"a line with a source and a reference in {name}", "none", "check them")
    report = FilterReport(name, len(ours), len(pairs))
    corpus = Corpus(name, tuple(pairs), tuple(index + 1 for index in indices), report)
    columns = tuple(zip(*others, strict=True)) if len(references) > 1 else ()
    return ScoredTexts(corpus, tuple(ours.texts), tuple(indices), columns)


def tokenizer_of(run: Run, name: str | None) -> BleuTokenizer:
    """The requested tokenizer of BLEU, else that of the run's validation.

    Raises:
        AttlasError: For one that is unknown or not installed.
    """
    validation = run.table("training").get("validation", {})
    return check_tokenizer(name or validation.get("bleu_tokenizer", "13a"))


def translated(translator: Translator, test_set: ScoredTexts) -> list[Translation]:
    """The translations, in order; what a reader has to know of them is reported."""
    with (
        Bar("translating", len(test_set.sources), counted="text") as bar,
        bar.counting(lambda: translator.num_ended),
    ):
        translations = list(translator.stream(test_set.sources))
    num_unknown = sum(not translation.known for translation in translations)
    num_cut = sum(translation.cut > 0 for translation in translations)
    unended = sum(not translation.finished for translation in translations)
    for count, remark in (
        (num_unknown, "no word of them is in the vocabulary, so their translations say nothing"),
        (num_cut, "not read to the end, being longer than this model is set to read"),
        (unended, "cut off at the longest translation, which the model did not end"),
    ):
        if count:
            print(f"attlas: {count:,} of {len(translations):,} sources: {remark}", file=sys.stderr)
    return translations


def scored(
    run: Run,
    checkpoint: str,
    translator: Translator,
    test_set: ScoredTexts,
    translations: Sequence[Translation],
    bleu_tokenizer: BleuTokenizer = "13a",
) -> tuple[dict[str, Any], list[bool]]:
    """The scores with everything that they depend on, and whether each translation is exactly
    right.

    exactly_right: the part of them that are one of their references, see there. token_accuracy: of
    the tokens into which the vocabulary divides translation and (first) reference.

    Args:
        translations: Those of all sources.
    """
    vocabulary, corpus = translator.vocabularies.target, test_set.corpus
    translations = [translations[index] for index in test_set.scored_indices]
    texts = [translation.text for translation in translations]
    scores = corpus_score(texts, test_set.references, bleu_tokenizer)
    better = better_tokenizers(corpus.targets, bleu_tokenizer)
    if better:
        print(
            f"attlas: these references have no spaces between words: BLEU and TER with tokens of "
            f"{bleu_tokenizer} say little; add --bleu-tokenizer {' or '.join(better)}",
            file=sys.stderr,
        )
    translated = [*map(vocabulary.encode, texts)]
    expected = [
        [*map(vocabulary.encode, references)] for references in test_set.references_by_pair()
    ]
    right = [
        any(exactly_right([translation] * len(references), references, vocabulary))
        for translation, references in zip(translations, expected, strict=True)
    ]
    provenance = run.provenance()
    report = {
        "scores": {s.name: {"value": s.value, "signature": s.signature} for s in scores},
        "exactly_right": sum(right) / len(right),
        "token_accuracy": token_accuracy(
            translated, [references[0] for references in expected], unknown=UNKNOWN
        ),
        "average_length": average_length(translations),
        "reference_length": sum(len(references[0]) for references in expected) / len(expected),
        "data": {
            "name": corpus.name,
            "pairs": len(translations),
            "sha256": corpus.checksum,
            **({"references": len(test_set.references)} if test_set.further_references else {}),
        },
        "decoding": translator.config.model_dump(mode="json"),
        "engine": translator.facts.get("engine", "attlas"),
        "run": str(run.path),
        "checkpoint": checkpoint,
        **{key: provenance.get(key) for key in ("seed", "attlas", "commit", "torch")},
        "peak_memory": run.peak_memory(),
        "evaluated": code_version(),
    }
    return report, right


def format_report(
    report: dict[str, Any],
    test_set: ScoredTexts,
    translations: Sequence[Translation],
    right: Sequence[bool],
    examples: int,
    *,
    as_json: bool,
) -> str:
    """The report for a reader, or as one JSON object, with `examples` that are exactly `right`.

    If there is none, the report shows the first ones, each with its reference.
    """
    translations = [translations[index] for index in test_set.scored_indices]
    exact_matches = [
        (translation.source_text, translation.text) for translation in compress(translations, right)
    ]
    shown = exact_matches[:: max(1, len(exact_matches) // examples)][:examples] if examples else []
    if as_json:
        return json.dumps({**report, "examples": shown}, ensure_ascii=False, indent=2)
    data = report["data"]
    lines = (
        [f"{len(shown):,} of the {len(exact_matches):,} that are exactly right:\n"] if shown else []
    )
    lines += [f"  {source}\n  → {text}\n" for source, text in shown]
    if examples and not shown:
        lines += ["no translation is exactly right; the first ones are:\n"]
        lines += [
            f"  {translation.source_text}\n  → {translation.text}\n  reference: {reference}\n"
            for translation, reference in islice(
                zip(translations, test_set.corpus.targets, strict=True), examples
            )
        ]
    lines += [
        f"{name} = {score['value']:.2f} ({score['signature']})"
        for name, score in report["scores"].items()
    ]
    lines += [
        f"exactly right: {report['exactly_right']:.1%}",
        f"token accuracy: {report['token_accuracy']:.1%}",
        f"average length: {report['average_length']:.1f} tokens, of the references "
        f"{report['reference_length']:.1f}",
        f"data: {data['name']}, {count_noun(data['pairs'], 'pair')}, sha256 {data['sha256']}",
        f"search: {_searched(report['decoding'])}{_engine_note(report['engine'])}",
        f"run: {report['run']}, checkpoint {report['checkpoint']}, seed {report['seed']}, "
        f"attlas {report['attlas']}, torch {report['torch']}, commit {report['commit']}",
        *_memory_lines(report),
        "evaluated by: attlas {attlas}, commit {commit}".format(**report["evaluated"]),
    ]
    return "\n".join(lines)


def _memory_lines(report: Mapping[str, Any]) -> list[str]:
    peak = report["peak_memory"]
    memory = describe_memory(peak.get("cpu"), peak.get("gpu"))
    return [f"training: {memory}"] if memory else []


def _engine_note(engine: str) -> str:
    return "" if engine == "attlas" else f", by {engine}"


def _searched(decoding: Mapping[str, Any]) -> str:
    """The method, the width of its beam, and what else differs from the defaults."""
    defaults = DecodingConfig().model_dump(mode="json")
    method_settings = {"method", "num_beams"} - idle_settings(decoding["method"])
    settings = (
        key for key, value in decoding.items() if key in method_settings or value != defaults[key]
    )
    return ", ".join(f"{key} = {decoding[key]}" for key in settings)


# A labelled test set, the labels that a classifier gives it, and a report in which no number
# stands alone.


_SHOWN = 300  # characters of an example
# What --set may name of a file of labelled texts.
_FIELDS = {("data", name) for name in ("text", "label", "separator", "quoting", "unlabelled")}


def evaluate_labels(
    run: Run,
    checkpoint: str,
    device: str,
    source: str | None,
    settings: Sequence[str],
    *,
    valid: bool,
    examples: int,
    as_json: bool,
) -> tuple[str, list[bytes]]:
    """Classify a test set and print how good the labels are, for a reader or as a JSON object; and
    one line for each text: the label given, a tab, its probability.

    Args:
        settings: The fields of `source`, as `data.text=review`.
    """
    test_set = labelled_test_set(run, source, settings, valid=valid)
    classifier = TextClassifier(run, checkpoint=checkpoint, device=device)
    classifier.vocabularies.labels.ids(test_set)  # that it knows every label
    _print_label_counts(classifier, test_set)
    classifications = classified(classifier, test_set)
    _print_single_label(test_set, classifications)
    _print_unread_texts(classifications)
    lines = [
        f"{classification.label}\t{classification.probability:.4f}\n".encode()
        for classification in classifications
    ]
    report = _report(run, checkpoint, classifier, test_set, classifications)
    shown = _wrong(test_set, classifications)[:examples]
    if as_json:
        return json.dumps({**report, "wrong": shown}, ensure_ascii=False, indent=2), lines
    return _as_text(report, shown), lines


def labelled_test_set(
    run: Run, source: str | None, settings: Sequence[str], *, valid: bool
) -> LabelledCorpus:
    """The labelled texts of `source`, or of the test or validation set of a run.

    Raises:
        AttlasError: For a run without such a set, and for options that don't fit together.
    """
    data = Recipe.read(run.config, str(run.path / CONFIG)).data
    assert isinstance(data, LabelledData)  # the run is a classifier's
    if source is not None and valid:
        raise AttlasError("--source or --valid", "both", "leave one of them out")
    if source is not None:
        corpus = _data_at(source, data, settings).corpus("test")
        print(corpus.report, file=sys.stderr)
        warn_of_training_texts(run, corpus.texts)
    elif settings:
        raise AttlasError(
            "--set for the fields of --source", "it alone", "name --source, or leave --set out"
        )
    else:
        split = "valid" if valid else "test"
        check_tested(run, split, data.test is not None, "--source TEXTS")
        if data.passing:
            check_given_again(run.path, "give it again (< DATA), or name --source")
        with instead_of_data("--source"):
            corpus = data.corpus("valid" if valid else "test")
        print(corpus.report, file=sys.stderr)
        recorded = run.provenance().get("data", {}).get(split, {})
        if recorded.get("sha256") != corpus.checksum:
            print("attlas: this data has changed since the run was trained", file=sys.stderr)
    if not corpus.texts:
        raise DataError(
            f"labelled texts to test {run.path} with",
            str(corpus.report),
            "name --source, or take --valid",
        )
    return corpus


def _data_at(source: str, data: LabelledData, settings: Iterable[str]) -> LabelledData:
    """This file or folder as the test set of a run, whose fields `settings` may name anew."""
    tables = overridden({"data": data.model_dump()}, settings)
    others = [".".join(keys) for keys in sorted(tables.assigned - _FIELDS)]
    if others:
        matches = [f"`data.{name}`" for name in nearest_settings(LabelledData, others[0], {})]
        raise ConfigError(
            "settings of --source: data.text and data.label, the fields of a file, and how it is "
            "read: data.separator, data.quoting, data.unlabelled",
            ", ".join(others),
            f"did you mean {' or '.join(matches)}?"
            if matches
            else "train another run to change this setting",
        )
    if tables.assigned and Path(source).is_dir():
        raise ConfigError(
            "--set for the fields of a file", f"it for the folder {source}", "leave --set out"
        )
    return LabelledData.read({**tables["data"], "test": source, "origin": ""}, "--set")


def classified(classifier: TextClassifier, test_set: LabelledCorpus) -> list[Classification]:
    """What the classifier says of each text, in order."""
    classifications: list[Classification] = []
    with (
        Bar("classifying", len(test_set), counted="text") as bar,
        bar.counting(lambda: len(classifications)),
    ):
        classifications += classifier.stream(test_set.texts)
    return classifications


def _print_label_counts(classifier: TextClassifier, test_set: LabelledCorpus) -> None:
    labels_of_test = set(test_set.labels)
    missing = Labels(tuple(label for label in classifier.labels if label not in labels_of_test))
    if len(missing):
        print(f"attlas: none of these texts has the label {missing}", file=sys.stderr)


def _print_single_label(
    test_set: LabelledCorpus, classifications: Sequence[Classification]
) -> None:
    labels_given = {classification.label for classification in classifications}
    if len(labels_given) == 1 < len(set(test_set.labels)):
        label = labels_given.pop()
        print(
            f"attlas: WARNING: all {count_noun(len(classifications), 'text')} get the label "
            f"{label!r}: the classifier does not tell the labels apart; see its "
            "training.class_weights and how many texts each label has",
            file=sys.stderr,
        )


def _print_unread_texts(classifications: Sequence[Classification]) -> None:
    for count, remark in (
        (
            sum(classification.unread > 0 for classification in classifications),
            "longer than the model can read: not read whole",
        ),
        (
            sum(not classification.known for classification in classifications),
            "none of their words is in the vocabulary",
        ),
    ):
        if count:
            print(
                f"attlas: {count:,} of {count_noun(len(classifications), 'text')}: {remark}",
                file=sys.stderr,
            )


def _report(
    run: Run,
    checkpoint: str,
    classifier: TextClassifier,
    test_set: LabelledCorpus,
    classifications: Sequence[Classification],
) -> dict[str, Any]:
    """The scores, and everything that they depend on."""
    predicted = [classification.label for classification in classifications]
    scores = label_scores(test_set.labels, predicted, classifier.labels)
    right = sum(classification.right for classification in scores.values())
    low, high = wilson_interval(right, len(classifications))
    provenance = run.provenance()
    return {
        "accuracy": right / len(classifications),
        "interval": {"low": low, "high": high, "confidence": 0.95, "method": "Wilson"},
        "right": right,
        "macro_f1": {"value": macro_f1(scores), "signature": macro_f1_signature(scores)},
        "labels": {
            label: {
                "precision": score.precision,
                "recall": score.recall,
                "f1": score.f1,
                "texts": score.expected,
                "given": score.predicted,
            }
            for label, score in scores.items()
        },
        "confusion": confusion(test_set.labels, predicted, classifier.labels),
        "data": {"name": test_set.name, "texts": len(test_set), "sha256": test_set.checksum},
        "run": str(run.path),
        "checkpoint": checkpoint,
        **{key: provenance.get(key) for key in ("seed", "attlas", "commit", "torch")},
        "peak_memory": run.peak_memory(),
        "evaluated": code_version(),
    }


def _wrong(
    test_set: LabelledCorpus, classifications: Sequence[Classification]
) -> list[dict[str, Any]]:
    """The texts with a wrong label, the surest first."""
    pairs = zip(test_set.labels, test_set.places, classifications, strict=True)
    mistakes = [
        (label, index, classification)
        for label, index, classification in pairs
        if classification.label != label
    ]
    mistakes.sort(key=lambda entry: -entry[2].probability)
    return [
        {
            "place": index,
            "label": label,
            "given": classification.label,
            "probability": classification.probability,
            "text": classification.text,
        }
        for label, index, classification in mistakes
    ]


def _as_text(report: Mapping[str, Any], mistakes: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for mistake in mistakes:
        text = mistake["text"]
        full_text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
        lines.append(
            f"  {mistake['label']} taken for {mistake['given']} ({mistake['probability']:.1%}), at "
            f"{mistake['place']}: {full_text}\n"
        )
    data, interval = report["data"], report["interval"]
    lines += [
        f"accuracy: {report['accuracy']:.2%} of {count_noun(data['texts'], 'text')}; "
        f"{interval['confidence']:.0%} interval {interval['low']:.2%} to {interval['high']:.2%} "
        f"({interval['method']})",
        f"macro-F1: {report['macro_f1']['value']:.2%} ({report['macro_f1']['signature']})",
        *_matrix(report["confusion"]),
        *_by_label(report["labels"]),
        f"data: {data['name']}, {count_noun(data['texts'], 'text')}, sha256 {data['sha256']}",
        f"run: {report['run']}, checkpoint {report['checkpoint']}, seed {report['seed']}, "
        f"attlas {report['attlas']}, torch {report['torch']}, commit {report['commit']}",
        *_memory_lines(report),
        "evaluated by: attlas {attlas}, commit {commit}".format(**report["evaluated"]),
    ]
    return "\n".join(lines)


def _matrix(confusion: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Rows: the right label; columns: the label given; at their end, the part that was found."""
    names = list(confusion)
    head = ["right \\ given", *names, "found"]
    rows = []
    for run_name in names:
        total = sum(confusion[run_name].values())
        share = f"{confusion[run_name][run_name] / total:.1%}" if total else "–"
        rows.append([run_name, *(f"{confusion[run_name][other]:,}" for other in names), share])
    return _columns([head, *rows])


def _by_label(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Precision, recall and F1 of each label, and how many texts have it."""
    names = ("precision", "recall", "f1")
    rows = [
        [label, *(f"{score[name]:.1%}" for name in names), f"{score['texts']:,}"]
        for label, score in scores.items()
    ]
    return _columns([["label", "precision", "recall", "F1", "texts"], *rows])


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return [_aligned(row, widths) for row in rows]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """The first cell to the left, the others to the right; a Chinese character is two wide."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
    others = [gap + cell for gap, cell in zip(gaps[1:], row[1:], strict=True)]
    return "  ".join([row[0] + gaps[0], *others])
