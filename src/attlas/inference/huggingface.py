"""A model of Hugging Face and its tokenizer, in a folder: from a text to what it looks at."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas._hardware import device_named
from attlas.errors import AttlasError, CheckpointError, UnsupportedError
from attlas.inference.forward_pass import (
    ForwardPass,
    Prediction,
    Side,
    copies_at_once,
    without_places,
)
from attlas.inference.huggingface_folder import (
    HERE,
    MODEL_CONFIG,
    belongs_to_head,
    check_has_tokenizer,
    check_is_tokenizer,
    check_weights,
    explain_loading,
    import_transformers,
    is_model_folder,
    longest_input,
    path_of_encoder,
    pretrained,
    quiet,
    reading,
)
from attlas.recording import Trace, observe
from attlas.recording.labels import tokens_of

# What a model did with a text, and where it looked.


@dataclass(frozen=True, slots=True)
class HuggingFaceResult:
    """A text that a model read.

    Args:
        text: What the model wrote; None for an encoder, which writes nothing.
        source_tokens: One label for each token that was read, special ones included.
        tokens: One label for each token that was written.
        finished: Whether the model ended what it wrote itself.
        trace: The attention of every layer, labelled; None where `blank` says why there is none.
        forward_pass: The pass of the trace, with the head of the model, to be run again; without
            outputs, where the model predicts nothing. None where there is no trace.
        limit: At what an unfinished text was cut off, and what to do about it.
    """

    text: str | None
    source_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    finished: bool
    trace: Trace | None
    blank: str = ""
    forward_pass: ForwardPass | None = field(default=None, repr=False, compare=False)
    limit: str = ""

    @property
    def score(self) -> float:
        """NaN: a greedy search compares nothing."""
        return math.nan

    @property
    def known(self) -> bool:
        """True: of what a tokenizer does with unknown words nothing is said."""
        return True

    @property
    def cut(self) -> int:
        """0: a text is read whole, or refused."""
        return 0


@dataclass(frozen=True, slots=True)
class HuggingFaceHypothesis:
    """A hypothesis of a beam search.

    Args:
        tokens: One label for each token that was written, the end included.
        score: What the search compared, by the model's own settings of generation.
        log_probability: Σ log P of the tokens, by the model itself.
        finished: Whether the model ended it.
    """

    text: str
    tokens: tuple[str, ...]
    score: float
    log_probability: float
    finished: bool


_BEAMS, _MOST_BEAMS = 5, 10
_ELSEWHERE = "; or name the folder that has it: attlas look MODEL --tokenizer FOLDER"

Task = Literal["read", "continue", "answer"]
_NO_DISTRIBUTION = ("regression", "multi_label_classification")  # of problems: no softmax of labels
_NEW: Mapping[Task, int] = {"read": 0, "continue": 64, "answer": 256}


def _name_of(folder: Path) -> str:
    """The name of a model's folder; of one in the cache of the hub, the model's, not its commit's.

    Example:
        >>> _name_of(Path("hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/1ff0"))
        'all-MiniLM-L6-v2'
    """
    resolved = folder.resolve()
    model = resolved.parents[1].name if resolved.parent.name == "snapshots" else ""
    return model.rpartition("--")[2] if model.startswith("models--") else resolved.name


class HuggingFaceModel:
    """model("text") → `HuggingFaceResult`; a model of Hugging Face and its tokenizer in a folder.

    An encoder reads a text. A decoder goes on with a prompt; an encoder–decoder answers a source.
    Both search greedily, and their own settings of generation hold, such as a penalty of
    repetition. What was read and written is then read once more, in one pass without a cache, with
    the kernel that transformers chose. `observe` records that pass.

    Of a decoder, row t of a map is token t, which looks at itself and at those before it. Of an
    encoder–decoder, row t of a decoder's map is the query that predicts token t.

    `task` says which of these it is: "read", "continue" or "answer".

    Args:
        max_new_tokens: How many tokens it writes at most; None = 64 of a decoder, and 256 of an
            encoder–decoder.
        tokenizer: The folder of the tokenizer; None = that of the model.

    Raises:
        AttlasError: If transformers is missing, and for a folder that it cannot read, that has no
            tokenizer, no weights for a part of the model that looks, or no model of text.
    """

    def __init__(
        self,
        path: Path | str,
        device: str = "cpu",
        *,
        max_new_tokens: int | None = None,
        tokenizer: Path | str | None = None,
    ) -> None:
        self.path, self.device = Path(path), device_named(device)
        if not is_model_folder(self.path):
            raise CheckpointError(
                f"a model of Hugging Face in {self.path}",
                f"no {MODEL_CONFIG}" if self.path.is_dir() else "no folder there",
                "name the folder that save_pretrained of the model and of its tokenizer wrote",
            )
        transformers = import_transformers()
        with quiet(transformers), explain_loading(self.path):
            config = transformers.AutoConfig.from_pretrained(self.path, **HERE)
        _check_reads_text(transformers, config, self.path)
        if tokenizer is None:
            check_has_tokenizer(self.path, _ELSEWHERE)
        else:
            check_is_tokenizer(Path(tokenizer))
        own = self.path if tokenizer is None else Path(tokenizer)
        with quiet(transformers), explain_loading(own, "a tokenizer", "save it there again"):
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(own, **HERE)
        self.model, self.task = self._opened(transformers, config)
        self.model = self.model.to(self.device).eval()
        self._body: Any = self.model.base_model
        parameters = signature(self._body.forward).parameters
        self._without_cache = {"use_cache": False} if "use_cache" in parameters else {}
        self.longest = longest_input(self.model, self.tokenizer)
        if max_new_tokens is not None and max_new_tokens < 1:
            raise AttlasError("at least 1 new token", str(max_new_tokens), "raise the limit")
        if max_new_tokens is not None and self.task == "read":
            raise UnsupportedError(
                "a model that writes, for a limit of new tokens",
                f"{type(self.model).__name__}, which only reads",
                "leave the limit out",
            )
        self._most_new = max_new_tokens or _NEW[self.task]
        self._most_read: int | None = None
        self._before_step: Callable[[], None] = _nothing

    def _opened(self, transformers: Any, config: Any) -> tuple[Any, Task]:
        kind, task = _class_of(transformers, config)
        with quiet(transformers), explain_loading(self.path):
            model, loading_info = pretrained(kind, self.path)
            headless = any(belongs_to_head(name) for name in loading_info["missing_keys"])
            self._predicts = not headless
            if task == "continue" and headless:  # a body, which can read, and write nothing
                model, loading_info = pretrained(transformers.AutoModel, self.path)
                task = "read"
        check_weights(model, sorted(loading_info["missing_keys"]), self.path)
        return model, task

    @property
    def facts(self) -> Mapping[str, str | int | float | None]:
        """What is known of the model, for a page or a report to show."""
        return {
            "name": _name_of(self.path),
            "model": type(self.model).__name__,
            "task": self.task,
            "source_language": _language(self.tokenizer, "source_lang"),
            "target_language": _language(self.tokenizer, "target_lang"),
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }

    def bounded(
        self,
        *,
        source: int | None = None,
        target: int | None = None,
        before_step: Callable[[], None] | None = None,
    ) -> Self:
        """The same model, for a program that others may ask.

        Args:
            source: A text of more tokens than this is refused.
            target: Tokens that are written at most.
            before_step: Called before every step of a search; what it raises ends the search.
        """
        if (source is not None and source < 1) or (target is not None and target < 1):
            raise AttlasError("bounds of at least 1", f"{source} and {target}", "raise them")
        model = copy(self)
        model._most_read = source
        if target is not None:
            model._most_new = min(self._most_new, target)
        model._before_step = before_step or _nothing
        return model

    def __call__(self, text: str, prefix: str | Sequence[int] = "") -> HuggingFaceResult:
        """Read one text, write what the model writes, and record where it looked.

        Args:
            prefix: The ids of the tokens with which the answer of an encoder–decoder begins.

        Raises:
            AttlasError: For a text without tokens, for one that is longer than the model reads, and
                for another prefix.
        """
        prefix_ids = self._prefix_ids(prefix)
        inputs = self.inputs(text)
        if self.task == "read":
            return self._read(inputs)
        generated, finished = self._written(inputs["input_ids"], prefix_ids)
        if self.task == "continue":
            return self._continued(inputs["input_ids"], generated, finished)
        return self._answered(inputs, generated, finished)

    def _prefix_ids(self, prefix: str | Sequence[int]) -> list[int]:
        if isinstance(prefix, str) and not prefix.strip():
            return []
        if isinstance(prefix, str) or (prefix and self.task != "answer"):
            raise UnsupportedError(
                "a text without a prefix, or the ids that begin a translation",
                "a prefix",
                "leave it out; a decoder goes on with the text itself",
            )
        size = self.model.get_output_embeddings().weight.shape[0]
        wrong = [id_ for id_ in prefix if not 0 <= id_ < size or id_ in self.closed_ids]
        if wrong:
            raise AttlasError(
                f"ids of tokens below {size:,}, which end nothing",
                str(wrong[0]),
                "take them from the alternatives of an output",
            )
        return list(prefix)

    # A beam search, beside the greedy one.

    @property
    def num_beams(self) -> int:
        """How many hypotheses `beams` keeps: the model's own setting, 5 where it has none; 0 where
        the model is no encoder–decoder."""
        own = int(getattr(self.model.generation_config, "num_beams", 1) or 1)
        return 0 if self.task != "answer" else min(own, _MOST_BEAMS) if own > 1 else _BEAMS

    @property
    def closed_ids(self) -> frozenset[int]:
        """Ids that end an answer, or stand before or behind it."""
        config = self.model.generation_config
        start, end = config.decoder_start_token_id, config.eos_token_id
        ends = [end] if isinstance(end, int) else list(end or ())
        closed = (start, config.pad_token_id, *ends)
        return frozenset(id_ for id_ in closed if isinstance(id_, int))

    def beams(
        self, text: str, prefix: str | Sequence[int] = ""
    ) -> tuple["HuggingFaceHypothesis", ...]:
        """The hypotheses of a beam search by the model's own settings of generation, best first.

        Args:
            prefix: As of a call.

        Raises:
            AttlasError: As of a call, and for a model that is no encoder–decoder.
        """
        if self.task != "answer":
            raise UnsupportedError(
                "an encoder–decoder, for a beam search", type(self.model).__name__, "call the model"
            )
        inputs, num_beams = self.inputs(text), self.num_beams
        sequences, scores = self._generated(
            inputs["input_ids"], self._prefix_ids(prefix), num_beams=num_beams
        )
        if sequences is None or scores is None:
            return ()
        found = []
        ends = self.closed_ids - {self._start}
        for row, score in zip(sequences.tolist(), scores.tolist(), strict=True):
            stop = next((n for n, id_ in enumerate(row[1:], 1) if id_ in ends), len(row) - 1)
            ids = torch.tensor([row[: stop + 1]], device=self.device)
            self._before_step()
            with reading(self.path), torch.no_grad():
                logits = self.model(
                    **inputs, decoder_input_ids=ids[:, :-1], **self._without_cache
                ).logits[0]
            log_p = logits.double().log_softmax(-1).gather(1, ids[0, 1:, None])
            written = ids[0, 1:].tolist()
            found.append(
                HuggingFaceHypothesis(
                    self.tokenizer.decode(written, skip_special_tokens=True),
                    self._tokens(ids[:, 1:]),
                    score,
                    float(log_p.sum()),
                    bool(written) and written[-1] in ends,
                )
            )
        return tuple(found)

    @property
    def _start(self) -> int:
        """The id with which every answer begins."""
        config = self.model.generation_config
        start = config.decoder_start_token_id
        return int(config.bos_token_id if start is None else start)

    def inputs(self, text: str) -> dict[str, Int[Tensor, "1 keys"]]:
        """A text as the model takes it, special tokens included.

        Raises:
            AttlasError: For a text without tokens, and for one that is too long.
        """
        parameters = signature(self.model.forward).parameters
        with reading(self.path):
            encoding = self.tokenizer(text, verbose=False)
        ids = list(encoding["input_ids"])
        limits = [limit for limit in (self.longest, self._most_read) if limit is not None]
        if not ids:
            raise AttlasError("a text with tokens", "one without any", "type a few words")
        if limits and len(ids) > min(limits):
            raise AttlasError(
                f"a text of at most {min(limits):,} tokens",
                f"{len(ids):,}",
                "type a shorter text",
            )
        arguments = {"input_ids": ids, "attention_mask": [1] * len(ids)}
        types = encoding.get("token_type_ids")
        if types and self.task == "read" and "token_type_ids" in parameters:
            arguments["token_type_ids"] = list(types)
        return {name: torch.tensor([row], device=self.device) for name, row in arguments.items()}

    def _written(
        self, ids: Int[Tensor, "1 keys"], prefix: Sequence[int] = ()
    ) -> tuple[list[int], bool]:
        """What generation gives: of an encoder–decoder with the token that begins it; and whether
        the model ended it."""
        is_encoder_decoder = self.task == "answer"
        sequences, _ = self._generated(ids, prefix)
        if sequences is None:  # a prompt that fills all positions
            return [], False
        row = [int(id_) for id_ in sequences[0].tolist()]
        generated = row if is_encoder_decoder else row[ids.shape[1] :]
        end = self.model.generation_config.eos_token_id
        ends = {end} if isinstance(end, int) else set(end or ())
        own = generated[1:] if is_encoder_decoder else generated
        return generated, bool(own) and generated[-1] in ends

    def _limit(self, length: int) -> str:
        """At what a text that holds so many tokens was cut off, and what to do about it."""
        if self.longest is not None and length >= self.longest:
            return (
                f"{self.longest:,} tokens, the most that this model reads. "
                "A shorter text leaves more room"
            )
        return f"{self._most_new:,} new tokens. Start with --max-new-tokens for another limit"

    def _generated(
        self, ids: Int[Tensor, "1 keys"], prefix: Sequence[int] = (), num_beams: int = 1
    ) -> tuple[Int[Tensor, "beams length"] | None, Float[Tensor, " beams"] | None]:
        """What a search writes, with the scores of a beam search; None = there is no room."""
        transformers = import_transformers()
        taken = 1 + len(prefix) if self.task == "answer" else ids.shape[1]
        max_new_tokens = self._most_new - len(prefix)
        if self.longest is not None:
            max_new_tokens = min(max_new_tokens, self.longest - taken)
        if max_new_tokens < 1:
            if prefix:
                raise AttlasError(
                    f"a prefix of fewer than {self._most_new:,} tokens",
                    f"{len(prefix):,}",
                    "choose an earlier token",
                )
            return None, None

        def step(generated: Tensor, *_: Any, **__: Any) -> Tensor:
            self._before_step()
            return torch.zeros(len(generated), dtype=torch.bool, device=generated.device)

        begun = {}
        if prefix:
            begun["decoder_input_ids"] = torch.tensor([[self._start, *prefix]], device=self.device)
        self._before_step()
        with reading(self.path), torch.no_grad():
            outputs = self.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                num_beams=num_beams,
                num_return_sequences=num_beams,
                return_dict_in_generate=num_beams > 1,
                output_scores=num_beams > 1,
                max_new_tokens=max_new_tokens,
                stopping_criteria=transformers.StoppingCriteriaList([step]),
                **begun,
            )
        return (outputs.sequences, outputs.sequences_scores) if num_beams > 1 else (outputs, None)

    def _read(self, arguments: Mapping[str, Int[Tensor, "1 keys"]]) -> HuggingFaceResult:
        tokens = self._tokens(arguments["input_ids"])
        trace, blank_reason = self._observed(arguments)
        if trace is not None:
            trace.label([tokens], [tokens])
        run = self._pass_of_reading(arguments, tokens) if trace is not None else None
        return HuggingFaceResult(
            text=None,
            source_tokens=tokens,
            tokens=(),
            finished=True,
            trace=trace,
            blank=blank_reason,
            forward_pass=run,
        )

    def _continued(
        self, ids: Int[Tensor, "1 keys"], generated: Sequence[int], finished: bool
    ) -> HuggingFaceResult:
        all_ids = torch.cat(
            [ids, torch.tensor([[*generated]], dtype=ids.dtype, device=ids.device)], 1
        )
        tokens, prompt = self._tokens(all_ids), ids.shape[1]
        trace, blank_reason = self._observed(
            {"input_ids": all_ids, "attention_mask": torch.ones_like(all_ids)}
        )
        if trace is not None:
            trace.label([tokens], [tokens])
        text = self.tokenizer.decode(list(generated), skip_special_tokens=True)
        run = self._pass_of_continuation(all_ids, tokens, prompt) if trace is not None else None
        return HuggingFaceResult(
            text=text,
            source_tokens=tokens[:prompt],
            tokens=tokens[prompt:],
            finished=finished,
            trace=trace,
            blank=blank_reason,
            forward_pass=run,
            limit=self._limit(len(tokens)),
        )

    def _answered(
        self,
        arguments: Mapping[str, Int[Tensor, "1 keys"]],
        generated: Sequence[int],
        finished: bool,
    ) -> HuggingFaceResult:
        source = self._tokens(arguments["input_ids"])
        if len(generated) < 2:
            return HuggingFaceResult(
                text="",
                source_tokens=source,
                tokens=(),
                finished=finished,
                trace=None,
                blank="the model wrote no token",
                limit=self._limit(len(generated)),
            )
        row = torch.tensor([[*generated]], device=self.device)
        query_tokens, expected = self._tokens(row[:, :-1]), self._tokens(row[:, 1:])
        trace, blank_reason = self._observed({**arguments, "decoder_input_ids": row[:, :-1]})
        if trace is not None:
            trace.label([source], [expected])
            encoder = path_of_encoder(self.model)
            for layer in trace:
                if layer.startswith(encoder):
                    trace.label_layer(layer, [source], [source])
                elif trace.kind(layer) == "self":
                    trace.label_layer(layer, [query_tokens], [expected])
        text = self.tokenizer.decode(list(generated), skip_special_tokens=True)
        run = self._pass_of_answer(arguments, row, trace, source) if trace is not None else None
        return HuggingFaceResult(
            text=text,
            source_tokens=source,
            tokens=expected,
            finished=finished,
            trace=trace,
            blank=blank_reason,
            forward_pass=run,
            limit=self._limit(len(generated)),
        )

    # The passes of the traces, to be run again.

    def _pass_of_reading(
        self, arguments: Mapping[str, Int[Tensor, "1 keys"]], tokens: tuple[str, ...]
    ) -> ForwardPass:
        """Of a text that is labelled, or of which each token is predicted from all of them."""
        kind, config = type(self.model).__name__, self.model.config
        if not self._predicts:
            return self._pass_without_outputs(arguments, tokens)
        if kind.endswith("ForSequenceClassification"):
            several = getattr(config, "problem_type", None) in _NO_DISTRIBUTION
            if several or config.num_labels < 2:
                return self._pass_without_outputs(arguments, tokens)
            labels = tuple(config.id2label[label] for label in range(config.num_labels))
            outputs = tuple(Prediction(name, None, label) for label, name in enumerate(labels))
            # Without an id of padding it reads one text at a time.
            padded = getattr(config, "pad_token_id", None) is not None
            copies = copies_at_once(len(labels)) if padded else 1
            with torch.no_grad(), reading(self.path):
                first = int(self._logits_of(arguments, None, 1, range(0))[0].argmax())

            def names(ids: Sequence[int]) -> Sequence[str]:
                return [labels[id_] for id_ in ids]

            return self._pass(arguments, tokens, outputs, first, _source, copies, names)
        if not kind.endswith("ForMaskedLM"):
            return self._pass_without_outputs(arguments, tokens)
        ids = arguments["input_ids"][0].tolist()
        special = set(self.tokenizer.all_special_ids)
        masked = [place for place, id_ in enumerate(ids) if id_ == self.tokenizer.mask_token_id]
        words = [place for place, id_ in enumerate(ids) if id_ not in special]
        outputs = tuple(Prediction(token, place, None) for place, token in enumerate(tokens))
        return self._pass(arguments, tokens, outputs, [*masked, *words, 0][0], _text)

    def _pass_without_outputs(
        self, arguments: Mapping[str, Int[Tensor, "1 keys"]], tokens: tuple[str, ...]
    ) -> ForwardPass:
        """Of an encoder that gives vectors, no distribution: its body alone, to be observed."""

        def vectors(position: int | slice | None, copies: int, without: range) -> Tensor:
            with reading(self.path):
                given: Tensor = self._body(**arguments, **self._without_cache)[0]
            return given

        return ForwardPass(self.model, tokens, (), 0, _text, 1, vectors, lambda _: ())

    def _pass_of_continuation(
        self, ids: Int[Tensor, "1 keys"], tokens: tuple[str, ...], prompt: int
    ) -> ForwardPass | None:
        """Prediction t is the token after token t; after the last one, the most probable one."""
        following = [*ids[0, 1:].tolist(), None]
        names = [*tokens[1:], "(next token)"]
        outputs = tuple(
            Prediction(name, place, id_)
            for place, (name, id_) in enumerate(zip(names, following, strict=True))
        )
        arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        return self._pass(arguments, tokens, outputs, prompt - 1, _text)

    def _pass_of_answer(
        self,
        arguments: Mapping[str, Int[Tensor, "1 keys"]],
        row: Int[Tensor, "1 queries"],
        trace: Trace,
        source: tuple[str, ...],
    ) -> ForwardPass | None:
        """Prediction t is token t of what was written."""
        expected = row[0, 1:].tolist()
        outputs = tuple(
            Prediction(name, place, id_)
            for place, (name, id_) in enumerate(
                zip(self._tokens(row[:, 1:]), expected, strict=True)
            )
        )
        special = set(self.tokenizer.all_special_ids)
        first = next((place for place, id_ in enumerate(expected) if id_ not in special), 0)
        encoder = path_of_encoder(self.model)
        own = {layer for layer in trace if trace.kind(layer) == "self"}

        def side(layer: str) -> Side:
            if layer.startswith(encoder):
                return "source"
            return "target" if layer in own else "across"

        decoder_input = {"decoder_input_ids": row[:, :-1]}
        return self._pass(arguments, source, outputs, first, side, beside=decoder_input)

    def _pass(
        self,
        arguments: Mapping[str, Int[Tensor, "1 keys"]],
        source: tuple[str, ...],
        outputs: tuple[Prediction, ...],
        first: int,
        side: Callable[[str], Side],
        copies: int | None = None,
        names: Callable[[Sequence[int]], Sequence[str]] | None = None,
        beside: Mapping[str, Int[Tensor, "1 queries"]] | None = None,
    ) -> ForwardPass:
        if copies is None:
            positions = max(len(source), len(outputs))
            # A model that is put together of two has no size of a vocabulary in its own settings.
            copies = copies_at_once(positions * len(self.tokenizer))

        def logits(position: int | slice | None, copies: int, without: range) -> Tensor:
            with reading(self.path):
                return self._logits_of(arguments, position, copies, without, beside or {})

        def tokens(ids: Sequence[int]) -> Sequence[str]:
            return self._tokens(torch.tensor([[*ids]]))

        return ForwardPass(
            model=self.model,
            source=source,
            outputs=outputs,
            first=first,
            side=side,
            most_copies=copies,
            _logits=logits,
            _names=names or tokens,
        )

    def _logits_of(
        self,
        arguments: Mapping[str, Int[Tensor, "1 keys"]],
        position: int | slice | None,
        copies: int,
        without: range,
        beside: Mapping[str, Int[Tensor, "1 queries"]] | None = None,
    ) -> Float[Tensor, "copies *positions labels"]:
        read = {name: without_places(row, without, copies) for name, row in arguments.items()}
        read |= {name: row.expand(copies, -1) for name, row in (beside or {}).items()}
        given: Tensor = self.model(**read, **self._without_cache).logits
        if position is None:
            return given
        if beside or isinstance(position, slice):
            return given[:, position]
        return given[:, _place_without(position, without, self.task)]

    def _tokens(self, ids: Int[Tensor, "1 keys"]) -> tuple[str, ...]:
        return tokens_of(self.tokenizer, ids)[0]

    def _observed(self, arguments: Mapping[str, Int[Tensor, "1 keys"]]) -> tuple[Trace | None, str]:
        """One pass through all layers, without the head: a vocabulary of logits for each token
        would be most of its memory."""
        ran = False
        try:
            with torch.no_grad(), observe(self.model) as trace:
                with reading(self.path):
                    self._body(**arguments, **self._without_cache)
                ran = True
        except AttlasError as error:
            if not ran:
                raise
            return None, error.got  # as a state space, which has no such weights
        return trace, ""


def _language(tokenizer: Any, side: str) -> str | None:
    """The code of a language that a tokenizer for translation names, such as "de"."""
    code = getattr(tokenizer, side, None)
    return code if isinstance(code, str) and re.fullmatch("[a-z]{2,3}", code) else None


def _source(layer: str) -> Side:
    return "source"


def _text(layer: str) -> Side:
    return "text"


def _place_without(position: int, without: range, task: Task) -> int:
    """Where the logits of a position are without some tokens; of a decoder, what comes after a
    token that is left out is predicted at the one before."""
    left = position - len(range(without.start, min(without.stop, position + 1)))
    if position in without and task == "read":
        raise AttlasError(
            "an output at a token that stays in the text",
            "one at a token that is erased",
            "choose another token",
        )
    if left < 0:
        raise AttlasError("a token before the one that is predicted", "none", "erase a later token")
    return left


def _nothing() -> None:
    """What is done before a step by default."""


def _class_of(transformers: Any, config: Any) -> tuple[Any, Task]:
    """What opens a model with the head that its configuration names, and what it then does."""
    architecture = str(next(iter(getattr(config, "architectures", None) or ()), ""))
    tables = transformers.models.auto.modeling_auto
    kind = type(config)
    writes = kind in tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING
    if architecture.endswith("EncoderModel"):
        return transformers.AutoModelForTextEncoding, "read"
    if getattr(config, "is_encoder_decoder", False) and writes:
        return transformers.AutoModelForSeq2SeqLM, "answer"
    if architecture.endswith("ForSequenceClassification"):
        return transformers.AutoModelForSequenceClassification, "read"
    if architecture.endswith("ForMaskedLM"):
        return transformers.AutoModelForMaskedLM, "read"
    continues = kind in tables.MODEL_FOR_CAUSAL_LM_MAPPING
    is_masked_lm = kind in tables.MODEL_FOR_MASKED_LM_MAPPING  # BERT, which may be a decoder too
    if continues and (architecture.endswith(("ForCausalLM", "LMHeadModel")) or not is_masked_lm):
        return transformers.AutoModelForCausalLM, "continue"
    return transformers.AutoModel, "read"


def _check_reads_text(transformers: Any, config: Any, path: Path) -> None:
    """Check that what a model is given are the ids of a text.

    Raises:
        UnsupportedError: For pictures, sounds and other things.
    """
    tables = transformers.models.auto.modeling_auto
    try:
        model_class = tables.MODEL_MAPPING[type(config)]
    except KeyError:  # it is opened by another class, which says what it cannot read
        return
    given = getattr(
        model_class[0] if isinstance(model_class, tuple) else model_class,
        "main_input_name",
        "input_ids",
    )
    if given != "input_ids":
        raise UnsupportedError(
            f"a model that reads text, in {path}",
            f"a model of kind {config.model_type}, which reads {given}",
            "let it read an image: attlas look MODEL --image FILE, or in Python "
            "attlas.inference.observe_images(folder, images)"
            if given == "pixel_values"
            else "call it in Python inside `with attlas.observe(model) as trace:`, save the trace "
            "with trace.save(path), and look at that",
        )
