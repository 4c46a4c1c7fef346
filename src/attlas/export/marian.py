"""The folder that transformers loads as Marian."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from attlas.data import BEGIN, END, PAD, UNKNOWN, Subwords, Vocabulary
from attlas.data.vocabulary import SPECIAL
from attlas.decoding import DecodingConfig
from attlas.export.base import WEIGHTS, all_heads, of_numbers
from attlas.layers import MultiheadAttention
from attlas.models import Transformer, TransformerConfig
from attlas.models.transformer.block import FeedForward
from attlas.runs.loaded import (
    LoadedTranslator,
    check_plain_scores,
    check_sees_all,
    check_whole_layers,
    unsupported,
)

# How a run searches, in the words of transformers.


class HuggingFaceSearch:
    """`generation_config.json` of a run: what `generate` can do of its [decoding], and what it
    cannot.

    Args:
        positions: How many tokens the model reads or writes at most, begin or end among them.
    """

    def __init__(self, decoding: DecodingConfig, positions: int) -> None:
        self.decoding, self.positions = decoding, positions

    @property
    def max_source_length(self) -> int:
        """Tokens of a source that are read at most, its end among them."""
        cut = self.decoding.max_source_length
        return min(cut + 1, self.positions) if cut else self.positions

    @property
    def max_new_tokens(self) -> int:
        """The limit of the longest source, so that no translation is cut that attlas would not
        cut: `generate` has one limit for all.
        """
        return min(self.decoding.max_length(self.max_source_length), self.positions - 1)

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
            "num_beams": decoding.num_beams if decoding.method == "beam" else 1,
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
        notes = [*self._of_lengths(), *self._of_ranks(), *self._of_draws()]
        return [*notes, *self._of_unknown(), *of_numbers(self.decoding)]

    def _of_lengths(self) -> Iterator[str]:
        decoding, max_new_tokens = self.decoding, self.max_new_tokens
        if decoding.max_len_a:
            yield (
                "attlas ends a translation of n source tokens, the end included, after "
                f"⌊{decoding.max_len_a} · n⌋ + {decoding.max_len_b} tokens; "
                f"generate has one limit for all, max_new_tokens = {max_new_tokens:,} here, that "
                "of the longest source: give max_new_tokens with shorter ones."
            )
        elif decoding.max_len_b > max_new_tokens:
            yield (
                f"attlas ends a translation after {decoding.max_len_b:,} tokens, Marian "
                f"after {max_new_tokens:,}."
            )
        if decoding.max_source_length:
            yield (
                f"attlas cuts a source to {decoding.max_source_length:,} tokens and the end: here "
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


_TAKER = "Marian"
_OTHERS = ("ctranslate2", "onnx")
_LONGEST = 1024  # positions; Marian makes a table of them, attlas needs none

# The end of a sentencepiece model in which a text is read with a space before it, as `Subwords`
# reads it. A model is a protobuf message: what stands later is merged into what stood before. This
# is field 3 (normalizer_spec), two bytes long, and in it field 3 (add_dummy_prefix) = true.
_SPACE_BEFORE = b"\x1a\x02\x18\x01"


def write_huggingface(loaded: LoadedTranslator, folder: Path) -> list[str]:
    """`MarianMTModel.from_pretrained(folder)`; of subwords `MarianTokenizer` too.

    The same logits, up to rounding. Marian's positions are all sines and then all cosines, where
    attlas's alternate (`SinusoidalPositions`): nothing but the order of the width differs, so the
    width of every matrix that reads or writes the residual stream is put into Marian's order.

    Returns:
        What a reader of the folder has to know.

    Raises:
        AttlasError: For a model that Marian cannot express.
    """
    model, config = loaded.transformer(_TAKER)
    _check(config)
    tensors = {n: t.detach().cpu().clone().contiguous() for n, t in _tensors(model, config)}
    (folder / WEIGHTS).write_bytes(safetensors.torch.save(tensors, {"format": "pt"}))
    sizes = len(loaded.vocabularies.source), len(loaded.vocabularies.target)
    _write_json(folder / "config.json", _settings(config, *sizes))
    search = HuggingFaceSearch(loaded.decoding, _LONGEST)
    _write_json(folder / "generation_config.json", search.settings)
    return [
        f"Marian reads and writes at most {_LONGEST:,} tokens, ends included; more are an error "
        "there.",
        *search.remarks,
        *_write_vocabularies(loaded, folder, search.max_source_length),
    ]


def _check(config: TransformerConfig) -> None:
    check_sees_all(_TAKER, config)  # first: of what is left, CTranslate2 takes any
    check_whole_layers(_TAKER, config)
    check_plain_scores(_TAKER, config)
    if config.norm != "post":
        raise unsupported(_TAKER, 'norm = "post"', f'norm = "{config.norm}"', _OTHERS)
    if config.norm_type != "layer":
        raise unsupported(
            _TAKER, 'norm_type = "layer"', f'norm_type = "{config.norm_type}"', _OTHERS
        )
    if config.positions != "sinusoidal":
        raise unsupported(
            _TAKER, 'positions = "sinusoidal"', f'positions = "{config.positions}"', _OTHERS
        )
    if config.activation == "swiglu":
        raise unsupported(_TAKER, 'activation = "relu" or "gelu"', 'activation = "swiglu"', _OTHERS)


def _settings(config: TransformerConfig, source_size: int, target_size: int) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": source_size,
        "decoder_vocab_size": target_size,
        "share_encoder_decoder_embeddings": _shared(config),
        "tie_word_embeddings": config.tie_output,
        "d_model": config.embed_dim,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.ffn_dim,
        "decoder_ffn_dim": config.ffn_dim,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.ffn_dropout,
        "scale_embedding": True,
        "max_position_embeddings": _LONGEST,
        "pad_token_id": PAD,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "decoder_start_token_id": BEGIN,
        "forced_eos_token_id": None,
    }


def _shared(config: TransformerConfig) -> bool:
    """Return True if Marian's three matrices of the vocabulary are one; two of three is told by
    copies.
    """
    return config.tie_source and config.tie_output


def _tensors(model: Transformer, config: TransformerConfig) -> Iterator[tuple[str, Tensor]]:
    """Marian's names and our numbers, the width in Marian's order."""
    order = torch.cat([torch.arange(0, config.embed_dim, 2), torch.arange(1, config.embed_dim, 2)])
    target = model.target_embedding.weight[:, order]
    embedding = model.source_embedding
    if _shared(config):
        yield "model.shared.weight", target
    else:
        yield (
            "model.encoder.embed_tokens.weight",
            target if embedding is None else embedding.weight[:, order],
        )
        yield "model.decoder.embed_tokens.weight", target
    if model.output.weight is not None:
        yield "lm_head.weight", model.output.weight[:, order]
    yield "final_logits_bias", model.output.bias.unsqueeze(0)
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model, side).layers):
            for name, tensor in _of_layer(layer, order):
                yield f"model.{side}.layers.{number}.{name}", tensor


def _of_layer(layer: Any, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield from _of_attention("self_attn", layer.self_attention, order)
    yield from _of_norm("self_attn_layer_norm", layer.around_self_attention.norm, order)
    if hasattr(layer, "cross_attention"):
        yield from _of_attention("encoder_attn", layer.cross_attention, order)
        yield from _of_norm("encoder_attn_layer_norm", layer.around_cross_attention.norm, order)
    feed_forward: FeedForward = layer.feed_forward
    yield from _reading("fc1", feed_forward.inner.weight, feed_forward.inner.bias, order)
    yield from _writing("fc2", feed_forward.outer, order)
    yield from _of_norm("final_layer_norm", layer.around_feed_forward.norm, order)


def _of_attention(
    name: str, attention: MultiheadAttention, order: Tensor
) -> Iterator[tuple[str, Tensor]]:
    query, key, value = all_heads(attention)
    yield from _reading(f"{name}.q_proj", *query, order)
    yield from _reading(f"{name}.k_proj", *key, order)
    yield from _reading(f"{name}.v_proj", *value, order)
    yield from _writing(f"{name}.out_proj", attention.out_proj, order)


def _reading(
    name: str, weight: Tensor, bias: Tensor | None, order: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """A linear map whose input is the residual stream; Marian's have a bias."""
    yield f"{name}.weight", weight[:, order]
    yield f"{name}.bias", weight.new_zeros(len(weight)) if bias is None else bias


