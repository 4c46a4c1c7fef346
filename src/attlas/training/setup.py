"""Preparation of a training: data, provenance, and the run folder."""

import json
import platform
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import attlas
from attlas._files import LOCK, TEMPORARY, explained, sync, write_durably
from attlas._hardware import processor_name
from attlas._text import count_noun
from attlas.config import read_toml, write_toml
from attlas.data import Subwords
from attlas.data.encoded_files import ENCODED, forget_encoded
from attlas.data.lines import check_given_again
from attlas.errors import CheckpointError, DataError
from attlas.runs import CONFIG, LAST, PROVENANCE, CheckpointStore, Run
from attlas.runs.checkpoints import read_seal
from attlas.runs.seal import check_sealed
from attlas.training.events import Report, silent
from attlas.training.initialization import INITIAL, InitialWeights
from attlas.training.reading import (
    LoadedData,
    enough_memory,
    is_opened,
    joined_data,
    opened_data,
    preparing,
    read_data,
    store_pairs,
    stored_pairs,
)
from attlas.training.recipe import Recipe, check_same, check_same_as_main
from attlas.training.tasks import task_of
from attlas.training.tasks.base import AnyTask, SplitsLike

# Provenance.


def provenance(splits: SplitsLike, example: str, seed: int) -> dict[str, Any]:
    """Versions, machine, commit, seed, and the checksum of each split."""
    return {
        **code_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.platform(),
        "processor": processor_name(),
        "seed": seed,
        "data": checksums(splits, example),
    }


def code_version() -> dict[str, str | None]:
    """The code that is running: its version, and its commit (None outside a checkout)."""
    return {"attlas": _version("attlas"), "commit": _commit()}


