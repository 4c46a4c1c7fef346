"""A run: read the folder of a training."""

import re
import shutil
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from torch import nn

from attlas._files import LOCK, parse_json, stored_bytes, utf8_text, write_durably
from attlas._hardware import device_named
from attlas.config import Config, read_toml
from attlas.data import LabelledVocabularies, Vocabularies
from attlas.data.encoded_files import ENCODED
from attlas.data.vocabularies import LABELS, vocabulary_names
from attlas.errors import (
    AttlasError,
    CheckpointError,
    UnsupportedError,
    missing_extra,
    quoted,
    unwritable,
)
from attlas.models import (
    Classifier,
    ClassifierConfig,
    ModelConfig,
    SequenceToSequence,
    TranslatorConfig,
    build,
    build_classifier,
)
from attlas.runs.checkpoints import BEST, CHECKPOINTS, LAST, Checkpoint, CheckpointStore
from attlas.runs.model_card import README, model_card
from attlas.runs.seal import CONFIG, PROVENANCE, check_sealed

METRICS = "metrics.jsonl"
WATCH = "watch.jsonl"
NOTES = "explorer-notes.json"

FILES = {
    CONFIG: "the recipe, with every change by `--set`",
    PROVENANCE: "seed, data with checksums, commit, machine, versions",
    **dict.fromkeys(vocabulary_names(), "a vocabulary: it turns texts into ids"),
    LABELS: "the labels of a classifier",
    METRICS: "one JSON object a line: losses, scores, speed",
    WATCH: "one JSON object a line: attention of every head, alarms; with `training.watch.every`",
    f"{ENCODED}/": "the training pairs as ids, where their text is too large for memory; see below",
    f"{CHECKPOINTS}/": "one safetensors file for each checkpoint, with a SHA-256",
    BEST: "the name of the best checkpoint",
    LAST: "the name of the last checkpoint",
    NOTES: "the notes of a reader, from the explorer's page",
    LOCK: "held while a process trains",
}
"""The files of a run and what is in them, in Markdown."""
_PUBLISHED = (CONFIG, PROVENANCE, METRICS, LABELS, *vocabulary_names())
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


HUGGING_FACE = "config.json"  # the settings of a folder of transformers


def _similar(path: Path) -> str:
    """A run beside the path whose name is much like it, as a question; "" where there is none."""
    try:
        names = [other.name for other in path.parent.iterdir() if (other / CONFIG).is_file()]
    except OSError:
        return ""
    close = get_close_matches(path.name, names, 1)
    return f"did you mean {path.parent / close[0]}? Otherwise " if close else ""


class _ModelTable(Config):
    model: ModelConfig