def _writing(name: str, linear: nn.Linear, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    """A linear map whose output is added to the residual stream."""
    bias: Tensor | None = linear.bias
    yield f"{name}.weight", linear.weight[order]
    yield f"{name}.bias", linear.weight.new_zeros(len(order)) if bias is None else bias[order]


def _of_norm(name: str, norm: nn.LayerNorm, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}.weight", norm.weight[order]
    yield f"{name}.bias", norm.bias[order]


def _write_vocabularies(loaded: LoadedTranslator, folder: Path, longest: int) -> list[str]:
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    if not (isinstance(source, Subwords) and isinstance(target, Subwords)):
        # Not as tokenizer.json, which transformers would take for a file of its own.
        source.save((folder / "source").with_suffix(source.suffix))
        target.save((folder / "target").with_suffix(target.suffix))
        return [
            "transformers has no tokenizer for words or characters, so the folder has none: id "
            "4 + n is token n of the list in source.json or target.json, 0 to 3 are padding, "
            "unknown, begin and end, and a source ends with end.",
        ]
    (folder / "source.spm").write_bytes(source.model + _SPACE_BEFORE)
    (folder / "target.spm").write_bytes(target.model + _SPACE_BEFORE)
    _write_json(folder / "vocab.json", _ids(source))
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "unk_token": SPECIAL[1],
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[PAD],
        "model_max_length": longest,
        "separate_vocabs": not loaded.vocabularies.shared,
        "clean_up_tokenization_spaces": False,
    }
    if not loaded.vocabularies.shared:
        _write_json(folder / "target_vocab.json", _ids(target))
    _write_json(folder / "tokenizer_config.json", settings)
    return [
        "MarianTokenizer gives the ids that attlas gives, but for texts with the character ▁, with "
        "a special token such as </s> written out, or with >>…<< at the beginning, and for an "
        "empty text; its decode takes spaces at the ends away.",
    ]


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    return {piece: id_ for id_, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}


def _write_json(path: Path, table: Any) -> None:
    text = json.dumps(table, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8", newline="\n")
