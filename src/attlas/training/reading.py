"""The data of a training: read, or opened as ids in files of the run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from attlas._files import explained
from attlas._text import count_noun
from attlas.data import Corpus, EncodedCorpus, LabelledData, Splits
from attlas.data.encoded_files import ENCODED, EncodedFiles, forget_encoded, write_encoded
from attlas.data.stored_pairs import IN_MEMORY, AbsentPairs
from attlas.errors import DataError
from attlas.runs.seal import digests_of
from attlas.training.distributed import is_launched
from attlas.training.events import Preparing, Report, silent
from attlas.training.recipe import Recipe
from attlas.training.tasks.base import SplitsLike


def read_data(recipe: Recipe, report: Report = silent) -> SplitsLike:
    """Read the data; of much of it, say so before.

    Raises:
        DataError: For a mistake in the data, and for want of memory.
    """
    size = 0 if isinstance(recipe.data, LabelledData) else recipe.data.size_on_disk
    if size > IN_MEMORY:
        report(preparing(f"reading {size / 1e6:,.0f} MB of training data"))
    with enough_memory("reading the data"):
        return recipe.data.load()


# Training pairs whose text is too large for memory: as ids in files of the run.


def opened_data(
    recipe: Recipe, folder: Path, report: Report = silent, *, mends: bool = True
) -> Splits | None:
    """The data, whose training pairs need not be read, where an earlier session has encoded the
    same; None where it has to be read.

    Args:
        mends: Take away files that are of no use, and report why.
    """
    data = recipe.data
    if not (folder / ENCODED).exists() or isinstance(data, LabelledData):
        return None
    files = _files(folder, data.fingerprint())
    fault = files.fault()
    if fault and mends:
        report(preparing(f"{fault}: encoding the training pairs again"))
        with explained(folder):
            forget_encoded(folder)
    corpora = None if fault else files.corpora(partial(data.corpus, "train"))
    return None if corpora is None else Splits(*corpora, data.corpus("test"))


def is_opened(splits: SplitsLike) -> bool:
    """Return True if `opened_data` gave it."""
    return isinstance(splits.train, Corpus) and isinstance(splits.train.pairs, AbsentPairs)


def store_pairs(
    recipe: Recipe,
    folder: Path,
    splits: SplitsLike,
    vocabularies: Any,
    report: Report = silent,
) -> tuple[SplitsLike, EncodedCorpus | None]:
    """Training pairs whose text is too large for memory as ids in files, which are written if they
    are not there, and the data without that text. Any others stay as they are.
    """
    data = recipe.data
    encoded = stored_pairs(recipe, folder, splits)
    if (
        not isinstance(splits, Splits)
        or isinstance(data, LabelledData)
        or not _are_stored(recipe, splits)
    ):
        return splits, None
    if encoded is None:
        processes = 1 if is_launched() else recipe.training.threads or torch.get_num_threads()
        step = f"encoding in {count_noun(processes, 'process', 'processes')}"
        report(preparing(f"{step}, into {folder / ENCODED}"))
        files = _files(folder, data.fingerprint())
        write_encoded(folder, splits.train, splits.valid, vocabularies, files.made_of, processes)
        encoded = _files(folder).encoded(splits.train)
    if not data.passing:
        train = _files(folder).without_text(splits.train, partial(data.corpus, "train"))
        splits = replace(splits, train=train)
    return splits, encoded


def stored_pairs(recipe: Recipe, folder: Path, splits: SplitsLike) -> EncodedCorpus | None:
    """The ids of the training pairs where they lie in files; None where they do not."""
    if not isinstance(splits, Splits) or not _are_stored(recipe, splits):
        return None
    return _files(folder).encoded(splits.train)


def _are_stored(recipe: Recipe, splits: Splits) -> bool:
    """Return True if their ids belong into files: drawn ones are others in each epoch."""
    return splits.train.is_stored and not recipe.vocabulary.sampling


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
