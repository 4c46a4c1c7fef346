"""The maps that an experiment shows: kept as traces, written as pages that one can use."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from attlas._files import parse_json, write_durably
from attlas.errors import DataError
from attlas.figures import heatmap, save
from attlas.lab.experiment import AttentionExample, Context, Experiment, Scale
from attlas.lab.results import key_of_examples
from attlas.recording import Trace

LARGEST = 1_000_000
"""Bytes of the page of one example."""

_FOLDER, _LIST = "examples", "examples.json"


@dataclass(frozen=True)
class KeptExample:
    """An example whose trace is a file."""

    path: Path
    caption: str
    layer: str
    head: int

    @property
    def name(self) -> str:
        """That of the example."""
        return self.path.stem

    def open(self) -> AttentionExample:
        """The example, with its trace."""
        return AttentionExample(
            self.name, self.caption, Trace.load(self.path), self.layer, self.head
        )


def keep_examples(experiment: Experiment, scale: Scale, context: Context, folder: Path) -> None:
    """Write the traces of an experiment's examples, unless those of the same key are there.

    Args:
        context: That of the first seed.
        folder: That of the results.
    """
    if experiment.examples is None:
        return
    own, key = folder / experiment.name / scale / _FOLDER, key_of_examples(experiment, scale)
    if _key_in(own) == key:
        return
    for needed in (own, context.folder):  # a seed may have been measured elsewhere
        needed.mkdir(parents=True, exist_ok=True)
    rows = []
    for example in experiment.examples(context):
        example.trace.save(own / f"{example.name}.safetensors")
        rows.append(
            {
                "name": example.name,
                "caption": example.caption,
                "layer": example.layer,
                "head": example.head,
            }
        )
    record = {"key": key, "examples": rows}
    write_durably(own / _LIST, (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())


def examples_of(experiment: str, scale: Scale, folders: Sequence[Path]) -> list[KeptExample]:
    """The examples of an experiment, from the first folder that has any.

    Raises:
        DataError: If the list of them is damaged.
    """
    for folder in folders:
        own = folder / experiment / scale / _FOLDER
        if (own / _LIST).is_file():
            try:
                return [
                    KeptExample(
                        own / f"{row['name']}.safetensors",
                        row["caption"],
                        row["layer"],
                        int(row["head"]),
                    )
                    for row in parse_json((own / _LIST).read_bytes())["examples"]
                ]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise DataError(
                    "a list of the examples of an experiment",
                    f"{own / _LIST}: {type(error).__name__} {error}",
                    "delete the file and run the experiment again",
                ) from error
    return []


def key_kept(experiment: str, scale: Scale, folder: Path) -> str:
    """The key of the examples that are kept; "" = there are none."""
    return _key_in(folder / experiment / scale / _FOLDER)


def _key_in(folder: Path) -> str:
    """Of a damaged list it is "", so that the examples are made anew."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(parse_json((folder / _LIST).read_bytes())["key"])
    return ""


def write_page(example: AttentionExample, path: Path) -> None:
    """Write an example as a page, the explorer's one-file export.

    Raises:
        DataError: If it has more than `LARGEST` bytes.
    """
    example.trace.to_html(path, name=example.name)
    if (size := path.stat().st_size) > LARGEST:
        raise DataError(
            f"a page of at most {LARGEST:,} bytes for the example {example.name}",
            f"{size:,}",
            "take a shorter text, or fewer layers",
        )


def picture(example: AttentionExample) -> Figure:
    """The map of its layer and head, on its first text."""
    attention_map = example.trace[example.layer]
    keys, queries = (side[0] if side else None for side in example.trace.tokens(example.layer))
    weights = attention_map.weights()[0, example.head]
    return heatmap(weights, keys, queries or keys)


def write_picture(example: AttentionExample, path: Path) -> None:
    """Draw `picture` into a file."""
    save(picture(example), path)