def checksums(splits: SplitsLike, example: str) -> dict[str, dict[str, Any]]:
    """Name, number of examples (such as "pairs") and SHA-256 of each split."""
    corpora = {"train": splits.train, "valid": splits.valid, "test": splits.test}
    return {
        name: {"name": corpus.name, f"{example}s": len(corpus), "sha256": corpus.checksum}
        for name, corpus in corpora.items()
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that attlas runs from, "+" where files differ from it."""
    file = Path(attlas.__file__)

    def git(*words: str) -> str | None:
        try:
            process = subprocess.run(
                ["git", "-C", str(file.parent), *words], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return process.stdout.strip() if process.returncode == 0 else None

    if git("ls-files", "--error-unmatch", file.name) is None:  # a checkout of something else
        return None
    commit, changes = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", ".")
    return f"{commit}+" if commit and changes else commit


_VOCABULARIES = {"tokenizer", "source", "target", "labels"}  # the stems of their files


def prepare_run(
    recipe: Recipe, folder: Path, report: Report = silent, loaded: LoadedData | None = None
) -> AnyTask:
    """Load the data, and begin the folder or check that it was begun with the same recipe and data.

    A folder without a checkpoint is begun anew: nothing was trained that another recipe would
    spoil. `config.toml` is written last: a new folder that has one has all the rest.

    Args:
        loaded: The data, where it is read already.

    Raises:
        AttlasError: If recipe or data are not those it began with.
    """
    has_checkpoint = CheckpointStore(folder).begun()
    if has_checkpoint:
        _check_sealed(CheckpointStore(folder))
        check_same(_began_with(folder), recipe, folder)
    if (folder / CONFIG).is_file():
        if recipe.data.passing:
            check_given_again(folder, f"give it again: attlas train {folder} < DATA")
        if not has_checkpoint:
            report(preparing(f"no checkpoint yet in {folder}: starting over"))
    kind = task_of(recipe)
    if not has_checkpoint:
        with explained(folder):
            forget_encoded(folder)
    if loaded is None:
        loaded = opened_data(recipe, folder, report) or read_data(recipe, report)
    splits = loaded.splits
    examples = f"the {count_noun(len(splits.train), f'training {kind.example}')}"
    is_initialized = has_checkpoint or recipe.training.init_from
    if is_opened(splits):
        step = f"{examples} are encoded in {folder / ENCODED}"
    elif is_initialized:
        step = f"encoding {examples}"
    else:
        step = f"building vocabularies from {examples}, encoding"
    report(preparing(step))
    if has_checkpoint:
        _check_data(Run(folder), recipe, splits, kind.example)
        vocabularies = kind.vocabularies_in(folder)
    else:
        initial = InitialWeights.of(recipe)
        if initial is None:
            with enough_memory(f"building vocabularies from {examples}"):
                vocabularies = kind.vocabularies_of(recipe, splits)
            for note in _notes_of_samples(vocabularies):
                report(preparing(note))
        else:
            initial.check_labels(splits)
            vocabularies = initial.vocabularies()
        with explained(folder):
            vocabularies.save(folder)
            for path in folder.iterdir():
                if path.stem in _VOCABULARIES:
                    sync(path)
        facts = {
            **provenance(splits, kind.example, recipe.seed),
            **({} if initial is None else {INITIAL: initial.facts()}),
            "recipe": tomllib.loads(write_toml(recipe.tables())),
        }
        text = json.dumps(facts, indent=2, ensure_ascii=False)
        write_durably(folder / PROVENANCE, text.encode() + b"\n")
    with enough_memory(f"encoding {examples}"):
        splits, encoded = store_pairs(recipe, folder, loaded, vocabularies, report)
    config = write_toml(recipe.tables()).encode()
    if not has_checkpoint or (folder / CONFIG).read_bytes() != config:
        write_durably(folder / CONFIG, config)
    with enough_memory(f"encoding {examples}"):
        return kind(recipe, splits, vocabularies, encoded)


def _notes_of_samples(vocabularies: Any) -> list[str]:
    """What to report of vocabularies that were built from a part of the texts."""
    named = {"": "text", "source ": "source", "target ": "target"}
    if getattr(vocabularies, "shared", False):
        named = {"": "source"}
    parts = [(name, getattr(vocabularies, field, None)) for name, field in named.items()]
    return [
        f"the {name}vocabulary is built from one text of {vocabulary.step}: there are very many"
        for name, vocabulary in parts
        if isinstance(vocabulary, Subwords) and vocabulary.step > 1
    ]


def _check_sealed(store: CheckpointStore) -> None:
    """Check that nothing else of the folder has changed since its last checkpoint: first, because
    damage to a file looks like another recipe, or like other data.
    """
    if name := store.named(LAST):
        check_sealed(store.run, name, read_seal(store.path(name)))


def _began_with(folder: Path) -> Recipe:
    """The recipe of the first session: `config.toml` may have been edited since."""
    recorded = Run(folder).provenance().get("recipe")
    if recorded is None:  # begun before attlas noted it there
        return Recipe.read(read_toml(folder / CONFIG), str(folder / CONFIG))
    return Recipe.read(recorded, str(folder / PROVENANCE))


def join_run(recipe: Recipe, folder: Path, *, opened: bool = False) -> AnyTask:
    """What `prepare_run` gave the first process of a process group, in another one.

    Args:
        opened: Its training pairs are ids in files, see `is_opened`: then they are here as well.

    Raises:
        AttlasError: If this process has another recipe than the first, finds other data, or no such
            folder.
    """
    kind = task_of(recipe)
    if not (folder / CONFIG).is_file():
        raise CheckpointError(
            f"the folder {folder}, which the first process of this training has made",
            "no such run",
            "train in a folder that every machine sees under the same name",
        )
    check_same_as_main(Recipe.read(read_toml(folder / CONFIG), str(folder / CONFIG)), recipe)
    splits = ((joined_data(recipe, folder) if opened else None) or read_data(recipe)).splits
    _check_data(Run(folder), recipe, splits, kind.example)
    return kind(recipe, splits, kind.vocabularies_in(folder), stored_pairs(recipe, folder, splits))


def check_folder(folder: Path) -> None:
    """Check that a folder is a run's, or holds nothing but what a killed beginning of one leaves.

    Raises:
        AttlasError: That names what else is there.
    """
    if (folder / CONFIG).is_file():
        return
    others = sorted(path.name for path in folder.iterdir())
    if LOCK in others:  # then attlas has been here, and these may be its own
        others = [name for name in others if not _of_a_beginning(Path(name))]
    if others:
        raise CheckpointError(
            f"an empty folder, or the folder of a run, at {folder}",
            f"a folder without {CONFIG} that holds {', '.join(others[:3])}",
            "choose another folder",
        )


def _of_a_beginning(path: Path) -> bool:
    return (
        path.name in (LOCK, PROVENANCE, ENCODED)
        or path.suffix == TEMPORARY
        or (path.stem in _VOCABULARIES and path.suffix in (".model", ".json"))
    )


def _check_data(run: Run, recipe: Recipe, splits: SplitsLike, example: str) -> None:
    advice = "restore the data"
    if recipe.data.passing:
        advice = "it came from the standard input: give the same data there again"
    recorded, current = run.provenance().get("data", {}), checksums(splits, example)
    for name in ("train", "valid"):
        old, new = recorded.get(name, {}), current[name]
        if old.get("sha256") != new["sha256"]:
            raise DataError(
                f"the {name} data with which {run.path} began "
                f"({count_noun(old.get(f'{example}s', 0), example)} of {old.get('name')})",
                f"other {example}s ({count_noun(new[f'{example}s'], example)} of {new['name']})",
                f"{advice} to go on with that run, or choose another folder for a new one",
            )
