"""A model of Hugging Face and its tokenizer, in a folder on this machine."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from attlas._hardware import device_named
from attlas.corpus_statistics.readers import CorpusText, MapRecord, Reader, Side
from attlas.errors import UnsupportedError
from attlas.inference.huggingface_folder import (
    HERE,
    check_has_tokenizer,
    check_weights,
    explain_loading,
    import_transformers,
    is_model_folder,
    longest_input,
    path_of_encoder,
    quiet,
    reading,
)
from attlas.recording import Trace
from attlas.runs.loaded import short_digest, text_digest

# The head of a Hugging Face model: its map to the vocabulary.


@contextmanager
def no_logits(model: nn.Module) -> Iterator[None]:
    """Give the head no tokens, so that the logits of a pass are (batch, 0, vocabulary).

    The head comes after all layers, so all layers are computed as usual. A model without a head
    does not change, nor does one whose head is no linear map (FSMT and UDOP name an embedding,
    which is also read before the layers).
    """
    head = model.get_output_embeddings()  # type: ignore[operator]
    if not isinstance(head, nn.Linear):
        yield
        return
    handle = head.register_forward_pre_hook(_of_nothing)
    try:
        yield
    finally:
        handle.remove()


def _of_nothing(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    tokens, *others = arguments
    return (tokens[:, :0], *others)


class HuggingFaceFolder:
    """A folder that `save_pretrained` of a model and of its tokenizer wrote. It is opened by
    transformers' own classes, with their default kernels. No code of the folder runs, and nothing
    is downloaded.

    writes: whether it is an encoder–decoder. longest: how many tokens a text may have, special ones
    included, and how many positions a decoder has; None = any number. special: the ids of tokens
    that stand for no text; an unknown word is a word.

    Raises:
        AttlasError: If transformers is missing; for a folder that it cannot read; without a
            tokenizer; and without weights for a part of the model that has attention.
    """

    def __init__(self, path: Path, device: str = "cpu") -> None:
        transformers = import_transformers()
        self.path, self.device = path, device_named(device)
        check_has_tokenizer(path)
        with quiet(transformers), explain_loading(path):
            config = transformers.AutoConfig.from_pretrained(path, **HERE)
            self.writes = bool(getattr(config, "is_encoder_decoder", False))
            kind = transformers.AutoModelForSeq2SeqLM if self.writes else transformers.AutoModel
            model, loading_info = kind.from_pretrained(path, output_loading_info=True, **HERE)
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path, **HERE)
        check_weights(model, sorted(loading_info["missing_keys"]), path)
        model.config.use_cache = False  # each pass stands for itself
        self.model: Any = model.to(self.device).eval()
        self._body: Any = self.model.base_model if self.writes else self.model
        self.longest = longest_input(self.model, self.tokenizer)
        self.special = _special(self.tokenizer)
        weights = _of_weights(model, loading_info["missing_keys"])
        self.facts: dict[str, str | int] = {
            "model": type(model).__name__,
            "checkpoint": f"{path.resolve().name} ({weights})",
            "settings": text_digest(_settings(config)),
            "vocabularies": _of_tokenizer(self.tokenizer),
            "longest": "any" if self.longest is None else self.longest,
            "device": self.device.type,
            "kernel": str(getattr(model.config, "_attn_implementation", None)),
            "transformers": str(transformers.__version__),
        }
        if self.writes:
            self.facts["generation"] = text_digest(_settings(self.model.generation_config))

    def run(self, arguments: Mapping[str, Int[Tensor, "batch keys"]]) -> None:
        """One pass through all layers.

        No logits are computed: they would take most of the memory, and are not used.
        """
        with self.reading(), no_logits(self._body):
            self._body(**arguments)

    def types(self, type_ids: Sequence[int] | None) -> tuple[int, ...] | None:
        """The `token_type_ids` of a text, if the model uses them."""
        if not type_ids or not any(type_ids):
            return None
        return (
            tuple(type_ids)
            if "token_type_ids" in signature(self.model.forward).parameters
            else None
        )

    def inputs(self, texts: Sequence[CorpusText]) -> dict[str, Int[Tensor, "batch keys"]]:
        """The sources of these texts as the model takes them, padded on the right."""
        arguments = {
            "input_ids": self.padded([text.source for text in texts]),
            "attention_mask": self._filled([[1] * len(text.source) for text in texts], 0),
        }
        if any(text.types for text in texts):
            types = [text.types or (0,) * len(text.source) for text in texts]
            arguments["token_type_ids"] = self._filled(types, self.tokenizer.pad_token_type_id)
        return arguments

    def padded(self, rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch keys"]:
        """Ids side by side, short rows filled on the right with the padding of the tokenizer."""
        padding = self.tokenizer.pad_token_id
        return self._filled(rows, 0 if padding is None else padding)

    def _filled(self, rows: Sequence[Sequence[int]], filling: int) -> Int[Tensor, "batch keys"]:
        longest = max(map(len, rows))
        padded = [[*row, *[filling] * (longest - len(row))] for row in rows]
        return torch.tensor(padded, device=self.device)

    def reading(self) -> AbstractContextManager[None]:
        """Turn what the model says of texts that it cannot read into an `AttlasError`."""
        return reading(self.path)

    @staticmethod
    def is_at(path: Path) -> bool:
        """Return True if a model of Hugging Face is in this folder."""
        return is_model_folder(path)


def _special(tokenizer: Any) -> frozenset[int]:
    special_tokens = tokenizer.special_tokens_map
    unknown = special_tokens.get("unk_token")
    if unknown in [token for name, token in special_tokens.items() if name != "unk_token"]:
        return frozenset(tokenizer.all_special_ids)  # GPT-2 has one token for everything
    return frozenset(tokenizer.all_special_ids) - {tokenizer.unk_token_id}


def _of_weights(model: nn.Module, missing: Collection[str]) -> str:
    """The checksum of names and bytes, in the order of the names, in any type of number.

    Args:
        missing: Weights that the folder lacks, and that are drawn at random each time.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if name in missing:
            continue
        digest.update(f"{name} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return short_digest(digest)


def _settings(config: Any) -> str:
    settings = {k: v for k, v in config.to_dict().items() if not k.startswith("_")}
    return json.dumps(settings, sort_keys=True, default=str)


def _of_tokenizer(tokenizer: Any) -> str:
    side = tokenizer.truncation_side  # of which a text that is too long loses its tokens
    identity = json.dumps([side, tokenizer.get_vocab()], sort_keys=True)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return text_digest(identity if backend is None else identity + backend.to_str())


# A model of Hugging Face that reads text: an encoder, a decoder, or both.


_WRITTEN = 256  # maximum number of tokens that a model writes without a target


class HuggingFaceReader(Reader):
    """The text is read with the special tokens of its tokenizer, padded on the right.

    An encoder–decoder also reads a target: the given one, or its own output by greedy search, with
    at most 256 tokens; its own generation settings, such as a repetition penalty, apply. Query t of
    its decoder has read the tokens before t and predicts token t. A text is cut by the tokenizer to
    the length that the model can read.
    """

    def __init__(self, folder: HuggingFaceFolder) -> None:
        self._folder = folder
        self.model, self.facts, self.special = folder.model, folder.facts, folder.special
        self._tokenizer = folder.tokenizer
        self._encoder = path_of_encoder(self.model) if folder.writes else ""

    def read(self, line: int, text: str, target: str | None = None) -> CorpusText | None:
        if target is not None and not self._folder.writes:
            raise UnsupportedError(
                "a text alone",
                "a target beside it",
                f"leave it out: {type(self.model).__name__} reads one text",
            )
        if not text.strip() or (target is not None and not target.strip()):
            return None
        source, types, num_unread = self._ids(text)
        if not source:
            return None
        corpus_text = CorpusText(line, source, unread=num_unread, types=types)
        if target is None:
            return corpus_text
        written_ids, _, lost = self._ids(target, as_target=True)
        if not written_ids:
            return None
        return replace(
            corpus_text,
            decoder_input=self._decoder_input(written_ids),
            expected=written_ids,
            unread=num_unread + lost,
        )

    def named(self, record: MapRecord) -> tuple[str, ...]:
        return tuple(map(str, self._tokenizer.convert_ids_to_tokens(list(record.ids or ()))))

    def _ids(
        self, text: str, *, as_target: bool = False
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None, int]:
        """The tokens that are read, special ones included; their types; how many more there are."""
        arguments = {"text_target" if as_target else "text": text, "verbose": False}
        encoding = full_encoding = self._tokenizer(**arguments)
        longest = self._folder.longest
        if longest is not None and len(full_encoding["input_ids"]) > longest:
            encoding = self._tokenizer(**arguments, truncation=True, max_length=longest)
        ids = tuple(encoding["input_ids"])
        types = self._folder.types(encoding.get("token_type_ids"))
        return ids, types, len(full_encoding["input_ids"]) - len(ids)

    def _decoder_input(self, written_ids: tuple[int, ...]) -> tuple[int, ...]:
        """The decoder's input: shifted by the model's own function if it has one, otherwise after
        its start token.
        """
        if shift := getattr(self.model, "prepare_decoder_input_ids_from_labels", None):
            with self._folder.reading():
                row = torch.tensor([written_ids], device=self._folder.device)
                return tuple(shift(labels=row)[0].tolist())
        configs = (self.model.generation_config, self.model.config)
        starts = [getattr(settings, "decoder_start_token_id", None) for settings in configs]
        start = next((token for token in starts if token is not None), None)
        if start is None:
            raise UnsupportedError(
                "a model that says with which token its decoder begins",
                f"no decoder_start_token_id in {self._folder.path}",
                "write it into its config.json, or leave the target out",
            )
        return (start, *written_ids[:-1])

    def completed(self, texts: Sequence[CorpusText]) -> Sequence[CorpusText]:
        if not self._folder.writes or all(text.decoder_input is not None for text in texts):
            return texts
        max_length = min(_WRITTEN, (self._folder.longest or _WRITTEN + 1) - 1)
        with self._folder.reading():
            generated = self.model.generate(
                **self._folder.inputs(texts),
                do_sample=False,
                num_beams=1,
                num_return_sequences=1,
                return_dict_in_generate=False,
                max_new_tokens=max_length,
            )
        ends = self.model.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        return [
            _with_generated(text, row, ends)
            for text, row in zip(texts, generated.tolist(), strict=True)
        ]

    def _run(self, texts: Sequence[CorpusText]) -> None:
        arguments = self._folder.inputs(texts)
        if self._folder.writes:
            arguments["decoder_input_ids"] = self._folder.padded(
                [text.decoder_input or () for text in texts]
            )
        self._folder.run(arguments)

    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        if not self._folder.writes or layer.startswith(self._encoder):
            return "source", "source"
        return ("target", "source" if trace.kind(layer) == "cross" else "target")


def _with_generated(text: CorpusText, row: Sequence[int], ends: set[int]) -> CorpusText:
    """A row begins with the token that begins every target, which may be the one that ends it."""
    end = next((index for index, id_ in enumerate(row[1:], 2) if id_ in ends), None)
    written_ids = tuple(row[1:end])
    return replace(
        text,
        decoder_input=tuple(row[: len(written_ids)]),
        expected=written_ids,
        finished=end is not None,
    )
