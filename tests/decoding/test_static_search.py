"""Greedy search as CUDA graphs, by its twin on a CPU, which calls what a GPU replays."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attlas._hardware import capturable
from attlas.decoding import DecodingConfig, Hypothesis, SearchInput, decode_all, static_search
from attlas.decoding.decode import Bounds
from attlas.decoding.scoring import Constraints, Penalties
from attlas.decoding.static_search import _Buffers, check_static
from attlas.errors import AttlasError
from attlas.models import RecurrentConfig, SequenceToSequence, TransformerConfig, build
from attlas.models.transformer.static_steps import StaticDecoder
from attlas.ops.cuda_graphs import Capture, Replayable
from attlas.ops.topk import largest
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
LENGTHS = tuple(1 + (7 * place) % 19 for place in range(40))
SHORT = {"method": "greedy", "max_len_a": 1.0, "max_len_b": 10}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "penalties": {"length_penalty": 0.6, "coverage_penalty": 0.3},
    "no repeats": {"no_repeat_ngram": 2, "min_length": 4},
    "one token": {"no_repeat_ngram": 1, "unknown": "forbid"},
    "cut": {"max_len_a": 0.5, "max_len_b": 1},
}


@cache
def model_of(name: str, dtype: torch.dtype) -> Any:
    """A random model whose predictions are as far apart as those of a trained one."""
    torch.manual_seed(len(name))
    model: Any = build(
        TransformerConfig(
            embed_dim=16, num_heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=2,
            **MODELS[name],
        ),
        60,
        40,
    )  # fmt: skip
    with torch.no_grad():
        for part in (model.source_embedding, model.target_embedding):
            assert part is not None
            part.weight.mul_(4.0 / model.scale / part.weight.std())
    return model.eval().to(dtype)


def batches(size: int, prefixes: bool = False, lengths: tuple[int, ...] = LENGTHS) -> Any:
    generator = torch.Generator().manual_seed(1)
    sources = [torch.randint(4, 60, (n,), generator=generator).tolist() for n in sorted(lengths)]
    for start in range(0, len(sources), size):
        group = sources[start : start + size]
        begun = [[5 + place, 7][: place % 3] for place in range(len(group))]
        yield SearchInput.of(group, torch.device("cpu"), begun if prefixes else None)


@pytest.fixture(autouse=True)
def twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what needs CUDA take place on a CPU, with few rows, so that they are filled anew."""

    def check(model: Any, device: torch.device) -> Any:
        assert StaticDecoder.check(model)
        return model

    module = import_module("attlas.decoding.decode")  # the package has a function of this name
    monkeypatch.setattr(module, "check_static", check)
    monkeypatch.setattr(static_search, "_ROWS", 7)
    monkeypatch.setattr(static_search, "_ROUND", 3)


def both(
    model: SequenceToSequence[Any], inputs: list[SearchInput], settings: dict[str, Any]
) -> tuple[list[Hypothesis], list[Hypothesis]]:
    """What the static search finds, and what the ordinary one does."""
    found, wanted = (
        [
            hypothesis
            for batch in decode_all(model, inputs, DecodingConfig(**given))
            for (hypothesis,) in batch
        ]
        for given in ({**SHORT, **settings, "cuda_graphs": True}, {**SHORT, **settings})
    )
    return found, wanted


def check_same(found: list[Hypothesis], wanted: list[Hypothesis], atol: float) -> None:
    assert [one.tokens for one in found] == [one.tokens for one in wanted]
    assert [one.finished for one in found] == [one.finished for one in wanted]
    for name in ("score", "log_probability"):
        ours, theirs = ([getattr(one, name) for one in part] for part in (found, wanted))
        assert ours == pytest.approx(theirs, abs=atol, rel=0.0)