class Run:
    """An existing run folder.

    Raises:
        AttlasError: If the folder or its `config.toml` is missing.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.store = CheckpointStore(self.path)
        if not self.path.is_dir():
            raise CheckpointError(
                "the folder of a run",
                f"a file at {self.path}" if self.path.exists() else f"no folder at {self.path}",
                _similar(self.path) + "check the path, or train one: attlas train --help shows how",
            )
        if not (self.path / CONFIG).is_file():
            if (self.path / HUGGING_FACE).is_file():
                raise CheckpointError(
                    f"the folder of a run at {self.path}",
                    "a model of Hugging Face",
                    "attlas look, attlas stats and attlas.observe read such models",
                )
            raise CheckpointError(
                f"the folder of a run at {self.path}",
                f"no {CONFIG} in it",
                "pass the folder that attlas train wrote",
            )

    @classmethod
    def from_pretrained(
        cls,
        name: Path | str,
        *,
        revision: str | None = None,
        cache_dir: Path | str | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """A run in a folder, or one of the Hugging Face Hub by its name, such as "user/model".

        A folder of that name is taken first. Of the Hub only the files of a run are fetched, which
        are numbers, text and JSON: no code is executed.

        Raises:
            AttlasError: If there is none, and if huggingface_hub is missing (`pip install
                'attlas[hub]'`).
        """
        if Path(name).exists() or not _HUB_NAME.fullmatch(str(name)):
            return cls(name)
        hub = _hub()
        try:
            folder = hub.snapshot_download(
                str(name),
                revision=revision,
                cache_dir=cache_dir,
                token=token,
                local_files_only=local_files_only,
                allow_patterns=[*_PUBLISHED, BEST, "checkpoints/*.safetensors"],
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"a run in the folder {name}, or of that name on the Hugging Face Hub",
                " ".join(str(error).split())[:300],
                "check the name, and log in (hf auth login) where it is private",
            ) from None
        return cls(folder)

    def save_pretrained(
        self, folder: Path | str, *, checkpoint: str = BEST, name: str | None = None
    ) -> None:
        """Write a new folder with everything that inference needs: the recipe, the vocabularies and
        one checkpoint, without optimizer state. It is a run like any other, and has a README.md
        that says what the model is.

        Args:
            name: Of the model in that README.md; None = the folder's.

        Raises:
            AttlasError: For a folder that is not empty, and if it cannot be written.
        """
        folder = Path(folder)
        loaded = self._checked(checkpoint)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise AttlasError(
                    "an empty folder to save a run in",
                    f"{folder}, which holds something",
                    "choose another one, or empty it",
                )
            for file in _PUBLISHED:
                if (self.path / file).is_file():
                    shutil.copyfile(self.path / file, folder / file)
            write_durably(folder / README, self._card(name or folder.name, loaded).encode())
        except OSError as error:
            raise unwritable(folder, error) from None
        store, number = CheckpointStore(folder), self.store.number_of(checkpoint)
        store.write(number, Checkpoint(loaded.model, facts=loaded.facts, seal=loaded.seal))
        store.point(BEST, number)

    def _card(self, name: str, loaded: Checkpoint) -> str:
        size = sum(tensor.numel() for tensor in loaded.model.values())
        provenance = self.provenance() if (self.path / PROVENANCE).is_file() else {}
        return model_card(
            name, self.config, provenance, self.events(), size, classifies=self.classifies
        )

    def push_to_hub(
        self,
        name: str,
        *,
        checkpoint: str = BEST,
        private: bool | None = None,
        token: str | bool | None = None,
        commit_message: str = "Add a model of attlas",
    ) -> str:
        """Upload what `save_pretrained` writes to the Hugging Face Hub; returns its address there.

        The recipe goes along, with the paths that it names.

        Args:
            private: None = as your account has it.

        Raises:
            AttlasError: If the Hub refuses, and if huggingface_hub is missing.
        """
        hub = _hub()
        if not _HUB_NAME.fullmatch(name):
            raise AttlasError("a name on the Hub", quoted(name), 'write it as "user/model"')
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder, checkpoint=checkpoint, name=name)
            try:
                api = hub.HfApi(token=token)
                address = api.create_repo(name, private=private, exist_ok=True)
                api.upload_folder(repo_id=name, folder_path=folder, commit_message=commit_message)
            except (OSError, ValueError, RuntimeError) as error:
                raise AttlasError(
                    f"to upload to {name} on the Hugging Face Hub",
                    " ".join(str(error).split())[:300],
                    "log in (hf auth login), and check the name and your rights",
                ) from None
        return str(address)

    @property
    def config(self) -> dict[str, Any]:
        """The whole recipe, resolved, as tables."""
        return read_toml(self.path / CONFIG)

    def table(self, name: str) -> dict[str, Any]:
        """One table of the recipe, for the stratum whose settings it holds."""
        config = self.config
        if name == "decoding" and name not in config:
            self._check_translates()
        if not isinstance(config.get(name), dict):
            raise CheckpointError(
                f"a table [{name}] in {self.path / CONFIG}",
                f"the tables {sorted(key for key in config if isinstance(config[key], dict))}",
                "restore that file as attlas train wrote it",
            )
        return dict(config[name])

    @property
    def classifies(self) -> bool:
        """Return True if it holds a classifier; any other run translates."""
        return isinstance(self._model_config(), ClassifierConfig)

    def vocabularies(self) -> Vocabularies:
        """The vocabularies that a run which translates was trained with."""
        self._check_translates()
        return Vocabularies.load(self.path)

    def labelled_vocabularies(self) -> LabelledVocabularies:
        """The vocabulary and the labels that a classifier was trained with."""
        return LabelledVocabularies.load(self.path)

    def checkpoints(self) -> list[str]:
        """The names that `model` takes beside "best" and "last", oldest first."""
        return self.store.names()

    def model(self, checkpoint: str = BEST, device: str = "cpu") -> SequenceToSequence[Any]:
        """The model of a checkpoint, which translates, ready to be asked (evaluation mode).

        Args:
            checkpoint: "best", "last", or one of `checkpoints`.
            device: As torch names it, or "auto".

        Raises:
            AttlasError: If a file is missing or damaged, is another one than when the checkpoint
                was saved, or does not fit the others, and for a run that holds a classifier.
        """
        torch_device, config = device_named(device), self._check_translates()
        loaded = self._checked(checkpoint)
        vocabularies = self.vocabularies()
        model = build(config, len(vocabularies.source), len(vocabularies.target))
        load_weights(model, loaded.model, self.path)
        return model.to(torch_device).eval()

    def classifier(self, checkpoint: str = BEST, device: str = "cpu") -> Classifier:
        """The classifier of a checkpoint, ready to be asked.

        Raises:
            AttlasError: As `model`, the other way.
        """
        torch_device, config = device_named(device), self._model_config()
        if not isinstance(config, ClassifierConfig):
            raise UnsupportedError(
                "a run that holds a classifier",
                f"one that translates, at {self.path}",
                f"use attlas translate {self.path}, or name another run",
            )
        loaded = self._checked(checkpoint)
        vocabularies = self.labelled_vocabularies()
        model = build_classifier(config, len(vocabularies.text), len(vocabularies.labels))
        load_weights(model, loaded.model, self.path)
        return model.to(torch_device).eval()

    def _checked(self, checkpoint: str) -> Checkpoint:
        """A checkpoint, beside whose folder's files it was saved."""
        loaded = self.store.read(checkpoint)
        check_sealed(self.path, self.store.number_of(checkpoint), loaded.seal)
        return loaded

    def _check_translates(self) -> TranslatorConfig:
        config = self._model_config()
        if isinstance(config, ClassifierConfig):
            raise UnsupportedError(
                "a run that translates",
                f"a classifier at {self.path}",
                f"use attlas classify {self.path}, or name another run",
            )
        return config

    def _model_config(self) -> ModelConfig:
        return _ModelTable.read({"model": self.table("model")}, str(self.path / CONFIG)).model

    def events(self) -> list[dict[str, Any]]:
        """The events of `metrics.jsonl`, in order; a last line cut short by a kill is left out."""
        try:
            complete, end, _ = stored_bytes(self.path / METRICS).rpartition(b"\n")
            lines = utf8_text(complete).split("\n") if end else []
            return [_event(line, number) for number, line in enumerate(lines, 1)]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"one JSON object per line in {self.path / METRICS}",
                str(error),
                "restore it from a copy, or delete the damaged line",
            ) from None

    def peak_memory(self) -> dict[str, int]:
        """The peak memory of the training in bytes, from `metrics.jsonl`: "cpu", and "gpu" if it
        had one; empty if it was not recorded.
        """
        events = self.events()
        found = {
            device: [event[name] for event in events if isinstance(event.get(name), int)]
            for device, name in (("cpu", "peak_memory"), ("gpu", "peak_gpu_memory"))
        }
        return {device: max(peaks) for device, peaks in found.items() if peaks}

    def provenance(self) -> dict[str, Any]:
        """Version, commit, seed and data checksums: what a score has to say beside its number."""
        try:
            content = parse_json(stored_bytes(self.path / PROVENANCE))
            if not isinstance(content, dict) or not isinstance(content.get("data", {}), dict):
                raise ValueError("it holds no facts about a run")
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"a readable {PROVENANCE} in {self.path}", str(error), "restore that file"
            ) from None
        return content


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise missing_extra("the Hugging Face Hub (huggingface_hub)", "hub") from None
    return huggingface_hub


