"""Describe runs, traces and recipes as text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attlas._text import describe_memory
from attlas.config import explanations, write_toml
from attlas.data import attribution
from attlas.errors import CheckpointError
from attlas.recording import DenseAttentionMap, Trace
from attlas.runs import BEST, LAST, METRICS, Run
from attlas.training import Recipe


def describe_recipe(recipe: Recipe) -> str:
    """Every setting with its meaning, as TOML. It is a recipe itself."""
    return write_toml(_kinds_first(recipe.tables()), explanations(recipe)).rstrip()


def _kinds_first(table: Mapping[str, Any]) -> dict[str, Any]:
    """The same tables; the setting `kind`, which decides on the others, is the first of each."""
    names = sorted(table, key=lambda name: name != "kind")  # stable: the others stay in order
    return {
        name: _kinds_first(table[name]) if isinstance(table[name], Mapping) else table[name]
        for name in names
    }


def describe_run(run: Run) -> str:
    """Settings, parameters by part, vocabularies, checkpoints, scores, peak memory of the training,
    and the origin of the data.
    """
    sections = [
        ("settings", write_toml(run.config).rstrip()),
        _labelled_vocabularies(run) if run.classifies else _vocabularies(run),
        ("checkpoints", _table(_checkpoints(run)) or "none yet"),
        _scores(run),
    ]
    if memory := describe_memory(*map(run.peak_memory().get, ("cpu", "gpu"))):
        sections.append(("training", memory))
    if run.table("data").get("kind") == "shipped":
        sections.append(("the corpus that comes with attlas", _below_heading(attribution())))
    if run.checkpoints():
        sections.insert(2, ("parameters", _table(_parameters(run))))
    return "\n\n".join(f"# {name}\n{text}" for name, text in sections)


def describe_trace(trace: Trace) -> str:
    """Its layers, with the shapes of their attention maps, and its tokens."""
    layers = [
        (
            layer or "model",
            "weights" if isinstance(attention_map, DenseAttentionMap) else "queries and keys",
            " × ".join(map(str, attention_map.shape)),
        )
        for layer in trace
        for attention_map in trace.calls(layer)
    ]
    tokens = [
        f"row {row}, {side}: {' '.join(labels)}"
        for side, rows in (("source", trace.source), ("target", trace.target))
        for row, labels in enumerate(rows)
    ]
    shown = "\n".join(sorted(tokens)) or "none"
    return f"# layers: batch × heads × queries × keys\n{_table(layers)}\n\n# tokens\n{shown}"


def _below_heading(markdown: str) -> str:
    return markdown.partition("\n\n")[2].rstrip()


def _vocabularies(run: Run) -> tuple[str, str]:
    vocabularies = run.vocabularies()
    sizes = [("source", len(vocabularies.source)), ("target", len(vocabularies.target))]
    shared = " (shared: one for both sides)" if vocabularies.shared else ""
    return f"vocabularies{shared}", _table([(side, f"{size:,}") for side, size in sizes])


def _labelled_vocabularies(run: Run) -> tuple[str, str]:
    vocabularies = run.labelled_vocabularies()
    rows = [
        ("text", f"{len(vocabularies.text):,}"),
        ("labels", ", ".join(vocabularies.labels.names)),
    ]
    return "vocabulary and labels", _table(rows)


def _parameters(run: Run) -> list[tuple[str, str]]:
    """By the first part of their names; what parts share is counted where it comes first."""
    pointer = BEST if run.store.named(BEST) else LAST
    model = run.classifier(pointer) if run.classifies else run.model(pointer)
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        counts[name.partition(".")[0]] += parameter.numel()
    counts["together"] = counts.total()
    return [(part, f"{count:,}") for part, count in counts.items()]


def _checkpoints(run: Run) -> list[tuple[str, str]]:
    pointers = {pointer: run.store.named(pointer) for pointer in (BEST, LAST)}
    return [
        (name, ", ".join(pointer for pointer, target in pointers.items() if target == name))
        for name in run.checkpoints()
    ]


def _scores(run: Run) -> tuple[str, str]:
    """Every validation, oldest first; the signature of BLEU once, if it is the same for all."""
    events = [event for event in run.events() if event.get("event") == "validated"]
    try:
        return "scores on the validation set", _scores_of(events, run)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"every validation with its update, loss and scores in {run.path / METRICS}",
            f"one without them ({error!r})",
            "put that file back as attlas train wrote it, or take that line out of it",
        ) from None


def _scores_of(events: Sequence[Mapping[str, Any]], run: Run) -> str:
    signatures = {event["signature"] for event in events if event.get("bleu") is not None}
    best = run.store.named(BEST)
    of_best = [index for index, event in enumerate(events) if event.get("checkpoint") == best]
    rows: list[tuple[str, ...]] = []
    for index, event in enumerate(events):
        scores = [f"update {event['update']:,}", f"loss {event['loss']:.4f}"]
        if event.get("bleu") is not None:
            signature = f" ({event['signature']})" if len(signatures) > 1 else ""
            scores.append(f"BLEU {event['bleu']:.2f}{signature}")
        if event.get("accuracy") is not None:
            exactly = "" if run.classifies else " exactly"
            scores.append(f"{event['accuracy']:.1%}{exactly} right")
        rows.append((*scores, "best" if index in of_best[-1:] else ""))
    notes = [f"BLEU: {signature}" for signature in signatures if len(signatures) == 1]
    return "\n".join([_table(rows) or "none yet", *notes])


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Rows whose columns stand below each other."""
    rows = list(rows)
    columns = max(map(len, rows), default=0)
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(columns)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    )