@pytest.mark.parametrize("prefixes", [False, True], ids=["free", "prefixes"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_both_searches_find_the_same(name: str, way: str, prefixes: bool) -> None:
    for dtype, atol in ((torch.float32, 2e-5), (torch.float64, 1e-10)):
        inputs = list(batches(11, prefixes))
        if prefixes and way == "cut":
            inputs = list(batches(11, prefixes, tuple(n + 2 for n in LENGTHS)))
        found, wanted = both(model_of(name, dtype), inputs, WAYS[way])
        assert len(found) == len(LENGTHS)
        check_same(found, wanted, atol)


def test_these_searches_end_in_both_ways_at_many_lengths() -> None:
    _, wanted = both(model_of("plain", torch.float64), list(batches(11)), {})
    assert {one.finished for one in wanted} == {True, False}
    assert len({len(one.tokens) for one in wanted}) > 5


def test_rows_are_filled_anew_and_the_shapes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[Callable[[], None]] = []
    begun: list[int] = []
    capture, begin = Capture.__call__, StaticDecoder.begin

    def captured(self: Capture, work: Callable[[], None]) -> Replayable:
        works.append(work)
        return capture(self, work)

    def counted(self: StaticDecoder, rows: torch.Tensor, *parts: Any) -> None:
        begun.extend(rows.tolist())
        begin(self, rows, *parts)

    monkeypatch.setattr(Capture, "__call__", captured)
    monkeypatch.setattr(StaticDecoder, "begin", counted)
    found, wanted = both(model_of("plain", torch.float64), list(batches(11)), {})
    check_same(found, wanted, 1e-10)
    assert len(begun) == len(LENGTHS)
    assert set(begun) == set(range(7))
    assert 1 < len(works) < 16


def test_long_texts_get_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_search, "_BYTES", 40_000)
    found, wanted = both(model_of("plain", torch.float64), list(batches(11)), {})
    check_same(found, wanted, 1e-10)


class NoHost(TorchDispatchMode):
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
    model: Any = build(
        TransformerConfig(
            embed_dim=16, num_heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=2,
            **MODELS[name],
        ),
        60,
        4000,
    ).eval().to("meta")  # fmt: skip
    ids = torch.ones(5, 9, dtype=torch.long, device="meta")
    with capturable():
        state: Any = model.encode_for_search(ids, ids.bool())
    decoder = StaticDecoder(model, state, 5, 12, 20)
    constraints = Constraints(ids[:, :2], ids[:, 0], config.min_length, config.no_repeat_ngram)
    penalties = Penalties(config.length_penalty, config.coverage_penalty)
    buffers = _Buffers(decoder, constraints, 2, penalties)

    def refused(*values: Any, **keywords: Any) -> torch.Tensor:
        raise AssertionError("torch.tensor copies from the host")

    with capturable(), NoHost(), monkeypatch.context() as patched:
        patched.setattr(torch, "tensor", refused)
        patched.setattr(torch, "autocast", lambda *given, **more: nullcontext())  # not of "meta"
        buffers.step(12, 16)
    with pytest.raises(RuntimeError, match="meta"):
        buffers.step(12, 16)  # `largest` asks whether there are equals, outside of a capture


def test_the_largest_are_the_same_where_nothing_may_be_asked() -> None:
    values = torch.randint(0, 4, (50, 400), generator=torch.Generator().manual_seed(2)).float()
    for count in (1, 3, 6):
        wanted = largest(values, count)
        with capturable():
            found = largest(values, count)
        assert all(map(torch.equal, found, wanted))


def test_nan_is_told() -> None:
    model: Any = build(
        TransformerConfig(
            embed_dim=16, num_heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=1
        ),
        60,
        40,
    ).eval()
    with torch.no_grad():
        model.output.bias.fill_(float("nan"))
    with pytest.raises(AttlasError, match="logits that are numbers"):
        decode_all(model, list(batches(11)), DecodingConfig(**SHORT, cuda_graphs=True))


def test_a_prefix_outside_of_the_vocabulary_is_told() -> None:
    inputs = [SearchInput.of([[5, 6]], torch.device("cpu"), [[4, 77]])]
    with pytest.raises(AttlasError, match="the id 77"):
        both(model_of("plain", torch.float32), inputs, {})


def test_an_observed_search_is_an_ordinary_one_and_says_so() -> None:
    model, inputs = model_of("plain", torch.float64), list(batches(11))
    wanted = decode_all(model, inputs, DecodingConfig(**SHORT))
    with (
        observe(model) as trace,
        pytest.warns(UserWarning, match="runs without decoding.cuda_graphs"),
    ):
        found = decode_all(model, inputs, DecodingConfig(**SHORT, cuda_graphs=True))
    assert [[one.tokens for (one,) in batch] for batch in found] == [
        [one.tokens for (one,) in batch] for batch in wanted
    ]
    assert len(trace)


def test_progress_and_steps_are_told() -> None:
    steps: list[int] = []
    ended: list[int] = []
    decode_all(
        model_of("plain", torch.float32),
        list(batches(11)),
        DecodingConfig(**SHORT, cuda_graphs=True),
        Bounds(before_step=lambda: steps.append(1)),
        on_ended=ended.append,
    )
    assert steps
    assert sum(ended) == len(LENGTHS)


@pytest.mark.parametrize("method", ["beam", "sample"])
def test_other_searches_are_refused(method: str) -> None:
    with pytest.raises(AttlasError, match="method = 'greedy'"):
        DecodingConfig(method=method, cuda_graphs=True)


def test_what_cannot_be_captured_is_refused() -> None:
    model = build(RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=4), 60, 40)
    with pytest.raises(AttlasError, match="a CUDA device"):
        check_static(model, torch.device("cpu"))
    with pytest.raises(AttlasError, match="a Transformer"):
        check_static(model, torch.device("cuda"))
