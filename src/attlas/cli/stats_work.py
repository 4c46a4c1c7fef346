"""What `attlas stats` is asked for, looked at, and done."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from attlas.allocator import keep_freed_memory
from attlas.analysis.corpus import (
    ALSO,
    ClassifierReader,
    HuggingFaceFolder,
    HuggingFaceReader,
    Reader,
    TranslatorReader,
    columns_of,
)
from attlas.cli.given import check_distinct, check_used, run_at
from attlas.cli.output import STANDARD, check_replaceable
from attlas.cli.part import TEXT, Origin, books
from attlas.cli.searching import decoding_of
from attlas.cli.stats_corpus import Corpus, check_has_words, name_of, on_disk
from attlas.cli.stats_measuring import Measuring, measure
from attlas.cli.stats_part import StatsPart
from attlas.cli.stats_table import Table, table_at
from attlas.config import overridden
from attlas.decoding.config import idle_settings
from attlas.errors import AttlasError, quoted
from attlas.runs import BEST, CONFIG, held
from attlas.runs.durable import explained

_BY = ("head", "token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of the command, as they came."""

    model: Path
    corpus: str
    output: Path | None
    target: str | None
    by: str
    threshold: float
    also: tuple[str, ...]
    layers: tuple[str, ...] | None
    tokens: int
    beam: int | None
    checkpoint: str
    device: str
    settings: tuple[str, ...]


def work(asked: Asked) -> None:
    """Write the table, or go on with it.

    Errors: `AttlasError` for what cannot be read or written, for options that the model has no use
    for, for an output that is not ours or was begun from something else, and where another process
    is at it.
    """
    output, table = _checked(asked)
    keep_freed_memory()
    reader, search = _reader(asked)
    with explained(output):
        books(output).mkdir(parents=True, exist_ok=True)
    with held(books(output) / "lock") as ours:
        if not ours:
            raise AttlasError(
                f"{output} for this process alone",
                "another process that is at it",
                "wait for it, or choose another output",
            )
        _work(asked, output, table, reader, search)


def _checked(asked: Asked) -> tuple[Path, Table]:
    """What can be told before anything is read."""
    if asked.by not in _BY:
        raise AttlasError("--by head or --by token", quoted(asked.by), "choose one of them")
    if asked.output is None:
        raise AttlasError("an output for the table", "none", "add one: --output stats.csv")
    if unknown := [name for name in asked.also if name not in ALSO]:
        raise AttlasError(
            f"--also with {' or '.join(ALSO)}", quoted(unknown[0]), "choose one of them"
        )
    columns = columns_of(by_token=asked.by == "token", also=asked.also)
    table = table_at(asked.output, columns)
    check_replaceable(asked.output)
    check_distinct([asked.corpus, asked.target], [asked.output, table.beside(asked.output)])
    if asked.corpus == asked.target == STANDARD:
        raise AttlasError(
            "a corpus and its target from two places",
            "the standard input for both",
            "name a file for one of them",
        )
    for name in (asked.corpus, asked.target):
        if name is not None:
            check_has_words(name)
    return asked.output, table


def _work(asked: Asked, output: Path, table: Table, reader: Reader, search: Origin) -> None:
    with (
        on_disk(asked.corpus, books(output) / "corpus") as source,
        on_disk(asked.target or os.devnull, books(output) / "target") as beside,
    ):
        names = name_of(asked.corpus), name_of(asked.target or os.devnull)
        corpus = Corpus.of(source, None if asked.target is None else beside, names)
        corpus.check_has_words()
        origin: Origin = {
            "attlas": version("attlas"),
            "torch": str(torch.__version__),
            **reader.facts,
            TEXT: corpus.checksum,
            "target": corpus.target_checksum or "none",
            **search,
            "by": asked.by,
            "threshold": asked.threshold,
            "also": ", ".join(sorted(asked.also)) or "none",
            "layers": ", ".join(asked.layers or ("all",)),
            "tokens": asked.tokens,
        }
        facts = {
            "from": _spelled(str(asked.model)),
            "corpus": _spelled(name_of(asked.corpus)),
            "lines": corpus.lines,
            **origin,
        }
        part = StatsPart(output, origin, table)
        if part.progress.whole:
            part.tell_beside(facts)
            print(
                f"attlas: {output} is there already, of this model and this corpus",
                file=sys.stderr,
            )
            return
        measuring = Measuring(
            reader=reader,
            tokens=asked.tokens,
            threshold=asked.threshold,
            layers=asked.layers,
            by_token=asked.by == "token",
            also=asked.also,
        )
        measure(measuring, corpus, part, table, facts)


def _spelled(name: str) -> str:
    """A name of a file as a table can hold it: bytes that are no UTF-8 as they are written."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _reader(asked: Asked) -> tuple[Reader, Origin]:
    """The model as one that reads, and how it searches, where that matters.

    Errors: `AttlasError` for a path at which nothing can be looked into, and for options that it
    has no use for.
    """
    searching = {"--beam": asked.beam is not None, "--set": bool(asked.settings)}
    if not (asked.model / CONFIG).is_file() and HuggingFaceFolder.is_at(asked.model):
        check_used(
            {**searching, "--checkpoint": asked.checkpoint != BEST},
            "a model of Hugging Face",
            "it has one set of weights, and searches greedily",
        )
        folder = HuggingFaceFolder(asked.model, asked.device)
        _check_target(asked, writes=folder.writes)
        wanted = folder.writes and asked.target is None
        return HuggingFaceReader(folder), {"decoding.method": "greedy"} if wanted else {}
    _check_folder(asked.model)
    run, checkpoint = run_at(asked.model, asked.checkpoint)
    if run.classifies:
        check_used(searching, "a classifier", "it writes no text")
        _check_target(asked, writes=False)
        return ClassifierReader(run, which=checkpoint, device=asked.device), {}
    if asked.target is not None:
        check_used(searching, "a translation that is given", "--target is read, none is searched")
    said = overridden({"decoding": {}}, asked.settings).assigned
    named = asked.beam is not None or not said.isdisjoint({("decoding",), ("decoding", "method")})
    greedy = [] if named else ["decoding.method=greedy"]
    search = decoding_of(run, [*greedy, *asked.settings], asked.beam)
    reader = TranslatorReader(run, search, which=checkpoint, device=asked.device)
    if asked.target is not None:
        return reader, {}
    used = search.model_dump(exclude=set(idle_settings(search.method)))
    return reader, {f"decoding.{key}": value for key, value in used.items()}


def _check_target(asked: Asked, *, writes: bool) -> None:
    if asked.target is not None and not writes:
        raise AttlasError(
            "--target with a model that writes a text beside the one it reads",
            f"it for {asked.model}, which reads one text",
            "leave --target out",
        )


def _check_folder(model: Path) -> None:
    if (model / CONFIG).is_file():
        return
    came = f"no folder at {model}"
    if model.is_dir():
        came = f"the folder {model} with neither {CONFIG} nor config.json in it"
    elif model.exists():
        came = f"{model}, which is no folder"
    raise AttlasError(
        "the folder of a run that attlas train wrote, or of a model of Hugging Face",
        came,
        "check the path; a model is read from a folder, where save_pretrained of the model and of "
        "its tokenizer put it, and never fetched",
    )
