"""The data of a training: read, or opened as ids in files of the run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import torch

from attlas._files import explained
from attlas._text import count_noun
from attlas.data import Corpus, EncodedCorpus, LabelledData, Splits
from attlas.data.base import DataSettings
from attlas.data.encoded_files import ENCODED, EncodedFiles, forget_encoded, write_encoded
from attlas.data.stored_pairs import IN_MEMORY, AbsentPairs
from attlas.errors import DataError
from attlas.runs.seal import digests_of
from attlas.training.distributed import is_launched
from attlas.training.events import Preparing, Report, silent
from attlas.training.recipe import Recipe
from attlas.training.tasks.base import SplitsLike


class LoadedData(NamedTuple):
    """The data, and the fingerprint of the files that it was read from; None where that is not
    known, and where nobody needs it.
    """

    splits: SplitsLike
    fingerprint: dict[str, Any] | None = None


def read_data(recipe: Recipe, report: Report = silent) -> LoadedData:
    """Read the data; of much of it, say so before.

    The fingerprint is taken before and after: where a file was written to in between, nobody knows
    which of its bytes were read.

    Raises:
        DataError: For a mistake in the data, and for want of memory.
    """
    data = recipe.data
    if isinstance(data, LabelledData):
        with enough_memory("reading the data"):
            return LoadedData(data.load())
    if data.size_on_disk > IN_MEMORY:
        report(preparing(f"reading {data.size_on_disk / 1e6:,.0f} MB of training data"))
    fingerprint = data.fingerprint()
    with enough_memory("reading the data"):
        splits = data.load()
    if not _are_stored(splits, recipe):
        return LoadedData(splits)
    if fingerprint != data.fingerprint():
        what = "the data changed while it was read: a session that goes on will read it again"
        report(preparing(what))
        return LoadedData(splits)
    return LoadedData(splits, fingerprint)


# Training pairs whose text is too large for memory: as ids in files of the run.


def opened_data(recipe: Recipe, folder: Path, report: Report = silent) -> LoadedData | None:
    """The data, whose training pairs need not be read, where an earlier session has encoded the
    same; None where it has to be read. Files that are of no use are taken away.
    """
    data = recipe.data
    if not (folder / ENCODED).exists() or isinstance(data, LabelledData):
        return None
    files = _files(folder, data.fingerprint())
    if fault := files.fault():
        report(preparing(f"{fault}: encoding the training pairs again"))
        with explained(folder):
            forget_encoded(folder)
        return None
    return _with_test(files.corpora(partial(data.corpus, "train")), data)


def joined_data(recipe: Recipe, folder: Path) -> LoadedData | None:
    """The same in another process, when the first one has opened or written the files: neither they
    nor the data are compared once more.
    """
    data = recipe.data
    if isinstance(data, LabelledData):
        return None
    corpora = _files(folder).corpora(partial(data.corpus, "train"), compared=True)
    return _with_test(corpora, data)


def _with_test(corpora: tuple[Corpus, Corpus] | None, data: DataSettings) -> LoadedData | None:
    return None if corpora is None else LoadedData(Splits(*corpora, data.corpus("test")))


def is_opened(splits: SplitsLike) -> bool:
    """Return True if its training pairs are ids in files, and their text is not at hand."""
    return isinstance(splits.train, Corpus) and isinstance(splits.train.pairs, AbsentPairs)


def store_pairs(
    recipe: Recipe,
    folder: Path,
    loaded: LoadedData,
    vocabularies: Any,
    report: Report = silent,
) -> tuple[SplitsLike, EncodedCorpus | None]:
    """Training pairs whose text is too large for memory as ids in files, which are written if they
    are not there, and the data without that text. Any others stay as they are.
    """
    data, splits = recipe.data, loaded.splits
    encoded = stored_pairs(recipe, folder, splits)
    if isinstance(data, LabelledData) or not _are_stored(splits, recipe):
        return splits, None
    if encoded is None:
        processes = processes_of(recipe)
        step = f"encoding in {count_noun(processes, 'process', 'processes')}"
        report(preparing(f"{step}, into {folder / ENCODED}"))
        made_of = _files(folder, loaded.fingerprint).made_of
        write_encoded(folder, splits.train, splits.valid, vocabularies, made_of, processes)
        encoded = _files(folder).encoded(splits.train)
    if not data.passing:
        train = _files(folder).without_text(splits.train, partial(data.corpus, "train"))
        splits = replace(splits, train=train)
    return splits, encoded


def processes_of(recipe: Recipe) -> int:
    """How many processes prepare the data: beside others of torchrun, only this one."""
    return 1 if is_launched() else recipe.training.threads or torch.get_num_threads()


def stored_pairs(recipe: Recipe, folder: Path, splits: SplitsLike) -> EncodedCorpus | None:
    """The ids of the training pairs where they lie in files; None where they do not."""
    if not _are_stored(splits, recipe):
        return None
    return _files(folder).encoded(splits.train)


def _are_stored(splits: SplitsLike, recipe: Recipe) -> TypeGuard[Splits]:
    """Return True if their ids belong into files: drawn ones are others in each epoch."""
    is_stored = isinstance(splits, Splits) and splits.train.is_stored
    return is_stored and not recipe.vocabulary.sampling


def _files(folder: Path, fingerprint: dict[str, Any] | None = None) -> EncodedFiles:
    return EncodedFiles(folder, {"vocabularies": digests_of(folder), "data": fingerprint})


# What is told.


def preparing(step: str) -> Preparing:
    """The event of a slow step."""
    return Preparing(update=0, epoch=0, seconds=0.0, what=step)


@contextmanager
def enough_memory(step: str) -> Iterator[None]:
    """Say what was done in the block when there was no memory left.

    Raises:
        DataError: In place of a `MemoryError`.
    """
    try:
        yield
    except MemoryError:
        raise DataError(
            f"enough memory for {step}",
            "no more",
            "end other programs, or train on fewer examples",
        ) from None
