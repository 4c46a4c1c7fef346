"""The README.md of a saved run: what the Hugging Face Hub shows of a model."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attlas.runs.facts import best_validation, languages

README = "README.md"
_SCORES = {"bleu": "BLEU", "accuracy": "accuracy", "macro_f1": "macro-F1", "loss": "loss"}


def model_card(
    name: str,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    parameters: int,
    *,
    classifies: bool,
) -> str:
    """The card in Markdown, with the facts that the Hub reads at its head.

    Args:
        name: Of the model, as `from_pretrained` takes it.
        config: The recipe.
        events: Those of metrics.jsonl.
    """
    model, data = config.get("model", {}), config.get("data", {})
    task = "text-classification" if classifies else "translation"
    codes = [code for code in languages(data) if code is not None]
    head = ["---", "library_name: attlas", f"pipeline_tag: {task}"]
    if codes:
        head += ["language:", *(f"- {code}" for code in codes)]
    head += ["tags:", "- attlas", "- attention", "---"]
    kind = {"recurrent": "recurrent encoder–decoder", "transformer": "Transformer"}.get(
        str(model.get("kind")), "self-attention classifier"
    )
    direction = f" from {codes[0]} to {codes[1]}" if len(codes) == 2 else ""
    does = "labels texts" if classifies else f"translates{direction}"
    about = f"A {kind} with {parameters:,} parameters, which {does}. It was trained with attlas."
    opened = "TextClassifier" if classifies else "Translator"
    code = [
        "```python",
        "import attlas",
        "",
        f"model = attlas.{opened}.from_pretrained({json.dumps(name)})",
        'found = model("A text.")',
        "print(found.label)" if classifies else "print(found.text)",
        "print(found.trace)  # where it looked",
        "```",
    ]
    table = ["| what | value |", "|---|---|", *_rows(provenance, events)]
    parts = ["\n".join(head), f"# {name}", about, "## Use", "\n".join(code), "## Training"]
    return "\n\n".join([*parts, "\n".join(table)]) + "\n"


def _rows(provenance: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Data, updates, time and the best validation, as far as they are known."""
    rows = []
    for split, facts in provenance.get("data", {}).items():
        size = next((f"{facts[unit]:,} {unit}" for unit in ("pairs", "texts") if unit in facts), "")
        if size and not size.startswith("0 "):
            rows.append(f"| {split} data | {_cell(facts.get('name', ''))}, {size} |")
    last: Mapping[str, Any] = next((event for event in reversed(events) if "seconds" in event), {})
    if "update" in last:
        rows.append(f"| updates | {last['update']:,} |")
        rows.append(f"| time | {last['seconds'] / 60:.1f} min |")
    best = best_validation(events)
    for key, title in _SCORES.items():
        if isinstance(best.get(key), int | float):
            rows.append(f"| {title} of the best validation | {best[key]:.4g} |")
    if best.get("signature"):
        rows.append(f"| signature of BLEU | `{best['signature']}` |")
    known = [key for key in ("seed", "attlas", "torch") if provenance.get(key) is not None]
    return [*rows, *(f"| {key} | {provenance[key]} |" for key in known)]


def _cell(text: str) -> str:
    """A name of data; of a path its last part, and no bar, which would end the cell."""
    return re.sub(r"\S*/", "", text).replace("|", "\\|")
