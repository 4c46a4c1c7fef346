"""Searches as CUDA graphs, by their twin on a CPU, which calls what a GPU replays."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attlas._hardware import capturable
from attlas.data.vocabulary import END
from attlas.decoding import DecodingConfig, Hypothesis, SearchInput, decode_all, static_search
from attlas.decoding.decode import Bounds
from attlas.decoding.scoring import Constraints
from attlas.decoding.static_beams import BeamRows
from attlas.decoding.static_rows import GreedyRows
from attlas.decoding.static_search import check_static
from attlas.decoding.surface import Hashes, Surface
from attlas.errors import AttlasError
from attlas.models import RecurrentConfig, TransformerConfig, build
from attlas.models.transformer.static_steps import StaticDecoder
from attlas.ops.cuda_graphs import Capture, Replayable
from attlas.ops.linear import bf16_matmul, is_bf16_matmul
from attlas.ops.topk import largest
from attlas.patterns import both, causal, landmarks, window
from attlas.recording import observe

MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {
        "positions": "rotary", "num_kv_heads": 1, "norm_type": "rms", "activation": "swiglu",
        "qk_norm": True,
    },
    "learned": {"positions": "learned", "max_positions": 24, "norm": "post"},
    "window": {"decoder_patterns": ["window(2)"]},
}  # fmt: skip
OF_END = {"plain": 0.0, "rotary": 3.0, "learned": 1.0, "window": 0.0}  # by how much it is likelier
LENGTHS = tuple(1 + (7 * place) % 19 for place in range(40))
SHORT = {"max_len_a": 1.0, "max_len_b": 10}
SINGLE = 1e-5
GREEDY = {"method": "greedy"}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": GREEDY,
    "greedy, penalties": GREEDY | {"length_penalty": 0.6, "coverage_penalty": 0.3},
    "greedy, no repeats": GREEDY | {"no_repeat_ngram": 2, "min_length": 4},
    "greedy, no token twice": GREEDY | {"no_repeat_ngram": 1, "unknown": "forbid"},
    "greedy, cut": GREEDY | {"max_len_a": 0.5, "max_len_b": 2},
    "beam of one": {"num_beams": 1, "length_penalty": 0.0},
    "beam": {"num_beams": 5},
    "beam, list": {"num_beams": 5, "n_best": 4, "coverage_penalty": 0.2},
    "beam, exhaustive": {"num_beams": 3, "n_best": 3, "exhaustive": True, "length_penalty": 2.0},
    "beam, no repeats": {"num_beams": 4, "n_best": 2, "no_repeat_ngram": 2, "min_length": 4},
    "beam, cut": {"num_beams": 4, "n_best": 3, "max_len_a": 0.5, "max_len_b": 2},
}


def sized(name: str, size: int = 40) -> Any:
    config = TransformerConfig(
        embed_dim=16, num_heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=2,
        tie_output=False, **MODELS[name],
    )  # fmt: skip
    return build(config, 60, size).eval()


@cache
def model_of(name: str, dtype: torch.dtype) -> Any:
    """A random model whose predictions are as far apart as those of a trained one, and which ends
    some sentences.
    """
    torch.manual_seed(len(name))
    model = sized(name)
    with torch.no_grad():
        for part in (model.source_embedding, model.target_embedding):
            part.weight.mul_(1.0 / model.scale / part.weight.std())
        model.output.weight.mul_(1.0 / model.output.weight.std())
        model.output.bias[END] += OF_END[name]
    return model.to(dtype)


def batches(size: int = 11, prefixes: bool = False) -> Iterator[SearchInput]:
    generator = torch.Generator().manual_seed(1)
    sources = [torch.randint(4, 60, (n,), generator=generator).tolist() for n in sorted(LENGTHS)]
    for start in range(0, len(sources), size):
        group = sources[start : start + size]
        begun = [[5 + place, 7][: place % 3] for place in range(len(group))]
        yield SearchInput.of(group, torch.device("cpu"), begun if prefixes else None)


@pytest.fixture(autouse=True)
def twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what needs CUDA take place on a CPU, in few places, so that they are filled anew."""

    def check(model: Any, device: torch.device) -> Any:
        assert StaticDecoder.check(model)
        return model

    module = import_module("attlas.decoding.decode")  # the package has a function of this name
    monkeypatch.setattr(module, "check_static", check)
    monkeypatch.setattr(static_search, "_ROWS", 21)
    monkeypatch.setattr(static_search, "_ROUND", 3)


def found_by(
    model: Any, settings: dict[str, Any], prefixes: bool = False, surface: Any = None
) -> list[list[Hypothesis]]:
    config = DecodingConfig(**{**SHORT, **settings})
    return list(chain(*decode_all(model, list(batches(11, prefixes)), config, surface=surface)))


