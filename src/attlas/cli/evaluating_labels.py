"""A labelled test set, the labels that a classifier gives it, and a report in which no number
stands alone.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import track

from attlas.classifying import Classification, TextClassifier
from attlas.cli.given import check_tested, instead_of_data
from attlas.config import nearest, overridden
from attlas.data import LabelledCorpus, LabelledData, Labels
from attlas.data.amount import amount
from attlas.data.lines import check_given_again
from attlas.errors import AttlasError
from attlas.metrics import (
    confusion,
    label_scores,
    macro_f1,
    macro_f1_signature,
    wilson_interval,
)
from attlas.runs import CONFIG, Run
from attlas.training import Recipe
from attlas.training.provenance import this_attlas

_SHOWN = 300  # characters of an example
# What --set may name of a file of labelled texts.
_FIELDS = {("data", name) for name in ("text", "label", "separator", "quoting", "unlabelled")}


def labels_told(
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
    """Classify a test set and tell how good the labels are, for a reader or as one JSON object;
    and one line for each text: the label given, a tab, its probability.

    settings: the fields of `source`, as `data.text=review`.
    """
    tested = _test_set(run, source, settings, valid=valid)
    classifier = TextClassifier(run, which=checkpoint, device=device)
    classifier.vocabularies.labels.ids(tested)  # that it knows every label
    _tell_of_labels(classifier, tested)
    found = _classified(classifier, tested)
    _tell_of_texts(found)
    lines = [f"{one.label}\t{one.probability:.4f}\n".encode() for one in found]
    report = _report(run, checkpoint, classifier, tested, found)
    shown = _wrong(tested, found)[:examples]
    if as_json:
        return json.dumps({**report, "wrong": shown}, ensure_ascii=False, indent=2), lines
    return _as_text(report, shown), lines


def _test_set(
    run: Run, source: str | None, settings: Sequence[str], *, valid: bool
) -> LabelledCorpus:
    data = Recipe.read(run.config, str(run.path / CONFIG)).data
    assert isinstance(data, LabelledData)  # the run is a classifier's
    if source is not None and valid:
        raise AttlasError("--source or --valid", "both", "leave one of them out")
    if source is not None:
        corpus = _at(source, data, settings).corpus("test")
        print(corpus.report, file=sys.stderr)
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
        begun = run.provenance().get("data", {}).get(split, {})
        if begun.get("sha256") != corpus.checksum:
            print("attlas: this data has changed since the run was trained", file=sys.stderr)
    if not corpus.texts:
        raise AttlasError(
            f"labelled texts to test {run.path} with",
            str(corpus.report),
            "name --source, or take --valid",
        )
    return corpus


def _at(source: str, data: LabelledData, settings: Iterable[str]) -> LabelledData:
    """This file or folder as the test set of a run, whose fields `settings` may name anew."""
    tables = overridden({"data": data.model_dump()}, settings)
    others = [".".join(keys) for keys in sorted(tables.assigned - _FIELDS)]
    if others:
        near = [f"`data.{name}`" for name in nearest(LabelledData, others[0], {})]
        raise AttlasError(
            "settings of --source: data.text and data.label, the fields of a file, and how it is "
            "read: data.separator, data.quoting, data.unlabelled",
            ", ".join(others),
            f"did you mean {' or '.join(near)}?"
            if near
            else "train another run to change what a run is made of",
        )
    if tables.assigned and Path(source).is_dir():
        raise AttlasError(
            "--set for the fields of a file", f"it for the folder {source}", "leave --set out"
        )
    return LabelledData.read({**tables["data"], "test": source, "origin": ""}, "--set")


def _classified(classifier: TextClassifier, tested: LabelledCorpus) -> list[Classification]:
    console = Console(stderr=True)
    return list(
        track(
            classifier.many(tested.texts),
            "classifying",
            total=len(tested),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )


def _tell_of_labels(classifier: TextClassifier, tested: LabelledCorpus) -> None:
    there = set(tested.labels)
    missing = Labels(tuple(label for label in classifier.labels if label not in there))
    if len(missing):
        print(f"attlas: none of these texts has the label {missing}", file=sys.stderr)


def _tell_of_texts(found: Sequence[Classification]) -> None:
    for count, remark in (
        (sum(one.unread > 0 for one in found), "longer than the model can read: not read whole"),
        (sum(not one.known for one in found), "none of their words is in the vocabulary"),
    ):
        if count:
            print(f"attlas: {count:,} of {amount(len(found), 'text')}: {remark}", file=sys.stderr)


def _report(
    run: Run,
    checkpoint: str,
    classifier: TextClassifier,
    tested: LabelledCorpus,
    found: Sequence[Classification],
) -> dict[str, Any]:
    """The scores, and everything that they depend on."""
    given = [one.label for one in found]
    scores = label_scores(tested.labels, given, classifier.labels)
    right = sum(one.right for one in scores.values())
    low, high = wilson_interval(right, len(found))
    provenance = run.provenance()
    return {
        "accuracy": right / len(found),
        "interval": {"low": low, "high": high, "confidence": 0.95, "method": "Wilson"},
        "right": right,
        "macro_f1": {"value": macro_f1(scores), "signature": macro_f1_signature(scores)},
        "labels": {
            label: {
                "precision": one.precision,
                "recall": one.recall,
                "f1": one.f1,
                "texts": one.wanted,
                "given": one.given,
            }
            for label, one in scores.items()
        },
        "confusion": confusion(tested.labels, given, classifier.labels),
        "data": {"name": tested.name, "texts": len(tested), "sha256": tested.checksum},
        "run": str(run.path),
        "checkpoint": checkpoint,
        **{key: provenance.get(key) for key in ("seed", "attlas", "commit", "torch")},
        "evaluated": this_attlas(),
    }


def _wrong(tested: LabelledCorpus, found: Sequence[Classification]) -> list[dict[str, Any]]:
    """The texts with a wrong label, the surest first."""
    pairs = zip(tested.labels, tested.places, found, strict=True)
    wrong = [(label, place, one) for label, place, one in pairs if one.label != label]
    wrong.sort(key=lambda each: -each[2].probability)
    return [
        {
            "place": place,
            "label": label,
            "given": one.label,
            "probability": one.probability,
            "text": one.text,
        }
        for label, place, one in wrong
    ]


def _as_text(report: Mapping[str, Any], wrong: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for one in wrong:
        text = one["text"]
        whole = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
        lines.append(
            f"  {one['label']} taken for {one['given']} ({one['probability']:.1%}), at "
            f"{one['place']}: {whole}\n"
        )
    data, interval = report["data"], report["interval"]
    lines += [
        f"accuracy: {report['accuracy']:.2%} of {amount(data['texts'], 'text')}; "
        f"{interval['confidence']:.0%} interval {interval['low']:.2%} to {interval['high']:.2%} "
        f"({interval['method']})",
        f"macro-F1: {report['macro_f1']['value']:.2%} ({report['macro_f1']['signature']})",
        *_matrix(report["confusion"]),
        *_by_label(report["labels"]),
        f"data: {data['name']}, {amount(data['texts'], 'text')}, sha256 {data['sha256']}",
        f"run: {report['run']}, checkpoint {report['checkpoint']}, seed {report['seed']}, "
        f"attlas {report['attlas']}, torch {report['torch']}, commit {report['commit']}",
        "evaluated by: attlas {attlas}, commit {commit}".format(**report["evaluated"]),
    ]
    return "\n".join(lines)


def _matrix(confusion: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Rows: the right label; columns: the label given; at their end, the part that was found."""
    names = list(confusion)
    head = ["right \\ given", *names, "found"]
    rows = []
    for own in names:
        total = sum(confusion[own].values())
        share = f"{confusion[own][own] / total:.1%}" if total else "–"
        rows.append([own, *(f"{confusion[own][other]:,}" for other in names), share])
    return _columns([head, *rows])


def _by_label(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Precision, recall and F1 of each label, and how many texts have it."""
    names = ("precision", "recall", "f1")
    rows = [
        [label, *(f"{one[name]:.1%}" for name in names), f"{one['texts']:,}"]
        for label, one in scores.items()
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
