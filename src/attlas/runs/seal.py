"""The seal of a checkpoint: everything besides its weights that its results depend on."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attlas._files import parse_json, stored_bytes
from attlas.config import Config, read_toml
from attlas.data import VocabularyConfig
from attlas.data.vocabularies import LABELS, vocabulary_names
from attlas.errors import CheckpointError, quoted
from attlas.models import ModelConfig

CONFIG, PROVENANCE = "config.toml", "provenance.json"

# The settings that a continued run may change: limits, device, what it saves and reports, and how
# it translates. The data may have moved, but its checksum must be the same.
CHANGEABLE = {
    "data",
    "decoding",
    "training.max_epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.keep_last",
    "training.save_every",
    "training.log_every",
    "training.device",
    "training.cuda_graphs",
    "training.tf32",
    "training.threads",
    "training.distribution",
    "training.tensorboard",
    "training.watch",
    "training.validation.patience",
    "training.validation.decoding.autocast",  # as the device, which may lack its numbers
    "training.validation.decoding.cuda_graphs",
}
_SETS = ("train", "valid")  # whose checksums a run keeps to; the test set may be another one
_DIGITS = 16  # of a checksum in a pointer, hexadecimal


class _Answering(Config):
    """The tables of a recipe without which the weights are those of something else."""

    model: ModelConfig
    vocabulary: VocabularyConfig = VocabularyConfig()


def seal_of(run: Path) -> dict[str, Any]:
    """Of the folder of a run as it stands, as JSON, for its checkpoints.

    files: the SHA-256 of each vocabulary and of the labels. recipe: the settings with which the run
    began that no session may change; data: the SHA-256 of what it learns from. Both are those of
    its provenance, of which versions and machine are no part.
    """
    initial_facts = _initial_facts(run) or {}
    recipe = initial_facts.get("recipe") or unchangeable(read_toml(run / CONFIG))
    return {"files": digests_of(run), "recipe": recipe, "data": initial_facts.get("data", {})}


def check_sealed(run: Path, name: str, seal: Mapping[str, Any] | None) -> None:
    """Check that the folder is the one for which the checkpoint of this name, with this seal, was
    made.

    A checkpoint that has none was saved before there were seals, or is no training's.

    Raises:
        CheckpointError: That names the file which is another one, and the way out.
    """
    if seal is None:
        return
    checkpoint = f"checkpoint {name} of {run}"
    of_files, of_data, of_recipe = _other_files(run, seal), *_other_run(run, seal)
    of_settings = _other_settings(run, seal)
    if of_data or (of_recipe and (of_files or of_settings)):
        raise CheckpointError(
            f"the files of one run in {run}",
            f"checkpoint {name} and {PROVENANCE} of two runs: {'; '.join([*of_data, *of_recipe])}",
            "put back the checkpoint, or else all other files, as attlas train wrote them there",
        )
    if of_files:
        raise CheckpointError(
            f"the files with which {checkpoint} was saved",
            "; ".join(of_files),
            f"put them back as attlas train wrote them in {run}; where no copy is left, a training "
            "with the same recipe and data in another folder (--out) writes the same ones",
        )
    if of_settings:
        raise CheckpointError(
            f"the settings with which {checkpoint} was trained in {run / CONFIG}",
            "; ".join(of_settings),
            "put these back there; another model or vocabulary needs its own training (--out)",
        )
    if of_recipe:
        raise CheckpointError(
            f"the recipe with which {checkpoint} began in {run / PROVENANCE}",
            "; ".join(of_recipe),
            f"restore {PROVENANCE} as attlas train wrote it, or put back the checkpoint, if it "
            "came from another run",
        )


def mark(name: str, seal: Mapping[str, Any]) -> str:
    """What stands behind the name of a checkpoint in `best` and `last`: a checksum of the name and
    of its seal, so that another name, or that of another run, is noticed.
    """
    return hashlib.sha256(f"{name} {_canonical(seal)}".encode()).hexdigest()[:_DIGITS]


def unchangeable(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe that no session may change, by their dotted names."""
    return {name: value for name, value in flat(recipe).items() if not is_changeable(name)}