def _event(line: str, number: int) -> dict[str, Any]:
    try:
        event = parse_json(line)
    except ValueError as error:
        raise ValueError(f"something else in line {number} ({error})") from None
    if not isinstance(event, dict):
        raise ValueError(f"something else in line {number}")
    return event


def load_weights(model: nn.Module, weights: Any, location: Path) -> None:
    """`load_state_dict` with an error that names the run."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"a checkpoint that fits the recipe and vocabularies of {location}",
            " ".join(str(error).split()),
            f"restore {CONFIG} and the vocabularies as attlas train wrote them",
        ) from None


class FromRun:
    """A model that may have been opened from a run, which saves it.

    _origin: its facts "run" and "checkpoint"; none where it was made in Python.
    """

    _origin: Mapping[str, str]

    def save_pretrained(self, folder: Path | str) -> None:
        """Write its run and checkpoint into a new folder; see `Run.save_pretrained`.

        Raises:
            AttlasError: If it was not opened from a run, and as `Run.save_pretrained`.
        """
        run, checkpoint = self._opened_from()
        run.save_pretrained(folder, checkpoint=checkpoint)

    def push_to_hub(self, name: str, **options: Any) -> str:
        """Upload its run and checkpoint to the Hugging Face Hub; see `Run.push_to_hub`.

        Raises:
            AttlasError: If it was not opened from a run, and as `Run.push_to_hub`.
        """
        run, checkpoint = self._opened_from()
        return run.push_to_hub(name, checkpoint=checkpoint, **options)

    def _opened_from(self) -> tuple[Run, str]:
        if "run" not in self._origin:
            raise AttlasError(
                "a model that was opened from a run",
                "one that was made in Python",
                "train it with attlas.train, which writes a run",
            )
        return Run(self._origin["run"]), self._origin["checkpoint"]
