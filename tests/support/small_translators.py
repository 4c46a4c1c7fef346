"""Small random translators of characters, for the tests."""

from typing import Any

import torch

from attlas.data import Characters, Vocabularies
from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from attlas.models import RecurrentConfig, TransformerConfig, build

TEXT = "the cat sat"


def small_translator(
    attention: str = "transformer",
    *,
    text: str = TEXT,
    seed: int = 1,
    model: dict[str, Any] | None = None,
    **search: Any,
) -> Translator:
    """A Transformer, or a recurrent model with another attention, whose weights are random.

    Args:
        attention: "transformer", or the attention of a recurrent model.
        text: The vocabulary has its characters.
        seed: Of the weights.
        model: Settings of the model, in place of those here.
        search: Settings of decoding.
    """
    torch.manual_seed(seed)
    characters = Characters.built([text], size=64)
    config: Any
    if attention == "transformer":
        sizes = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 8, "encoder_layers": 1}
        config = TransformerConfig.read({**sizes, "decoder_layers": 1, **(model or {})}, "a test")
    else:
        sizes = {"embed_dim": 8, "hidden_dim": 8, "encoder_hidden_dim": 4}
        own = {**sizes, "attention": attention, **(model or {})}
        config = RecurrentConfig.read(own, "a test")
    built = build(config, len(characters), len(characters))
    vocabularies = Vocabularies(characters, characters)
    return Translator.of(built, vocabularies, DecodingConfig.read(search, "a test"))
