"""A model of Hugging Face that reads text: an encoder, a decoder, or both."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from attlas.analysis.corpus.huggingface_folder import HuggingFaceFolder
from attlas.analysis.corpus.reader import Look, Reader, Side
from attlas.analysis.corpus.text import Text
from attlas.errors import AttlasError
from attlas.recording import Trace

_WRITTEN = 256  # tokens that a model writes at most, where no target is given


class HuggingFaceReader(Reader):
    """The text is read with the special tokens of its tokenizer, padded on the right.

    An encoder–decoder also reads what was written: the target, or else what it writes itself by
    greedy search, with at most 256 tokens; its own settings of generation, such as a penalty of
    repetition, hold. Query t of its decoder has read the tokens before t and is about to write
    token t. A text is cut, as the tokenizer does it, to what the model says that it can read.
    """

    def __init__(self, folder: HuggingFaceFolder) -> None:
        self._folder = folder
        self.model, self.facts, self.special = folder.model, folder.facts, folder.special
        self._tokenizer = folder.tokenizer
        self._encoder = _path_of_encoder(self.model) if folder.writes else ""

    def read(self, line: int, text: str, target: str | None = None) -> Text | None:
        if target is not None and not self._folder.writes:
            raise AttlasError(
                "a text alone",
                "a target beside it",
                f"leave it out: {type(self.model).__name__} reads one text",
            )
        if not text.strip() or (target is not None and not target.strip()):
            return None
        source, types, unread = self._ids(text)
        if not source:
            return None
        read = Text(line, source, unread=unread, types=types)
        if target is None:
            return read
        wanted, _, lost = self._ids(target, written=True)
        if not wanted:
            return None
        return replace(read, asked=self._asked(wanted), wanted=wanted, unread=unread + lost)

    def named(self, look: Look) -> tuple[str, ...]:
        return tuple(map(str, self._tokenizer.convert_ids_to_tokens(list(look.ids or ()))))

    def _ids(
        self, text: str, *, written: bool = False
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None, int]:
        """The tokens that are read, special ones included; their types; how many more there are."""
        given = {"text_target" if written else "text": text, "verbose": False}
        read = whole = self._tokenizer(**given)
        longest = self._folder.longest
        if longest is not None and len(whole["input_ids"]) > longest:
            read = self._tokenizer(**given, truncation=True, max_length=longest)
        ids = tuple(read["input_ids"])
        types = self._folder.types(read.get("token_type_ids"))
        return ids, types, len(whole["input_ids"]) - len(ids)

    def _asked(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """What the decoder has read at each query: as the model itself shifts, where it says how,
        else behind the token with which it begins.
        """
        if shift := getattr(self.model, "prepare_decoder_input_ids_from_labels", None):
            with self._folder.reading():
                row = torch.tensor([wanted], device=self._folder.device)
                return tuple(shift(labels=row)[0].tolist())
        told = (self.model.generation_config, self.model.config)
        starts = [getattr(settings, "decoder_start_token_id", None) for settings in told]
        start = next((one for one in starts if one is not None), None)
        if start is None:
            raise AttlasError(
                "a model that says with which token its decoder begins",
                f"no decoder_start_token_id in {self._folder.path}",
                "write it into its config.json, or leave the target out",
            )
        return (start, *wanted[:-1])

    def completed(self, texts: Sequence[Text]) -> Sequence[Text]:
        if not self._folder.writes or all(text.asked is not None for text in texts):
            return texts
        most = min(_WRITTEN, (self._folder.longest or _WRITTEN + 1) - 1)
        with self._folder.reading():
            found = self.model.generate(
                **self._folder.inputs(texts),
                do_sample=False,
                num_beams=1,
                num_return_sequences=1,
                return_dict_in_generate=False,
                max_new_tokens=most,
            )
        ends = self.model.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        return [_written(text, row, ends) for text, row in zip(texts, found.tolist(), strict=True)]

    def _run(self, texts: Sequence[Text]) -> None:
        given = self._folder.inputs(texts)
        if self._folder.writes:
            given["decoder_input_ids"] = self._folder.padded([text.asked or () for text in texts])
        self._folder.look(given)

    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        if not self._folder.writes or layer.startswith(self._encoder):
            return "source", "source"
        return ("target", "source" if trace.relation(layer) == "cross" else "target")


def _path_of_encoder(model: torch.nn.Module) -> str:
    encoder = model.get_encoder()  # type: ignore[operator]
    return next(f"{path}." for path, module in model.named_modules() if module is encoder)


def _written(text: Text, row: Sequence[int], ends: set[int]) -> Text:
    """A row begins with the token that begins every target, which may be the one that ends it."""
    end = next((place for place, id_ in enumerate(row[1:], 2) if id_ in ends), None)
    wanted = tuple(row[1:end])
    return replace(text, asked=tuple(row[: len(wanted)]), wanted=wanted, finished=end is not None)
