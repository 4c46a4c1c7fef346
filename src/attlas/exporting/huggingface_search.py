"""How a run searches, in the words of transformers."""

from collections.abc import Iterator
from typing import Any

from attlas.data import BEGIN, END, PAD, UNKNOWN
from attlas.decoding import DecodingConfig
from attlas.exporting.remarks import of_numbers


class HuggingFaceSearch:
    """`generation_config.json` of a run: what `generate` can do of its [decoding], and what it
    cannot.

    positions: how many tokens the model reads or writes at most, begin or end among them.
    """

    def __init__(self, decoding: DecodingConfig, positions: int) -> None:
        self.decoding, self.positions = decoding, positions

    @property
    def longest_source(self) -> int:
        """Tokens of a source that are read at most, its end among them."""
        cut = self.decoding.longest_source
        return min(cut + 1, self.positions) if cut else self.positions

    @property
    def max_new_tokens(self) -> int:
        """The limit of the longest source, so that no translation is cut that attlas would not
        cut: `generate` has one limit for all.
        """
        return min(self.decoding.max_length(self.longest_source), self.positions - 1)

    @property
    def _never(self) -> tuple[int, ...]:
        """What is never written."""
        return (PAD, BEGIN, UNKNOWN) if self.decoding.unknown == "forbid" else (PAD, BEGIN)

    @property
    def settings(self) -> dict[str, Any]:
        """The file; what is not in it is as transformers has it, which here is as attlas has it."""
        decoding = self.decoding
        settings: dict[str, Any] = {
            "pad_token_id": PAD,
            "bos_token_id": BEGIN,
            "eos_token_id": END,
            "decoder_start_token_id": BEGIN,
            "bad_words_ids": [[id_] for id_ in self._never],
            "num_beams": decoding.beam if decoding.method == "beam" else 1,
            "do_sample": decoding.method == "sample",
            "num_return_sequences": decoding.n_best,
            "max_new_tokens": self.max_new_tokens,
        }
        if decoding.min_length:  # counted as here: tokens before the end
            settings["min_new_tokens"] = decoding.min_length
        if decoding.no_repeat_ngram:
            settings["no_repeat_ngram_size"] = decoding.no_repeat_ngram
        if decoding.method == "beam":
            settings["length_penalty"] = decoding.length_penalty
            settings["early_stopping"] = "never" if decoding.exhaustive else False
        if decoding.method == "sample":  # where top_k is missing transformers takes 50
            for name in ("temperature", "top_k", "top_p"):
                settings[name] = getattr(decoding, name)
        return settings

    @property
    def remarks(self) -> list[str]:
        """What `generate` does otherwise, in whole sentences."""
        told = [*self._of_lengths(), *self._of_ranks(), *self._of_draws()]
        return [*told, *self._of_unknown(), *of_numbers(self.decoding)]

    def _of_lengths(self) -> Iterator[str]:
        decoding, most = self.decoding, self.max_new_tokens
        if decoding.max_length_factor:
            yield (
                "attlas ends a translation of n source tokens, the end included, after "
                f"⌊{decoding.max_length_factor} · n⌋ + {decoding.max_length_constant} tokens; "
                f"generate has one limit for all, max_new_tokens = {most:,} here, that of the "
                "longest source: give max_new_tokens with shorter ones."
            )
        elif decoding.max_length_constant > most:
            yield (
                f"attlas ends a translation after {decoding.max_length_constant:,} tokens, Marian "
                f"after {most:,}."
            )
        if decoding.longest_source:
            yield (
                f"attlas cuts a source to {decoding.longest_source:,} tokens and the end: here "
                "give truncation=True to the tokenizer."
            )

    def _of_ranks(self) -> Iterator[str]:
        decoding = self.decoding
        if decoding.method == "beam":
            yield (
                "transformers ranks by log P / |Y|^α, attlas by log P / ((5 + |Y|) / 6)^α: a beam "
                "search may choose differently where length_penalty is not 0. Greedy search is "
                "the same."
            )
        if decoding.coverage_penalty:
            yield (
                "generate knows no coverage penalty: decoding.coverage_penalty = "
                f"{decoding.coverage_penalty} is left out."
            )

    def _of_unknown(self) -> Iterator[str]:
        if self.decoding.unknown == "replace":
            yield (
                "attlas writes a word of the source for <unk> (decoding.unknown), generate does "
                "not: it writes <unk>."
            )

    def _of_draws(self) -> Iterator[str]:
        if self.decoding.method == "sample":
            yield (
                "generate draws by torch's generator (transformers.set_seed), attlas by "
                f"decoding.seed = {self.decoding.seed}: the probabilities are the same, the draws "
                "are not; and where attlas gives the draws of a source best first, generate gives "
                "them as they were drawn."
            )
