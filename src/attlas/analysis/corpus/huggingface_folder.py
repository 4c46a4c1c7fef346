"""A model of Hugging Face and its tokenizer, in a folder on this machine."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from attlas.analysis.corpus.huggingface_head import no_logits
from attlas.analysis.corpus.text import Text
from attlas.errors import AttlasError
from attlas.exporting.checksums import of_text, short
from attlas.runs.device import device_named

_CONFIG = "config.json"
_VOCABULARIES = ("tokenizer.json", "tokenizer_config.json", "*vocab*", "*.model", "*.spm", "*.bpe")
_HEADS = ("pooler", "lm_head", "cls", "classifier", "score", "qa_outputs", "summary")


class HuggingFaceFolder:
    """What `save_pretrained` of a model and of its tokenizer wrote: opened by transformers' own
    classes, with the kernel that they choose; no code of the folder runs, nothing is fetched.

    writes: whether it is an encoder–decoder. longest: how many tokens a text may have, special ones
    included, and how many positions a decoder has; None = any number. special: the ids of tokens
    that stand for no text; an unknown word is a word.
    Errors: `AttlasError` where transformers is missing, and for a folder that it cannot read, that
    has no tokenizer, or no weights for a part of the model that looks.
    """

    def __init__(self, path: Path, device: str = "cpu") -> None:
        transformers = _transformers()
        self.path, self.device = path, device_named(device)
        if not any(next(path.glob(name), None) for name in _VOCABULARIES):
            raise AttlasError(
                f"a model and its tokenizer in {path}",
                "no tokenizer",
                f"save it there: tokenizer.save_pretrained({str(path)!r})",
            )
        here = {"local_files_only": True, "trust_remote_code": False}
        with _quiet(transformers), _explained(path):
            config = transformers.AutoConfig.from_pretrained(path, **here)
            self.writes = bool(getattr(config, "is_encoder_decoder", False))
            kind = transformers.AutoModelForSeq2SeqLM if self.writes else transformers.AutoModel
            opened, told = kind.from_pretrained(path, output_loading_info=True, **here)
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path, **here)
        missing = [name for name in told["missing_keys"] if not _of_a_head(name)]
        if missing:
            raise AttlasError(
                f"the weights of the whole {type(opened).__name__} in {path}",
                f"none for {', '.join(sorted(missing)[:3])}",
                "save the model again",
            )
        opened.config.use_cache = False  # each pass stands for itself
        self.model: Any = opened.to(self.device).eval()
        self._body: Any = self.model.base_model if self.writes else self.model
        self.longest = _longest(self.model, self.tokenizer)
        self.special = _special(self.tokenizer)
        self.facts: dict[str, str | int] = {
            "model": type(opened).__name__,
            "checkpoint": f"{path.resolve().name} ({_of_weights(opened, told['missing_keys'])})",
            "settings": of_text(_settings(config)),
            "vocabularies": _of_tokenizer(self.tokenizer),
            "longest": "any" if self.longest is None else self.longest,
            "device": self.device.type,
            "kernel": str(getattr(opened.config, "_attn_implementation", None)),
            "transformers": str(transformers.__version__),
        }
        if self.writes:
            self.facts["generation"] = of_text(_settings(self.model.generation_config))

    def look(self, given: Mapping[str, Int[Tensor, "batch slots"]]) -> None:
        """One pass through all layers.

        No logits are made: for each token a vocabulary of them would be most of the memory, and
        nobody looks at it.
        """
        with self.reading(), no_logits(self._body):
            self._body(**given)

    def types(self, told: Sequence[int] | None) -> tuple[int, ...] | None:
        """The `token_type_ids` of a text, where they say something that the model listens to."""
        if not told or not any(told):
            return None
        return tuple(told) if "token_type_ids" in signature(self.model.forward).parameters else None

    def inputs(self, texts: Sequence[Text]) -> dict[str, Int[Tensor, "batch slots"]]:
        """The sources of these texts as the model takes them, padded on the right."""
        given = {
            "input_ids": self.padded([text.source for text in texts]),
            "attention_mask": self._filled([[1] * len(text.source) for text in texts], 0),
        }
        if any(text.types for text in texts):
            types = [text.types or (0,) * len(text.source) for text in texts]
            given["token_type_ids"] = self._filled(types, self.tokenizer.pad_token_type_id)
        return given

    def padded(self, rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch slots"]:
        """Ids side by side, short rows filled on the right with the padding of the tokenizer."""
        padding = self.tokenizer.pad_token_id
        return self._filled(rows, 0 if padding is None else padding)

    def _filled(self, rows: Sequence[Sequence[int]], filling: int) -> Int[Tensor, "batch slots"]:
        longest = max(map(len, rows))
        whole = [[*row, *[filling] * (longest - len(row))] for row in rows]
        return torch.tensor(whole, device=self.device)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the model says of texts that it cannot read into an `AttlasError`.

        A want of memory stays what it is: it has another remedy.
        """
        try:
            with _quiet(_transformers()):
                yield
        except AttlasError:
            raise
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            told = " ".join(str(error).split())
            if isinstance(error, RuntimeError) and "memory" in told:
                raise
            raise AttlasError(
                f"a model that reads these texts with their tokenizer, in {self.path}",
                f"{type(error).__name__}: {told}",
                "check that the tokenizer is that of the model, and that the model reads text",
            ) from error

    @staticmethod
    def is_at(path: Path) -> bool:
        """Whether a model of Hugging Face is in this folder."""
        return (path / _CONFIG).is_file()


