"""Loaded checkpoints, and checksums."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from attlas.data import LabelledVocabularies, Vocabularies
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError, ConfigError, UnsupportedError
from attlas.models import (
    Classifier,
    ClassifierConfig,
    SequenceToSequence,
    Transformer,
    TransformerConfig,
)
from attlas.patterns import causal, everywhere, parse
from attlas.runs.checkpoints import BEST, LAST
from attlas.runs.run import Run
from attlas.runs.seal import CONFIG


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """One checkpoint of a run, opened: its model (evaluation mode) and what belongs to it.

    Args:
        checkpoint: Its own name, also where "best" or "last" was asked for.
    """

    run: Run
    checkpoint: str
    model: nn.Module
    vocabularies: Vocabularies | LabelledVocabularies

    @property
    def weights(self) -> str:
        """The SHA-256 of the weights: their names and their bytes, in the order of the names."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(f"{name}\n".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LoadedTranslator(LoadedCheckpoint):
    """A model that translates; `search` says how, None = as the run's recipe does."""

    model: SequenceToSequence[Any]
    vocabularies: Vocabularies
    search: DecodingConfig | None = None

    @classmethod
    def of(
        cls, run: Run | Path | str, checkpoint: str = BEST, search: DecodingConfig | None = None
    ) -> "LoadedTranslator":
        """Open a checkpoint; `AttlasError` where there is none, or where it is damaged, and for a
        run that classifies.
        """
        run, name = _run_and_name(run, checkpoint)
        return cls(run, name, run.model(name), run.vocabularies(), search)

    @property
    def decoding(self) -> DecodingConfig:
        """How it searches."""
        if self.search is not None:
            return self.search
        return DecodingConfig.read(self.run.table("decoding"), str(self.run.path / CONFIG))

    def transformer(self, taker: str) -> tuple[Transformer, TransformerConfig]:
        """The model and its settings; `AttlasError` for another kind, which `taker` cannot hold."""
        if not isinstance(self.model, Transformer):
            raise _no_transformer(taker, self)
        location = str(self.run.path / CONFIG)
        return self.model, TransformerConfig.read(self.run.table("model"), location)


@dataclass(frozen=True, slots=True)
class LoadedClassifier(LoadedCheckpoint):
    """A model that classifies."""

    model: Classifier
    vocabularies: LabelledVocabularies

    @classmethod
    def of(cls, run: Run | Path | str, checkpoint: str = BEST) -> "LoadedClassifier":
        """Open a checkpoint; `AttlasError` as for a translator, the other way."""
        run, name = _run_and_name(run, checkpoint)
        return cls(run, name, run.classifier(name), run.labelled_vocabularies())

    @property
    def config(self) -> ClassifierConfig:
        """The settings of the model."""
        return ClassifierConfig.read(self.run.table("model"), str(self.run.path / CONFIG))


def load_checkpoint(
    run: Run | Path | str, checkpoint: str = BEST, search: DecodingConfig | None = None
) -> LoadedTranslator | LoadedClassifier:
    """Open a checkpoint of any run; `AttlasError` where there is none, or where it is damaged, and
    for a search with a run that does not translate.
    """
    run = run if isinstance(run, Run) else Run(run)
    if not run.classifies:
        return LoadedTranslator.of(run, checkpoint, search)
    if search is not None:
        raise ConfigError(
            "settings of the search for a run that translates",
            f"them for the classifier at {run.path}",
            "leave them out",
        )
    return LoadedClassifier.of(run, checkpoint)


def require_translator(loaded: LoadedCheckpoint, taker: str) -> LoadedTranslator:
    """The subject, if it translates; `AttlasError` for another, which `taker` cannot hold."""
    if not isinstance(loaded, LoadedTranslator):
        raise _no_transformer(taker, loaded)
    return loaded


def unsupported(
    taker: str, expected: str, got: str, formats: Sequence[str] = ("onnx",)
) -> AttlasError:
    """The error for a model that a format cannot hold.

    Args:
        formats: Formats that may.
    """
    options = [f"--to {other}" for other in formats if other != taker.lower()]
    alternatives = f"{', '.join(options)}, or " if options else ""
    return UnsupportedError(
        f"{expected} for {taker}",
        got,
        f"use {alternatives}--to safetensors, which holds every model",
    )


def check_sees_all(taker: str, config: TransformerConfig) -> None:
    """Check that every attention may look everywhere; `AttlasError` otherwise."""
    hiding = [pattern for pattern in config.encoder_patterns if parse(pattern) != everywhere]
    # A decoder sees no later token in any case.
    hiding += [
        pattern for pattern in config.decoder_patterns if parse(pattern) not in (everywhere, causal)
    ]
    if hiding:
        raise unsupported(taker, "attention that may look everywhere", f"the pattern {hiding[0]}")


def check_whole_layers(taker: str, config: TransformerConfig) -> None:
    """Check that no part of a layer is left out; `AttlasError` otherwise."""
    if not config.ffn_dim:
        raise unsupported(taker, "layers with a feed-forward", "ffn_dim = 0")
    if config.norm_type == "none":
        raise unsupported(taker, "layers with norms", 'norm_type = "none"')
    if not config.residual:
        raise unsupported(taker, "layers with residual connections", "residual = false")


def check_plain_scores(taker: str, config: TransformerConfig) -> None:
    """Check that queries and keys are not normed before their product; `AttlasError` otherwise."""
    if config.qk_norm:
        raise unsupported(taker, "queries and keys without a norm", "qk_norm = true")


def _run_and_name(run: Run | Path | str, checkpoint: str) -> tuple[Run, str]:
    """The run, and the own name of its checkpoint."""
    run = run if isinstance(run, Run) else Run(run)
    name = run.store.named(checkpoint) if checkpoint in (BEST, LAST) else checkpoint
    return run, name or checkpoint  # where none is named yet, the run says it better


def _no_transformer(taker: str, loaded: LoadedCheckpoint) -> AttlasError:
    kind = loaded.run.table("model").get("kind")
    return unsupported(taker, 'a model of kind "transformer"', repr(kind))


# Checksums: long enough to distinguish, short enough for a message.


_DIGITS = 16  # hexadecimal


def short_digest(digest: Any) -> str:
    """Of a digest from hashlib."""
    checksum: str = digest.hexdigest()
    return checksum[:_DIGITS]


def text_digest(text: str) -> str:
    """The SHA-256 of a text in UTF-8."""
    return short_digest(hashlib.sha256(text.encode()))


def file_digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by its name."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def vocabularies_digest(vocabularies: Vocabularies | LabelledVocabularies) -> str:
    """Of the names and the bytes of the files that they are saved as."""
    digest = hashlib.sha256()
    with TemporaryDirectory() as folder:
        vocabularies.save(Path(folder))
        for file in sorted(Path(folder).iterdir()):
            digest.update(f"{file.name}\n".encode())
            digest.update(file.read_bytes())
    return short_digest(digest)


def settings_digest(run: Run) -> str:
    """Of the settings of a run's model."""
    return text_digest(repr(sorted(run.table("model").items())))


def checkpoint_digest(run: Run, checkpoint: str, model: Any, vocabularies: Any) -> str:
    """The own name of a checkpoint, also where "best" or "last" was asked for, with a checksum of
    its weights.
    """
    name = run.store.named(checkpoint) if checkpoint in (BEST, LAST) else checkpoint
    loaded = LoadedCheckpoint(run, name or checkpoint, model, vocabularies)
    return f"{loaded.checkpoint} ({loaded.weights[:_DIGITS]})"