def is_changeable(name: str) -> bool:
    """Return True if a run may go on with another value of this setting."""
    return any(name == free or name.startswith(f"{free}.") for free in CHANGEABLE)


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, by dotted names."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{key}.")
        else:
            result[f"{prefix}{key}"] = value
    return result


def digests_of(run: Path) -> dict[str, str]:
    """The SHA-256 of each file that is a vocabulary, or the labels, of a run."""
    digests = {}
    for name in (*vocabulary_names(), LABELS):
        try:
            content = stored_bytes(run / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CheckpointError(
                f"to read {run / name}", error.strerror or str(error), "make it readable"
            ) from None
        digests[name] = hashlib.sha256(content).hexdigest()
    return digests


def _initial_facts(run: Path) -> dict[str, Any] | None:
    """What a run began with, of its provenance; None where that is lost, or empty."""
    path = run / PROVENANCE
    try:
        recorded = parse_json(stored_bytes(path))
        if not isinstance(recorded, dict):
            raise ValueError("it holds no facts about a run")
        recipe, data = recorded.get("recipe"), recorded.get("data", {})
        if not isinstance(data, dict) or not isinstance(recipe, dict | None):
            raise ValueError("it holds no facts about a run")
        sums = {
            split: data[split].get("sha256") for split in _SETS if isinstance(data.get(split), dict)
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"a readable {PROVENANCE} in {run}", str(error), "restore that file"
        ) from None
    return {"recipe": None if recipe is None else unchangeable(recipe), "data": sums}


def _other_files(run: Path, seal: Mapping[str, Any]) -> list[str]:
    """Those of another content, those that are gone, and those that came: in words."""
    sealed, current = seal["files"], digests_of(run)
    changed_files = []
    for name in sorted({*sealed, *current}):
        sealed_sum, current_sum = sealed.get(name), current.get(name)
        if sealed_sum is None:
            changed_files.append(f"{name}, which was not there")
        elif current_sum is None:
            changed_files.append(f"no {name}")
        elif sealed_sum != current_sum:
            changed_files.append(
                f"{name} with other bytes (SHA-256 {current_sum[:_DIGITS]}…, "
                f"not {sealed_sum[:_DIGITS]}…)"
            )
    return changed_files


def _other_settings(run: Path, seal: Mapping[str, Any]) -> list[str]:
    """Of the model and of the vocabulary: which differ, in words."""
    location = str(run / CONFIG)
    sealed = _nested_tables(seal["recipe"])
    sealed_answers = flat(_answering(sealed, f"the seal of a checkpoint of {run}"))
    current_answers = flat(_answering(read_toml(run / CONFIG), location))
    return _differing(sealed_answers, current_answers)


def _other_run(run: Path, seal: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """How the provenance differs from the data and the recipe, in words."""
    initial_facts = _initial_facts(run)
    if initial_facts is None:
        return [], []
    sealed, current = seal["data"], initial_facts["data"]
    of_data = [
        f"other data ({split})" for split in _SETS if sealed.get(split) != current.get(split)
    ]
    if initial_facts["recipe"] is None:
        return of_data, []
    return of_data, _differing(seal["recipe"], initial_facts["recipe"])


def _differing(sealed: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = {quoted(current.get(key))} instead of {quoted(sealed.get(key))}"
        for key in sorted({*sealed, *current})
        if sealed.get(key) != current.get(key)
    ]


def _answering(tables: Mapping[str, Any], location: str) -> dict[str, Any]:
    names = [name for name in _Answering.model_fields if name in tables]
    return _Answering.read({name: tables[name] for name in names}, location).model_dump(mode="json")


def _nested_tables(dotted: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for name, value in dotted.items():
        *keys, last = name.split(".")
        group = tables
        for key in keys:
            group = group.setdefault(key, {})
        group[last] = value
    return tables


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
