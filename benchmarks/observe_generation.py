"""Generations that are observed and generations that are not: (batch, tokens written).

Models of Hugging Face's of 6 layers, 12 in BART and T5, and weights as they are drawn, which go on
from 128 tokens, or translate them, greedily, with a cache: one that grows, or one that has all its
room at once. Llama has grouped keys; BLOOM and T5 write their attention out, and have biases. Each
step is a call of each layer, so that what looking costs is told by the step; the steps become one
map for each layer.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from cases import PASSES, Shape, Suite, Work
from observe_models import HEADS, LAYERS, VOCABULARY, WIDTH, tokens
from torch import Tensor
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BloomConfig,
    BloomForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import attlas

PROMPT = 128
ENDLESS = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
GIVEN_MORE = {"forced_eos_token_id": None, "decoder_start_token_id": 0}


def llama() -> LlamaForCausalLM:
    """Keys of which three heads share each."""
    config = LlamaConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS // 3, intermediate_size=4 * WIDTH, max_position_embeddings=4096,
        **ENDLESS,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def bart() -> BartForConditionalGeneration:
    """Learned positions; a decoder that looks across as well."""
    config = BartConfig(
        d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH, decoder_ffn_dim=4 * WIDTH, **ENDLESS, **GIVEN_MORE,
    )  # fmt: skip
    return BartForConditionalGeneration(config)


def t5() -> T5ForConditionalGeneration:
    """Biases by distance; a decoder that looks across as well."""
    config = T5Config(
        d_model=WIDTH, d_kv=WIDTH // HEADS, num_layers=LAYERS, num_heads=HEADS, d_ff=4 * WIDTH,
        **ENDLESS, **GIVEN_MORE,
    )  # fmt: skip
    return T5ForConditionalGeneration(config)


def bloom() -> BloomForCausalLM:
    """Biases that fall with the distance."""
    width = 8 * (WIDTH // HEADS)  # heads that are a power of two
    return BloomForCausalLM(BloomConfig(hidden_size=width, n_layer=LAYERS, n_head=8, **ENDLESS))


@cache
def of_huggingface(make: Callable[[], Any]) -> Any:
    """It never says that it is done."""
    torch.manual_seed(1)
    return make().eval()


def generating(make: Callable[[], Any], kind: str, *, seen: bool) -> Callable[[Shape], Work]:
    """All that was written, with a cache of this kind, within `attlas.observe` or without."""

    def work(shape: Shape) -> Work:
        model, (batch, more) = of_huggingface(make), shape
        prompt = tokens((batch, PROMPT)).clamp(min=1)  # 0 is padding
        translates = bool(model.config.is_encoder_decoder)
        there = more if translates else PROMPT + more - 1  # the last token asks nothing

        def run() -> Tensor:
            with attlas.observe(model) if seen else nullcontext() as trace:
                written: Tensor = model.generate(
                    prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=more,
                    do_sample=False, cache_implementation=kind,
                )  # fmt: skip
            if trace is not None:
                shapes = {tuple(trace[layer].shape[2:]) for layer in trace}
                across = {(PROMPT, PROMPT), (there, PROMPT)} if translates else set()
                assert shapes == {(there, there), *across}, shapes
                assert len(trace) == LAYERS * (3 if translates else 1)
            return written

        return Work(run, list(model.parameters()))

    return work


def suite(
    make: Callable[[], Any], kind: str, *more: Shape, memory: tuple[Shape, ...] = ()
) -> Suite:
    """One generation that is observed, and the same that is not."""
    return Suite(
        "batch × tokens written",
        {
            "observed": generating(make, kind, seen=True),
            "not observed": generating(make, kind, seen=False),
        },
        generating(make, kind, seen=False),
        quick=((1, 8),),
        more=more,
        memory=memory,
        passes=PASSES[:1],
        blocks=7,
    )


GENERATIONS = {
    "generation": suite(llama, "dynamic", (1, 32), (1, 384), (8, 128), memory=((8, 128),)),
    "generation, static cache": suite(llama, "static", (1, 32), (1, 384), (8, 128)),
    "generation of BART": suite(bart, "dynamic", (1, 32), (1, 384)),
    "generation of T5": suite(t5, "dynamic", (1, 32), (1, 384)),
    "generation of BLOOM": suite(bloom, "dynamic", (1, 32), (1, 384)),
}
