"""A model of Hugging Face that reads text: an encoder, a decoder, or both."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.analysis.corpus.huggingface_folder import HuggingFaceFolder
from attlas.analysis.corpus.reader import Look, Reader, Side
from attlas.analysis.corpus.text import Text
from attlas.errors import AttlasError
from attlas.recording import Trace

_WRITTEN = 256  # tokens that a model writes at most, where no target is given


class HuggingFaceReader(Reader):
    """The text is read with the special tokens of its tokenizer, padded on the right.

    An encoder–decoder also reads what was written: the target, or else what it writes itself by
    greedy search, with at most 256 tokens. Query t of its decoder has read the tokens before t and
    is about to write token t. A text is cut, as the tokenizer does it, to what the model says that
    it can read.
    """

    def __init__(self, folder: HuggingFaceFolder) -> None:
        self._folder = folder
        self.model, self.facts = folder.model, folder.facts
        self._tokenizer = folder.tokenizer
        padding = self._tokenizer.pad_token_id
        self._padding = padding if padding is not None else 0
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
        source, unread = self._ids(text)
        if not source:
            return None
        read = Text(line, source, unread=unread)
        if target is None:
            return read
        wanted, lost = self._ids(target, written=True)
        if not wanted:
            return None
        row = torch.tensor([wanted], device=self._folder.device)
        asked = self.model.prepare_decoder_input_ids_from_labels(labels=row)[0].tolist()
        return replace(read, asked=tuple(asked), wanted=wanted, unread=unread + lost)

    def named(self, look: Look) -> tuple[str, ...]:
        return tuple(map(str, self._tokenizer.convert_ids_to_tokens(list(look.ids or ()))))

    def _ids(self, text: str, *, written: bool = False) -> tuple[tuple[int, ...], int]:
        """The tokens that are read, special ones included, and how many more there are."""
        given = {"text_target" if written else "text": text, "verbose": False}
        whole = self._tokenizer(**given)["input_ids"]
        longest = self._folder.longest
        if longest is None or len(whole) <= longest:
            return tuple(whole), 0
        ids = self._tokenizer(**given, truncation=True, max_length=longest)["input_ids"]
        return tuple(ids), len(whole) - len(ids)

    def _completed(self, texts: Sequence[Text]) -> Sequence[Text]:
        if not self._folder.writes or all(text.asked is not None for text in texts):
            return texts
        source, real = self._batch([text.source for text in texts])
        most = min(_WRITTEN, (self._folder.longest or _WRITTEN + 1) - 1)
        found = self.model.generate(
            input_ids=source,
            attention_mask=real.long(),
            do_sample=False,
            num_beams=1,
            max_new_tokens=most,
        )
        ends = self.model.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        return [_written(text, row, ends) for text, row in zip(texts, found.tolist(), strict=True)]

    def _run(self, texts: Sequence[Text]) -> None:
        source, real = self._batch([text.source for text in texts])
        given = {"input_ids": source, "attention_mask": real.long()}
        if self._folder.writes:
            given["decoder_input_ids"], _ = self._batch([text.asked or () for text in texts])
        try:
            self.model(**given)
        except AttlasError:
            raise
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise AttlasError(
                f"a model that reads these texts with their tokenizer, in {self._folder.path}",
                f"{type(error).__name__}: {' '.join(str(error).split())}",
                "check that the tokenizer is that of the model, and that the model reads text",
            ) from error

    def _batch(
        self, rows: Sequence[Sequence[int]]
    ) -> tuple[Int[Tensor, "batch slots"], Bool[Tensor, "batch slots"]]:
        longest = max(map(len, rows))
        ids = [[*row, *[self._padding] * (longest - len(row))] for row in rows]
        real = [[place < len(row) for place in range(longest)] for row in rows]
        device = self._folder.device
        return torch.tensor(ids, device=device), torch.tensor(real, device=device)

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
