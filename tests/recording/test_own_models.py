"""Models whose every attention is attlas's own are observed without watching torch's functions."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _get_current_function_mode_stack as modes

from attlas.decoding import DecodingConfig
from attlas.decoding.decode import decode
from attlas.errors import AttlasError
from attlas.models import ClassifierConfig, build_classifier
from attlas.recording import intervene, observe, uniform
from attlas.recording.hooks import has_only_hooked_attention
from attlas.recording.torch_functions import mode
from support import recurrent_kinds, transformer_kinds
from support.written_attention import Calling

SOURCE = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0], [5, 5, 4, 3, 0]])
TOKENS = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]).bool()
TARGET = torch.tensor([[2, 4, 5, 6], [2, 7, 3, 0], [2, 9, 4, 3]])


def classifier(pooling):
    torch.manual_seed(5)
    config = ClassifierConfig(
        embed_dim=8, num_heads=2, ffn_dim=12, layers=2, dropout=0.1, pooling=pooling
    )
    return build_classifier(config, 11, 3)


MODELS = {
    **{
        f"Transformer {name}": (transformer_kinds, kind)
        for name, kind in transformer_kinds.KINDS.items()
    },
    **{
        f"recurrent {name}": (recurrent_kinds, kind)
        for name, kind in recurrent_kinds.LOOKING.items()
    },
    **{
        f"classifier {pooling}": (None, pooling)
        for pooling in ("mean", "max", "first", "attentive")
    },
}


@pytest.fixture(params=MODELS)
def model(request):
    kinds, kind = MODELS[request.param]
    return classifier(kind) if kinds is None else kinds.made(kind)


def read(model):
    return (
        model(SOURCE, TOKENS)
        if hasattr(model, "pooling")
        else model(SOURCE, TARGET, token_mask=TOKENS)
    )


def search(model):
    if hasattr(model, "pooling"):
        return model(SOURCE, TOKENS)
    config = DecodingConfig(method="beam", num_beams=3, max_len_a=0, max_len_b=5)
    return [[one.tokens for one in text] for text in decode(model, SOURCE, TOKENS, config)]


def observed(model, work, monkeypatch, *, watched):
    """What the work gives, its trace, and how many functions of torch were watched."""
    calls = []
    watching = mode.AttentionMode.__torch_function__

    def counted(self, func, types, args=(), kwargs=None):
        calls.append(func)
        return watching(self, func, types, args, kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(mode.AttentionMode, "__torch_function__", counted)
        if watched:
            patch.setattr(mode, "has_only_hooked_attention", lambda _: False)
        torch.manual_seed(7)
        with observe(model) as trace:
            found = work(model)
    return found, trace, len(calls)


def same(one, other):
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


@pytest.mark.parametrize("training", [False, True])
def test_a_trace_of_an_own_model_is_the_same_with_and_without_the_watch(
    model, training, monkeypatch
):
    model.train(training)
    found, trace, calls = observed(model, read, monkeypatch, watched=False)
    expected, watched, more = observed(model, read, monkeypatch, watched=True)
    assert (calls, more > 50) == (0, True)
    assert same(found, expected)
    assert trace == watched
    assert len(trace) > 0
    torch.manual_seed(7)
    assert torch.equal(read(model), found)


def test_a_trace_of_a_generation_is_the_same_with_and_without_the_watch(model, monkeypatch):
    model.eval()
    with torch.no_grad():
        found, trace, calls = observed(model, search, monkeypatch, watched=False)
        expected, watched, _ = observed(model, search, monkeypatch, watched=True)
    assert calls == 0
    assert same(found, expected)
    assert trace == watched


def test_an_intervention_in_an_own_model_is_the_same_with_and_without_the_watch(model, monkeypatch):
    model.eval()
    with torch.no_grad():
        plain = read(model)
        with intervene(model, uniform):
            assert not modes()
            changed = read(model)
        monkeypatch.setattr(mode, "has_only_hooked_attention", lambda _: False)
        with intervene(model, uniform):
            assert modes()
            assert torch.equal(read(model), changed)
    assert not torch.allclose(changed, plain)


class Written(nn.Module):
    """Attention written out, in the place of a feed-forward network."""

    def forward(self, x, *_):
        return torch.softmax(x @ x.mT / x.shape[-1] ** 0.5, -1) @ x


class Fused(nn.Module):
    def forward(self, x, *_):
        return F.scaled_dot_product_attention(x, x, x)


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True).double()

    def forward(self, x, *_):
        return self.attention(x, x, x)[0]


@pytest.mark.parametrize("foreign", [Written, Fused, Held])
def test_a_foreign_attention_inside_an_own_model_is_found(foreign):
    model = transformer_kinds.made(transformer_kinds.KINDS["pre"]).eval()
    assert has_only_hooked_attention(model)
    model.encoder.layers[1].feed_forward = foreign()
    with observe(model) as trace:
        model(SOURCE, TARGET, token_mask=TOKENS)
    path = "encoder.layers.1.feed_forward" + ".attention" * (foreign is Held)
    assert trace[path].shape[2:] == (5, 5)
    assert {"encoder.layers.1.self_attention", "decoder.layers.1.cross_attention"} < set(trace)


def written(x, *_, **__):
    return torch.softmax(x @ x.mT, -1) @ x


def subclassed(model, monkeypatch):
    kind = type(model.encoder.layers[0].feed_forward)
    mine = type("Mine", (kind,), {"forward": lambda self, x: written(x), "__module__": "mine"})
    model.encoder.layers[0].feed_forward.__class__ = mine


def put_in_place_of_forward(model, monkeypatch):
    model.encoder.layers[0].feed_forward.forward = written


def patched_in_the_class(model, monkeypatch):
    kind = type(model.encoder.layers[0].feed_forward)
    monkeypatch.setattr(kind, "forward", lambda self, x: written(x))


def put_into_a_hook(model, monkeypatch):
    model.encoder.layers[0].feed_forward.register_forward_hook(lambda _, __, out: written(out))


def put_into_a_hook_of_all_modules(model, monkeypatch):
    mine = model.encoder.layers[0].feed_forward
    hook = nn.modules.module.register_module_forward_hook(
        lambda module, _, out: written(out) if module is mine else None
    )
    monkeypatch.setattr(hook, "mine", True, raising=False)
    return hook.remove


@pytest.mark.parametrize(
    "change",
    [
        subclassed,
        put_in_place_of_forward,
        patched_in_the_class,
        put_into_a_hook,
        put_into_a_hook_of_all_modules,
    ],
)
def test_an_own_module_that_somebody_has_changed_is_watched(change, monkeypatch):
    model = transformer_kinds.made(transformer_kinds.KINDS["pre"]).eval()
    undo = change(model, monkeypatch)
    try:
        assert not has_only_hooked_attention(model)
        with observe(model) as trace:
            model(SOURCE, TARGET, token_mask=TOKENS)
    finally:
        if undo:
            undo()
    shapes = [one.shape for path in trace for one in trace.calls(path) if "feed_forward" in path]
    assert shapes, list(trace)
    assert {shape[2:] for shape in shapes} <= {(5, 5), (4, 4)}


def test_own_layers_inside_a_foreign_model_are_heard_beside_what_is_written_there():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = transformer_kinds.made(transformer_kinds.KINDS["pre"])
            self.foreign = Fused()

        def forward(self):
            return self.foreign(self.own(SOURCE, TARGET, token_mask=TOKENS))

    model = Mixed().eval()
    with observe(model.own) as expected:
        model.own(SOURCE, TARGET, token_mask=TOKENS)
    with observe(model) as trace:
        model()
    assert trace["foreign"].shape[2:] == (4, 4)
    for path in expected:
        assert torch.equal(trace[f"own.{path}"].weights(), expected[path].weights())


def test_an_own_model_and_a_foreign_one_are_observed_at_the_same_time():
    own = transformer_kinds.made(transformer_kinds.KINDS["pre"]).eval()
    foreign = Calling(F.scaled_dot_product_attention)
    vectors = torch.randn(3, 1, 2, 5, 4)
    with observe(own) as first:
        with observe(foreign) as second:
            foreign(*vectors)
            own(SOURCE, TARGET, token_mask=TOKENS)
        own(SOURCE, TARGET, token_mask=TOKENS)
        assert not modes()
    assert (list(second), second[""].shape) == ([""], (1, 2, 5, 5))
    assert {len(first.calls(path)) for path in first} == {2}


def test_what_torch_compile_has_made_around_an_own_model_runs_as_written_in_the_block():
    own = transformer_kinds.made(transformer_kinds.KINDS["pre"]).eval()

    @torch.compile(backend="eager")
    def around():
        return own(SOURCE, TARGET, token_mask=TOKENS) * 2

    with torch.no_grad(), observe(own) as trace:
        found = around()
    with torch.no_grad(), observe(own) as plain:
        assert torch.equal(own(SOURCE, TARGET, token_mask=TOKENS) * 2, found)
    assert trace == plain


def test_an_own_model_that_did_not_run_is_reported_and_other_threads_are_not_heard():
    own = transformer_kinds.made(transformer_kinds.KINDS["pre"]).eval()
    reported = "none: no attention layer of Transformer ran; call this model inside the block"

    def elsewhere():
        other = threading.Thread(target=own, args=(SOURCE, TARGET), kwargs={"token_mask": TOKENS})
        other.start()
        other.join()

    with pytest.raises(AttlasError, match=reported), observe(own):
        elsewhere()
