"""What a training works on, and the beginning of its folder."""

import json
import sys
from pathlib import Path

from attlas.config import read_toml, write_toml
from attlas.data import (
    Batches,
    Corpus,
    Splits,
    Vocabularies,
    build_vocabularies,
    corpus_of,
    encode_corpus,
    load_splits,
    sample_corpus,
)
from attlas.data.amount import amount
from attlas.errors import AttlasError
from attlas.runs import CONFIG, PROVENANCE, Run, Shelf, write_durably
from attlas.runs.durable import TEMPORARY, explained, sync
from attlas.runs.lock import LOCK
from attlas.training.events import Preparing, Report, silent
from attlas.training.limits import planned
from attlas.training.provenance import checksums, provenance
from attlas.training.recipe import Recipe, check_same

_VOCABULARIES = {"tokenizer", "source", "target"}  # the stems of their files


class Material:
    """Corpora and vocabularies; the batches follow from them, the seed and the epoch."""

    def __init__(self, recipe: Recipe, splits: Splits, vocabularies: Vocabularies) -> None:
        self.recipe, self.splits, self.vocabularies = recipe, splits, vocabularies
        self._best = Batches(
            encode_corpus(splits.train, vocabularies), recipe.batching, recipe.seed
        )
        self.valid_batches = Batches(
            encode_corpus(splits.valid, vocabularies), recipe.batching, recipe.seed
        )

    def batches(self, epoch: int) -> Batches:
        """The training batches of an epoch: with subword sampling, other tokens in each."""
        recipe, sampling = self.recipe, self.recipe.vocabulary.sampling
        if not sampling:
            return self._best
        encoded = sample_corpus(self.splits.train, self.vocabularies, sampling, recipe.seed, epoch)
        return Batches(encoded, recipe.batching, recipe.seed)

    def planned(self) -> int | None:
        """Of how many updates the whole training is; None where nothing but time limits it.

        With subword sampling, about so many.
        """
        return planned(self.recipe.training, len(self._best.epoch(0)))

    def valid_corpus(self) -> Corpus:
        """What is translated at each validation."""
        valid, most = self.splits.valid, self.recipe.training.validation.sentences
        return valid if most is None else corpus_of(valid.pairs[:most], valid.name)


def prepared(
    recipe: Recipe, folder: Path, report: Report = silent, splits: Splits | None = None
) -> Material:
    """Load the data, and begin the folder or check that it was begun with the same recipe and data.

    A folder without a checkpoint is begun anew: nothing was trained that another recipe would
    spoil. `config.toml` is written last: a new folder that has one has all the rest.
    `splits`: the data where it is loaded already.
    Errors: `AttlasError` where recipe or data are not those it began with.
    """
    begun = Shelf(folder).begun()
    if begun:
        check_same(Recipe.read(read_toml(folder / CONFIG), str(folder / CONFIG)), recipe, folder)
    if (folder / CONFIG).is_file():
        _check_there(recipe, folder)
        if not begun:
            report(_news(f"no checkpoint yet in {folder}: starting over"))
    splits = splits or load_splits(recipe.data)
    pairs = f"the {amount(len(splits.train), 'training pair')}"
    report(_news(f"encoding {pairs}" if begun else f"building vocabularies from {pairs}, encoding"))
    if begun:
        _check_data(Run(folder), recipe, splits)
        vocabularies = Vocabularies.load(folder)
    else:
        vocabularies = build_vocabularies(recipe.vocabulary, splits.train.pairs)
        with explained(folder):
            vocabularies.save(folder)
            for path in folder.iterdir():
                if path.stem in _VOCABULARIES:
                    sync(path)
        facts = json.dumps(provenance(splits, recipe.seed), indent=2, ensure_ascii=False)
        write_durably(folder / PROVENANCE, facts.encode() + b"\n")
    config = write_toml(recipe.tables()).encode()
    if not begun or (folder / CONFIG).read_bytes() != config:
        write_durably(folder / CONFIG, config)
    return Material(recipe, splits, vocabularies)


def check_folder(folder: Path) -> None:
    """That a folder is a run's, or holds nothing but what a killed beginning of one leaves.

    Errors: `AttlasError` that names what else is there.
    """
    if (folder / CONFIG).is_file():
        return
    others = sorted(path.name for path in folder.iterdir())
    if LOCK in others:  # then attlas has been here, and these may be its own
        others = [name for name in others if not _of_a_beginning(Path(name))]
    if others:
        raise AttlasError(
            f"an empty folder, or the folder of a run, at {folder}",
            f"a folder without {CONFIG} that holds {', '.join(others[:3])}",
            "choose another folder",
        )


def _of_a_beginning(path: Path) -> bool:
    return (
        path.name in (LOCK, PROVENANCE)
        or path.suffix == TEMPORARY
        or (path.stem in _VOCABULARIES and path.suffix in (".model", ".json"))
    )


def _news(what: str) -> Preparing:
    return Preparing(update=0, epoch=0, seconds=0.0, what=what)


def _check_there(recipe: Recipe, folder: Path) -> None:
    """That data which came from the standard input is on it again: nobody waits for a keyboard."""
    if recipe.data.passing and sys.stdin.isatty():
        raise AttlasError(
            f"the data with which {folder} began, which came from the standard input",
            "a terminal there",
            f"give it again: attlas train {folder} < DATA",
        )


def _check_data(run: Run, recipe: Recipe, splits: Splits) -> None:
    again = "restore the data"
    if recipe.data.passing:
        again = "it came from the standard input: give the same there again"
    before, now = run.provenance().get("data", {}), checksums(splits)
    for name in ("train", "valid"):
        was, is_ = before.get(name, {}), now[name]
        if was.get("sha256") != is_["sha256"]:
            raise AttlasError(
                f"the {name} data with which {run.path} began "
                f"({amount(was.get('pairs', 0), 'pair')} of {was.get('name')})",
                f"other sentences ({amount(is_['pairs'], 'pair')} of {is_['name']})",
                f"{again} to go on with that run, or choose another folder for a new one",
            )
