"""A folder of Hugging Face, and what transformers says of it, as errors of attlas."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from attlas.errors import AttlasError, CheckpointError, UnsupportedError

MODEL_CONFIG = "config.json"
_VOCABULARIES = ("tokenizer.json", "tokenizer_config.json", "*vocab*", "*.model", "*.spm", "*.bpe")
_HEADS = ("pooler", "lm_head", "cls", "classifier", "score", "qa_outputs", "summary")
HERE: Mapping[str, bool] = {"local_files_only": True, "trust_remote_code": False}
"""How a folder is opened: nothing is fetched, and no code of it runs."""


def is_model_folder(path: Path) -> bool:
    """Return True if a model of Hugging Face is in this folder."""
    return (path / MODEL_CONFIG).is_file()


def import_transformers() -> Any:
    """The package `transformers`.

    Raises:
        UnsupportedError: If it is missing.
    """
    try:
        return import_module("transformers")
    except ImportError:
        raise UnsupportedError(
            "transformers, which reads models of Hugging Face",
            "an installation without it",
            "run: pip install transformers",
        ) from None


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Without its remarks and bars: what matters of them is an error of ours."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def explain_loading(
    path: Path,
    what: str = "a model of text",
    advice: str = "save it there with save_pretrained, the tokenizer too",
) -> Iterator[None]:
    """Turn what transformers says of a folder that it cannot open into a `CheckpointError`."""
    try:
        yield
    except Exception as error:  # its many kinds of error share no base, and all mean: not readable
        lines = str(error).strip().splitlines()
        raise CheckpointError(
            f"{what} that transformers itself can read, in {path}",
            f"{type(error).__name__}: {lines[0] if lines else 'no reason'}",
            advice,
        ) from error


@contextmanager
def reading(
    path: Path,
    what: str = "texts with their tokenizer",
    advice: str = "check that the tokenizer is that of the model, and that the model reads text "
    "alone; call one that needs images inside `with attlas.observe(model) as trace:`, and look at "
    "the saved trace",
) -> Iterator[None]:
    """Turn what a model says of inputs that it cannot read into an `AttlasError`.

    A want of memory stays what it is: it has another remedy.
    """
    try:
        with quiet(import_transformers()):
            yield
    except AttlasError:
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        message = " ".join(str(error).split())
        if isinstance(error, RuntimeError) and "memory" in message:
            raise
        raise UnsupportedError(
            f"a model that reads these {what}, in {path}",
            f"{type(error).__name__}: {message}",
            advice,
        ) from error


def pretrained(kind: Any, path: Path) -> tuple[Any, Mapping[str, Any]]:
    """The model of a folder, opened by this class, and what transformers says of its weights."""
    model, loading_info = kind.from_pretrained(path, output_loading_info=True, **HERE)
    return model, loading_info


def check_has_tokenizer(path: Path, otherwise: str = "") -> None:
    """Check that a folder of a model has the files of its tokenizer.

    Args:
        otherwise: What else helps.

    Raises:
        CheckpointError: If it has none.
    """
    if not _has_tokenizer(path):
        raise CheckpointError(
            f"a model and its tokenizer in {path}",
            "no tokenizer",
            f"save it there: tokenizer.save_pretrained({str(path)!r}){otherwise}",
        )


def check_is_tokenizer(path: Path) -> None:
    """Check that a folder has the files of a tokenizer.

    Raises:
        CheckpointError: If it has none.
    """
    if not _has_tokenizer(path):
        raise CheckpointError(
            f"the files of a tokenizer in {path}",
            "none" if path.is_dir() else "no folder there",
            "name the folder that tokenizer.save_pretrained wrote",
        )


def _has_tokenizer(path: Path) -> bool:
    return any(next(path.glob(name), None) for name in _VOCABULARIES)


def check_weights(model: nn.Module, missing: Sequence[str], path: Path) -> None:
    """Check that a folder has all weights of what looks; a head comes after all layers.

    Raises:
        CheckpointError: If some are missing.
    """
    wanting = [name for name in missing if not belongs_to_head(name)]
    if wanting:
        raise CheckpointError(
            f"the weights of the whole {type(model).__name__} in {path}",
            f"none for {', '.join(sorted(wanting)[:3])}",
            "save the model again",
        )


def belongs_to_head(name: str) -> bool:
    """Return True if a weight is of what comes after all layers, and changes no attention."""
    return any(part in _HEADS for part in name.split("."))


def longest_input(model: nn.Module, tokenizer: Any) -> int | None:
    """The least of what the tokenizer, the configuration and learned positions say."""
    config: Any = model.config
    # A model that is put together of two has a configuration for each.
    parts = (config, getattr(config, "encoder", None), getattr(config, "decoder", None))
    limits = [tokenizer.model_max_length]
    limits += [getattr(part, "max_position_embeddings", None) for part in parts]
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith(".position_embeddings"):
            num_reserved = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa
            limits.append(module.num_embeddings - num_reserved)
    # A tokenizer that knows no limit says 10³⁰, a model that knows none says −1.
    return min((int(limit) for limit in limits if limit and 0 < limit < 10**9), default=None)


def path_of_encoder(model: nn.Module) -> str:
    """The path of the encoder of an encoder–decoder, with a dot behind it."""
    encoder = model.get_encoder()  # type: ignore[operator]
    return next(f"{path}." for path, module in model.named_modules() if module is encoder)


# A model by its name on the Hugging Face Hub.


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_FILES = ("*.json", "*.txt", "*.model", "*.spm", "*.bpe", "*.safetensors")


def model_of_hub(name: str, *, download: bool = False) -> Path | None:
    """The folder of a model of the Hub, in the cache on this machine; None if it is not there.

    Args:
        download: Whether to fetch it. Its files are numbers, text and JSON; no code is executed.

    Raises:
        AttlasError: If it was to be fetched, and could not be.
    """
    if not _NAME.fullmatch(name):
        return None
    try:
        hub = import_module("huggingface_hub")
    except ImportError:
        return None
    try:
        return Path(hub.snapshot_download(name, local_files_only=True, allow_patterns=_FILES))
    except (OSError, ValueError, RuntimeError):
        if not download:
            return None
    try:
        return Path(hub.snapshot_download(name, allow_patterns=_FILES))
    except (OSError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"a model called {name} on the Hugging Face Hub",
            " ".join(str(error).split())[:300],
            "check the name, and log in (hf auth login) where it is private",
        ) from None