def check_same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]], atol: float) -> None:
    """The same but for rounding, which in float32 is larger in a sum of many tokens."""
    relative = 1e-6 if atol == SINGLE else 0.0
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.finished for one in ours] == [one.finished for one in theirs]
        for name in ("score", "log_probability"):
            numbers = [getattr(one, name) for one in ours]
            assert numbers == pytest.approx(
                [getattr(one, name) for one in theirs], abs=atol, rel=relative
            )


# The same hypotheses.


@pytest.mark.sampled(24)
@pytest.mark.parametrize("prefixes", [False, True], ids=["free", "prefixes"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_both_searches_find_the_same(name: str, way: str, prefixes: bool) -> None:
    for dtype, atol in ((torch.float32, SINGLE), (torch.float64, 1e-10)):
        model = model_of(name, dtype)
        found = found_by(model, WAYS[way] | {"cuda_graphs": True}, prefixes)
        check_same(found, found_by(model, WAYS[way], prefixes), atol)


@pytest.mark.parametrize("way", ["greedy", "beam, list"])
@pytest.mark.parametrize("name", MODELS)
def test_these_models_end_some_sentences_and_not_others(name: str, way: str) -> None:
    wanted = found_by(model_of(name, torch.float64), WAYS[way])
    assert len(wanted) == len(LENGTHS)
    assert {one.finished for one in chain(*wanted)} == {True, False}
    assert len({len(found[0].tokens) for found in wanted}) > 5
    assert len({found[0].tokens for found in wanted}) > 15


class Spelling(Surface):
    """A surface on which every fourth token reads alike; `hashed`: which the step sees."""

    def __init__(self, *, hashed: bool) -> None:
        read = torch.arange(40) % 10 + 1
        power = torch.full((40,), 31)
        self._of_tokens = Hashes(read + 100, read, power) if hashed else None

    @property
    def hashes(self) -> Hashes | None:  # type: ignore[override]
        return self._of_tokens

    def text(self, tokens: Any) -> str:
        return " ".join(str(token % 10) for token in tokens)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("way", ["beam, list", "beam, exhaustive", "beam, cut"])
def test_the_texts_of_a_list_are_different(way: str, hashed: bool) -> None:
    model, surface = model_of("plain", torch.float64), Spelling(hashed=hashed)
    found = found_by(model, WAYS[way] | {"cuda_graphs": True}, surface=surface)
    check_same(found, found_by(model, WAYS[way], surface=surface), 1e-10)
    for hypotheses in found:
        texts = [surface.text(one.tokens) for one in hypotheses]
        assert len(set(texts)) == len(texts)


def test_products_of_bfloat16_are_those_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    halves: list[bool] = []
    step = GreedyRows.step

    def watched(self: GreedyRows, *lengths: int) -> None:
        halves.append(is_bf16_matmul())
        step(self, *lengths)

    monkeypatch.setattr(GreedyRows, "step", watched)
    model = sized("plain")
    for autocast, outside, wanted in (
        ("none", False, False),
        ("bf16", False, True),
        ("none", True, True),
    ):
        halves.clear()
        with bf16_matmul(outside):
            found_by(model, GREEDY | {"autocast": autocast, "cuda_graphs": True})
        assert set(halves) == {wanted}


# All places in use.


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_places_are_filled_anew_and_the_shapes_are_few(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    works: list[Callable[[], None]] = []
    begun: list[int] = []
    capture, begin = Capture.__call__, StaticDecoder.begin

    def captured(self: Capture, work: Callable[[], None]) -> Replayable:
        works.append(work)
        return capture(self, work)

    def counted(self: StaticDecoder, places: torch.Tensor, *parts: Any) -> None:
        begun.extend(places.tolist())
        begin(self, places, *parts)

    monkeypatch.setattr(Capture, "__call__", captured)
    monkeypatch.setattr(StaticDecoder, "begin", counted)
    model = sized("plain")
    first = found_by(model, WAYS[way] | {"cuda_graphs": True})
    assert len(begun) == len(LENGTHS)
    assert set(begun) == set(range(21 if way == "greedy" else 4))
    assert 1 < len(works) <= 4  # 16 and 32 on each side
    works.clear()
    again = found_by(model, WAYS[way] | {"cuda_graphs": True})
    assert not works  # buffers and graphs were kept
    check_same(again, first, 0.0)


def left_padded(width: int) -> list[SearchInput]:
    """Sources whose tokens stand at the right, one with a hole."""
    generator = torch.Generator().manual_seed(3)
    source = torch.randint(4, 60, (6, width), generator=generator)
    token_mask = torch.arange(width) >= torch.tensor([[0], [3], [width - 4], [7], [1], [2]])
    token_mask[0, 5] = False
    return [SearchInput(source.masked_fill(~token_mask, 0), token_mask)]


@pytest.mark.parametrize("way", ["greedy, penalties", "beam, list"])
def test_sources_may_be_padded_at_the_left(way: str) -> None:
    model, inputs = model_of("plain", torch.float64), left_padded(40)
    found, wanted = (
        list(chain(*decode_all(model, inputs, DecodingConfig(**{**SHORT, **WAYS[way], **more}))))
        for more in ({"cuda_graphs": True}, {})
    )
    check_same(found, wanted, 1e-10)


def test_a_smaller_search_uses_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[StaticDecoder] = []
    create = StaticDecoder.__init__

    def counted(self: StaticDecoder, *given: Any) -> None:
        made.append(self)
        create(self, *given)

    monkeypatch.setattr(StaticDecoder, "__init__", counted)
    model = sized("plain").double()
    searches: tuple[tuple[list[int], int, int], ...] = (
        ([18], 0, 1), ([3, 9], 0, 1), ([17, 2], 0, 1), ([40], 0, 2), ([5], 0, 2), ([5], 2, 3),
        ([4], 1, 3),
    )  # fmt: skip
    for lengths, prefix, buffers in searches:
        ids = [[5 + (3 * place + n) % 50 for place in range(n)] for n in lengths]
        inputs = [SearchInput.of(ids, torch.device("cpu"), [[7, 8][:prefix]] * len(ids))]
        found, wanted = (
            list(chain(*decode_all(model, inputs, DecodingConfig(**SHORT, **settings))))
            for settings in (GREEDY | {"cuda_graphs": True}, GREEDY)
        )
        check_same(found, wanted, 1e-10)
        assert len(made) == buffers


def test_a_pattern_that_was_changed_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph would hold on to the old one, so the buffers are made anew."""
    captures: list[Callable[[], None]] = []
    capture = Capture.__call__

    def counted(self: Capture, work: Callable[[], None]) -> Replayable:
        captures.append(work)
        return capture(self, work)

    monkeypatch.setattr(Capture, "__call__", counted)
    model, settings = sized("plain").double(), GREEDY | {"cuda_graphs": True}
    found_by(model, settings)
    for change in (
        lambda: setattr(model.decoder.layers[0].self_attention, "pattern", both(causal, window(1))),
        lambda: setattr(model.decoder.layers[1].cross_attention, "scale", 0.1),
    ):
        captures.clear()
        change()
        check_same(found_by(model, settings), found_by(model, GREEDY), 1e-10)
        assert captures


def test_weights_that_were_trained_on_are_used_and_moved_ones_too() -> None:
    model = sized("plain").double()
    settings = GREEDY | {"cuda_graphs": True}
    found_by(model, settings)
    with torch.no_grad():
        model.output.bias[7] += 3.0
    check_same(found_by(model, settings), found_by(model, GREEDY), 1e-10)
    model.output.bias = torch.nn.Parameter(torch.zeros_like(model.output.bias))
    check_same(found_by(model, settings), found_by(model, GREEDY), 1e-10)


def test_a_search_that_was_ended_leaves_nothing_behind() -> None:
    model, settings = model_of("plain", torch.float64), GREEDY | {"cuda_graphs": True}
    steps: list[int] = []

    def stop() -> None:
        steps.append(1)
        if len(steps) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode_all(
            model, list(batches()), DecodingConfig(**{**SHORT, **settings}), Bounds(None, stop)
        )
    check_same(found_by(model, settings), found_by(model, GREEDY), 1e-10)


def test_what_is_kept_goes_with_the_model() -> None:
    model = sized("plain")
    found_by(model, GREEDY | {"cuda_graphs": True})
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_long_texts_get_fewer_places(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[int] = []
    create = StaticDecoder.__init__

    def counted(self: StaticDecoder, model: Any, like: Any, sources: int, *parts: Any) -> None:
        places.append(sources)
        create(self, model, like, sources, *parts)

    monkeypatch.setattr(StaticDecoder, "__init__", counted)
    monkeypatch.setattr(static_search, "_BYTES", 100_000)
    model = model_of("plain", torch.float64)
    found = found_by(model, GREEDY | {"cuda_graphs": True})
    check_same(found, found_by(model, GREEDY), 1e-10)
    assert 0 < places[0] < 21


def test_progress_and_steps_are_told() -> None:
    steps: list[int] = []
    ended: list[int] = []
    decode_all(
        model_of("plain", torch.float32),
        list(batches()),
        DecodingConfig(**SHORT, num_beams=2, cuda_graphs=True),
        Bounds(before_step=lambda: steps.append(1)),
        on_ended=ended.append,
    )
    assert len(steps) > max(LENGTHS)
    assert sum(ended) == len(LENGTHS)


# What a graph can capture.


class NoHost(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses what has tensors on two devices: it would be a copy that waits."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        leaves = torch.utils._pytree.tree_leaves((args, kwargs, out))
        devices = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor)}
        assert len(devices) <= 1, f"{func} of {devices}"
        return out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_no_step_asks_for_a_number(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On torch's device "meta" there are shapes and no numbers: to ask for one is an error."""
    config = DecodingConfig(**{**SHORT, **WAYS[way]})
    model = sized(name, 4000).to("meta")
    ids = torch.ones(5, 9, dtype=torch.long, device="meta")
    with capturable():
        state = model.encode_for_search(ids, ids.bool())
    width = config.num_beams if config.method == "beam" else 1
    decoder = StaticDecoder(model, state, 5, width, 16, 32)
    rules = Constraints(ids[:, :2], ids[:, 0], config.min_length, config.no_repeat_ngram)
    given = decoder, config, rules, 2
    surface: Any = Spelling(hashed=True)
    rows = GreedyRows(*given) if config.method == "greedy" else BeamRows(*given, surface)

    def refused(*values: Any, **keywords: Any) -> torch.Tensor:
        raise AssertionError("torch.tensor copies from the host")

    with monkeypatch.context() as patched:
        # "meta" has no autocast.
        patched.setattr(torch, "autocast", lambda *given, **more: nullcontext())
        with capturable(), NoHost(), monkeypatch.context() as inner:
            inner.setattr(torch, "tensor", refused)
            rows.step(16, 16)
        with pytest.raises(RuntimeError, match="meta"):
            rows.step(16, 16)  # outside of a capture `largest` asks whether there are equals


def test_the_largest_are_the_same_where_nothing_may_be_asked() -> None:
    values = torch.randint(0, 4, (50, 400), generator=torch.Generator().manual_seed(2)).float()
    for count in (1, 3, 6):
        wanted = largest(values, count)
        with capturable():
            found = largest(values, count)
        assert all(map(torch.equal, found, wanted))


# What is told, and what is refused.


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_nan_is_told(way: str) -> None:
    model = sized("plain")
    with torch.no_grad():
        model.output.bias.fill_(float("nan"))
    with pytest.raises(AttlasError, match="logits that are numbers"):
        found_by(model, WAYS[way] | {"cuda_graphs": True})


def test_a_prefix_outside_of_the_vocabulary_is_told() -> None:
    inputs = [SearchInput.of([[5, 6]], torch.device("cpu"), [[4, 77]])]
    config = DecodingConfig(**SHORT, cuda_graphs=True)
    with pytest.raises(AttlasError, match="the id 77"):
        decode_all(model_of("plain", torch.float32), inputs, config)


def test_an_observed_search_is_an_ordinary_one_and_says_so() -> None:
    model = model_of("plain", torch.float64)
    wanted = found_by(model, WAYS["beam"])
    told = pytest.warns(UserWarning, match="runs without decoding.cuda_graphs")
    with observe(model) as trace, told:
        found = found_by(model, WAYS["beam"] | {"cuda_graphs": True})
    check_same(found, wanted, 1e-10)
    assert len(trace)


def test_draws_are_refused() -> None:
    with pytest.raises(AttlasError, match="method = 'beam' or 'greedy'"):
        DecodingConfig(method="sample", cuda_graphs=True)


def test_what_cannot_be_captured_is_refused() -> None:
    model = build(RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=4), 60, 40)
    with pytest.raises(AttlasError, match="a CUDA device"):
        check_static(model, torch.device("cpu"))
    with pytest.raises(AttlasError, match="a Transformer"):
        check_static(model, torch.device("cuda"))
    hidden = sized("plain")
    hidden.decoder.layers[0].self_attention.pattern = landmarks(0)
    with pytest.raises(AttlasError, match="other patterns"):
        check_static(hidden, torch.device("cuda"))


@pytest.mark.parametrize("part", ["output", "decoder.layers.1", "decoder.layers.0.self_attention"])
def test_a_hook_anywhere_is_refused_because_a_graph_would_not_call_it(part: str) -> None:
    model = sized("plain")
    assert check_static(model, torch.device("cuda")) is model
    handle = model.get_submodule(part).register_forward_hook(lambda *given: None)
    with pytest.raises(AttlasError, match="without hooks"):
        check_static(model, torch.device("cuda"))
    handle.remove()
    assert check_static(model, torch.device("cuda")) is model
