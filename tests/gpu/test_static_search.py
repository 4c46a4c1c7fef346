"""Searches as CUDA graphs: those without find the same, and the graphs are few and kept."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
import torch

from attlas.data.vocabulary import END
from attlas.decoding import DecodingConfig, Hypothesis, SearchInput, decode_all, static_search
from attlas.models import TransformerConfig, build
from attlas.ops.cuda_graphs import Capture, Replayable

CUDA = torch.device("cuda")
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {"positions": "rotary", "num_kv_heads": 1, "norm_type": "rms", "qk_norm": True},
    "learned": {"positions": "learned", "max_positions": 40, "norm": "post"},
    "window": {"decoder_patterns": ["window(2)"]},
}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "greedy", "no_repeat_ngram": 3},
    "greedy, coverage": {"method": "greedy", "coverage_penalty": 0.3},
    "beam": {"num_beams": 5},
    "beam, list": {"num_beams": 5, "n_best": 4, "coverage_penalty": 0.2, "min_length": 2},
    "beam, exhaustive": {"num_beams": 3, "n_best": 3, "exhaustive": True},
}


def model_of(name: str, dtype: torch.dtype) -> Any:
    torch.manual_seed(len(name))
    config = TransformerConfig(
        embed_dim=64, num_heads=2, ffn_dim=64, encoder_layers=1, decoder_layers=2,
        tie_output=False, **MODELS[name],
    )  # fmt: skip
    model: Any = build(config, 60, 500).eval()
    with torch.no_grad():
        for part in (model.source_embedding, model.target_embedding):
            part.weight.mul_(1.0 / model.scale / part.weight.std())
        model.output.weight.mul_(0.5 / model.output.weight.std())
        model.output.bias[END] += 3.0
    return model.to(CUDA, dtype)


def batches(count: int, prefixes: bool) -> Iterator[SearchInput]:
    generator = torch.Generator().manual_seed(1)
    lengths = sorted(1 + (7 * place) % 23 for place in range(count))
    for start in range(0, count, 40):
        group = [
            torch.randint(4, 60, (length,), generator=generator).tolist()
            for length in lengths[start : start + 40]
        ]
        begun = [[5 + place, 7][: place % 3] for place in range(len(group))]
        yield SearchInput.of(group, CUDA, begun if prefixes else None)


def found_by(
    model: Any, settings: dict[str, Any], count: int = 150, prefixes: bool = False
) -> list[list[Hypothesis]]:
    config = DecodingConfig(**{"max_len_a": 1.0, "max_len_b": 10, **settings})
    return list(chain(*decode_all(model, list(batches(count, prefixes)), config)))


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_search, "_ROWS", 64)


@pytest.mark.parametrize("prefixes", [False, True], ids=["free", "prefixes"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_both_searches_find_the_same(name: str, way: str, prefixes: bool) -> None:
    model = model_of(name, torch.float64)
    found = found_by(model, WAYS[way] | {"cuda_graphs": True}, prefixes=prefixes)
    wanted = found_by(model, WAYS[way], prefixes=prefixes)
    assert len(found) == len(wanted) == 150
    for ours, theirs in zip(found, wanted, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        for name_ in ("score", "log_probability"):
            numbers = [getattr(one, name_) for one in ours]
            assert numbers == pytest.approx([getattr(one, name_) for one in theirs], abs=1e-9)


@pytest.mark.parametrize("autocast", ["none", "bf16", "fp16"])
@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_other_numbers_find_nearly_the_same(way: str, autocast: str) -> None:
    if autocast == "bf16" and not torch.cuda.is_bf16_supported(False):
        pytest.skip("this GPU has no bfloat16")
    model, settings = model_of("plain", torch.float32), WAYS[way] | {"autocast": autocast}
    found = found_by(model, settings | {"cuda_graphs": True})
    wanted = found_by(model, settings)
    same = [ours[0].tokens == theirs[0].tokens for ours, theirs in zip(found, wanted, strict=True)]
    assert sum(same) >= (0.97 if autocast == "none" else 0.6) * len(same)  # ties by rounding
    for ours, theirs, is_same in zip(found, wanted, same, strict=True):
        if is_same:
            tolerance = 1e-4 if autocast == "none" else 0.1
            assert ours[0].log_probability == pytest.approx(
                theirs[0].log_probability, abs=tolerance, rel=tolerance
            )


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_graphs_are_kept_and_read_the_weights_of_today(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    works: list[Callable[[], None]] = []
    capture = Capture.__call__

    def counted(self: Capture, work: Callable[[], None]) -> Replayable:
        works.append(work)
        return capture(self, work)

    monkeypatch.setattr(Capture, "__call__", counted)
    model, settings = model_of("plain", torch.float64), WAYS[way] | {"cuda_graphs": True}
    first = found_by(model, settings)
    assert 0 < len(works) <= 6
    works.clear()
    assert found_by(model, settings) == first
    with torch.no_grad():
        model.output.bias[7] += 2.0
    changed = found_by(model, settings)
    assert not works
    assert [one[0].tokens for one in changed] == [
        one[0].tokens for one in found_by(model, WAYS[way])
    ]
    assert changed != first
