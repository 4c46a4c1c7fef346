"""Generations that are observed and generations that are not: (batch, tokens written).

A decoder of Hugging Face's of 6 layers with grouped keys, and weights as they are drawn, which goes
on from 128 tokens, greedily, with a cache: one that grows, or one that has all its room at once.
Each step is a call of each layer, so that what looking costs is told by the step; the steps become
one map for each layer.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

import torch
from cases import PASSES, Shape, Suite, Work
from observe_models import HEADS, LAYERS, VOCABULARY, WIDTH, tokens
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import attlas

PROMPT = 128


@cache
def of_huggingface() -> LlamaForCausalLM:
    """It never says that it is done."""
    torch.manual_seed(1)
    config = LlamaConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS // 3, intermediate_size=4 * WIDTH, vocab_size=VOCABULARY,
        max_position_embeddings=4096, bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model: LlamaForCausalLM = LlamaForCausalLM(config).eval()
    return model


def generating(kind: str, *, seen: bool) -> Callable[[Shape], Work]:
    """All that was written, with a cache of this kind, within `attlas.observe` or without."""

    def work(shape: Shape) -> Work:
        model, (batch, more) = of_huggingface(), shape
        prompt = tokens((batch, PROMPT))
        there = PROMPT + more - 1  # the last token asks nothing

        def run() -> Tensor:
            with attlas.observe(model) if seen else nullcontext() as trace:
                written: Tensor = model.generate(
                    prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=more,
                    do_sample=False, cache_implementation=kind,
                )  # fmt: skip
            if trace is not None:
                shapes = {trace[layer].shape for layer in trace.layers}
                assert shapes == {(batch, HEADS, there, there)}, shapes
                assert len(trace.layers) == LAYERS
            return written

        return Work(run, list(model.parameters()))

    return work


def suite(kind: str) -> Suite:
    """One generation that is observed, and the same that is not."""
    return Suite(
        "batch × tokens written",
        {
            "observed": generating(kind, seen=True),
            "not observed": generating(kind, seen=False),
        },
        generating(kind, seen=False),
        quick=((1, 8),),
        more=((1, 32), (1, 256), (8, 128)),
        memory=((8, 128),),
        passes=PASSES[:1],
        blocks=7,
    )


GENERATIONS = {
    "generation": suite("dynamic"),
    "generation, static cache": suite("static"),
}
