"""Initial weights from another run."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from attlas.errors import CheckpointError, ConfigError, DataError, join_names
from attlas.runs import BEST, CONFIG, PROVENANCE, Run, load_weights
from attlas.training.events import Preparing, Report
from attlas.training.recipe import Recipe, changed_settings

INITIAL = "initial"  # where the provenance of a run says with which weights it began
_CHECKPOINT = ".safetensors"


@dataclass(frozen=True, slots=True)
class InitialWeights:
    """A checkpoint of another run, which is to have the same architecture and vocabularies.

    Args:
        sha256: Of its file, so that all processes of a training begin with the same.
    """

    run: Run
    checkpoint: str
    sha256: str

    @classmethod
    def of(cls, recipe: Recipe) -> "InitialWeights | None":
        """What `training.init_from` names; None where it names nothing.

        Raises:
            AttlasError: That names what differs, and if there is no such checkpoint.
        """
        if not recipe.training.init_from:
            return None
        path, name = run_and_checkpoint(recipe.training.init_from)
        run = Run(path)
        _check_same_model(recipe, run)
        checkpoint = run.store.number_of(name)
        if checkpoint not in run.checkpoints():
            run.store.read(name)  # which says what there is
        return cls(run, checkpoint, _sha256(run, checkpoint))

    @classmethod
    def noted(cls, folder: Path) -> "InitialWeights | None":
        """With what the run in this folder began, by its provenance; None: with fresh weights."""
        facts = Run(folder).provenance().get(INITIAL)
        if facts is None:
            return None
        initial_facts = facts if isinstance(facts, dict) else {}
        recorded = [initial_facts.get(key) for key in ("run", "checkpoint", "sha256")]
        if not all(isinstance(value, str) for value in recorded):
            raise CheckpointError(
                f"the run and the checkpoint with which {folder} began, in its {PROVENANCE}",
                "something else",
                "restore that file",
            )
        run, checkpoint = Run(str(recorded[0])), str(recorded[1])
        current = _sha256(run, checkpoint)
        if current != recorded[2]:
            raise CheckpointError(
                f"checkpoint {checkpoint} of {run.path} as this training began with it",
                "another one",
                "put it back, or begin in another folder (--out)",
            )
        return cls(run, checkpoint, current)

    def facts(self) -> dict[str, str]:
        """For the provenance."""
        return {
            "run": str(self.run.path),
            "checkpoint": self.checkpoint,
            "sha256": self.sha256,
        }

    def vocabularies(self) -> Any:
        """Those of that run."""
        run = self.run
        return run.labelled_vocabularies() if run.classifies else run.vocabularies()

    def check_labels(self, splits: Any) -> None:
        """Check that a classifier's texts have the labels of that run.

        Raises:
            AttlasError: That names others.
        """
        if not self.run.classifies:
            return
        names = self.run.labelled_vocabularies().labels
        others = sorted(set(splits.train.labels) - set(names.names))
        if others:
            raise DataError(
                f"texts with the labels {names}, those of {self.run.path}",
                f"texts of {splits.train.name} with {join_names(map(repr, others), ', ')}",
                "train without --init-from, or correct these labels",
            )

    def load_into(self, model: nn.Module) -> None:
        """Give a fresh model these weights."""
        run = self.run
        source_model = (run.classifier if run.classifies else run.model)(self.checkpoint)
        load_weights(model, source_model.state_dict(), run.path)


def run_and_checkpoint(name: str) -> tuple[Path, str]:
    """The folder of a run, and which checkpoint of it: the best, or the one whose file is named."""
    path = Path(name)
    if path.suffix == _CHECKPOINT:
        return path.absolute().parent.parent, path.stem
    return path, BEST


def begin_with(model: nn.Module, folder: Path, report: Report) -> None:
    """Give a fresh model the weights with which the run in this folder begins, if they are others'.

    Raises:
        AttlasError: If they are not there any more.
    """
    initial = InitialWeights.noted(folder)
    if initial is None:
        return
    initial.load_into(model)
    message = f"begun with the weights of {initial.run.path}, checkpoint {initial.checkpoint}"
    report(Preparing(update=0, epoch=0, seconds=0.0, what=message))


def _check_same_model(recipe: Recipe, run: Run) -> None:
    initial = Recipe.read(run.config, str(run.path / CONFIG))
    if initial.classifies != recipe.classifies:
        kinds = [
            "classifies" if config.classifies else "translates" for config in (recipe, initial)
        ]
        raise ConfigError(
            f"a run to begin with that {kinds[0]}, as the recipe does",
            f"{run.path}, which {kinds[1]}",
            "name another run with --init-from",
        )
    changes = changed_settings(_made_of(initial), _made_of(recipe))
    if changes:
        raise ConfigError(
            f"the architecture and the vocabulary of {run.path} (--init-from)",
            "; ".join(changes),
            "set these as that run has them, or train without --init-from",
        )


def _made_of(recipe: Recipe) -> Mapping[str, Any]:
    """What decides which weights there are, and what they mean; dropouts do not, nor how subwords
    are drawn in training.
    """
    tables = recipe.tables()
    model = {k: v for k, v in tables["model"].items() if not k.endswith("dropout")}
    vocabulary = {k: v for k, v in tables["vocabulary"].items() if k != "sampling"}
    return {"model": model, "vocabulary": vocabulary}


def _sha256(run: Run, checkpoint: str) -> str:
    try:
        with run.store.path(checkpoint).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {checkpoint} of {run.path}, with which this training begins",
            error.strerror or str(error),
            "put it back, or begin in another folder (--out)",
        ) from None
