"""Where the time of a search goes."""

import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from matrix_products import report
from search_profile import limits, profiled

from attlas.data import Vocabularies, Words
from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from attlas.models import TransformerConfig, build


def test_the_products_of_a_search_are_seen() -> None:
    words = Words(list("abcdefgh"))
    torch.manual_seed(1)
    config = TransformerConfig(
        embed_dim=16, num_heads=2, ffn_dim=24, encoder_layers=1, decoder_layers=1
    )
    model = build(config, len(words), len(words))
    greedy = DecodingConfig(method="greedy", max_len_a=1.0)
    translator = Translator.of(model, Vocabularies(words, words), greedy)
    seconds, seen = profiled(translator, ["a b", "c d e", "f"], rows=None)
    assert seconds > 0
    reported = report(seen, model.parameters()).splitlines()
    assert any("< 16 × 16 × 24: " in line for line in reported)  # feed-forward, of three rows or so
    assert reported[-1].startswith("all of these: ")


def test_limits_are_those_of_a_search_as_the_command_line_gives_them() -> None:
    config = DecodingConfig.model_validate(limits([1.5, 1.0]))
    assert [config.max_length(size) for size in (0, 2, 5)] == [1, 4, 8]