def _transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError:
        raise AttlasError(
            "transformers, which reads models of Hugging Face",
            "an installation without it",
            "run: pip install transformers",
        ) from None


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
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
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # its many kinds of error share no base, and all mean: not readable
        lines = str(error).strip().splitlines()
        raise AttlasError(
            f"a model of text that transformers itself can read, in {path}",
            f"{type(error).__name__}: {lines[0] if lines else 'no reason'}",
            "save it there with save_pretrained, the tokenizer too",
        ) from error


def _of_a_head(name: str) -> bool:
    """Whether a weight is of what comes after all layers, and changes no attention."""
    return any(part in _HEADS for part in name.split("."))


def _longest(model: nn.Module, tokenizer: Any) -> int | None:
    """The least of what the tokenizer, the configuration and learned positions say."""
    config: Any = model.config
    # A model that is put together of two has a configuration for each.
    parts = (config, getattr(config, "encoder", None), getattr(config, "decoder", None))
    said = [tokenizer.model_max_length]
    said += [getattr(part, "max_position_embeddings", None) for part in parts]
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith(".position_embeddings"):
            before = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa
            said.append(module.num_embeddings - before)
    # A tokenizer that knows no limit says 10³⁰, a model that knows none says −1.
    return min((int(one) for one in said if one and 0 < one < 10**9), default=None)


def _special(tokenizer: Any) -> frozenset[int]:
    named = tokenizer.special_tokens_map
    unknown = named.get("unk_token")
    if unknown in [token for name, token in named.items() if name != "unk_token"]:
        return frozenset(tokenizer.all_special_ids)  # GPT-2 has one token for everything
    return frozenset(tokenizer.all_special_ids) - {tokenizer.unk_token_id}


def _of_weights(model: nn.Module, missing: Collection[str]) -> str:
    """The checksum of names and bytes, in the order of the names, in any type of number.

    missing: what the folder does not hold, and is drawn anew each time.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if name in missing:
            continue
        digest.update(f"{name} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return short(digest)


def _settings(config: Any) -> str:
    named = {k: v for k, v in config.to_dict().items() if not k.startswith("_")}
    return json.dumps(named, sort_keys=True, default=str)


def _of_tokenizer(tokenizer: Any) -> str:
    side = tokenizer.truncation_side  # of which a text that is too long loses its tokens
    known = json.dumps([side, tokenizer.get_vocab()], sort_keys=True)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return of_text(known if backend is None else known + backend.to_str())
