"""What cannot be read is told: where, how often and why."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad
from torch.utils.checkpoint import checkpoint

from attlas.errors import AttlasError
from attlas.recording import intervene, observe
from support.written_attention import HIDDEN, QUERIES, Calling, same, vectors


def test_a_softmax_that_is_a_module_is_its_holders():
    class ReadingAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.softmax = nn.Softmax(-1)

        def forward(self, query, key, value):
            weights = self.softmax(query @ key.mT)
            return (weights[..., None] * value[..., None, :, :]).sum(-2)  # a product by hand

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = ReadingAttention(), Calling(F.scaled_dot_product_attention)

        def forward(self, *given):
            return self.one(*given), self.other(*given)

    model = Model()
    with pytest.warns(UserWarning, match=r"cannot read.*\['one'\]"), observe(model) as trace:
        model(*vectors(1, 2, QUERIES, 4))
    assert tuple(trace) == ("other",)


def test_layers_that_were_not_heard_are_reported():
    model = nn.Sequential(Calling(F.scaled_dot_product_attention))
    model.forward = lambda *given: model[0](*given)
    with (
        pytest.warns(UserWarning, match=r"layers=\['typo'\] match none"),
        observe(model, layers=["0", "typo"]) as trace,
    ):
        model(*vectors(1, 2, QUERIES, 4))
    assert list(trace) == ["0"]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_scripted_model_says_that_nobody_can_hear_it():
    scripted = torch.jit.trace(nn.Softmax(-1), torch.zeros(2, 3))
    with pytest.raises(AttlasError, match="scripted"), observe(scripted):
        pass


def test_a_forward_that_was_compiled_says_so():
    model = Calling(F.scaled_dot_product_attention)
    model.forward = torch.compile(model.forward, backend="eager")
    with pytest.raises(AttlasError, match="compiled"), observe(model):
        pass


def test_a_softmax_that_no_product_follows_is_reported():
    model = Calling(lambda scores, values: (scores.softmax(-1)[..., None] * values).sum(-2))
    with pytest.raises(AttlasError, match="without a product with values after it"), observe(model):
        model(torch.randn(2, 3, 5), torch.randn(2, 3, 5, 4))


def test_a_distribution_over_a_table_is_no_attention():
    table = nn.Embedding(11, 4)

    class Soft(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = table

        def forward(self, logits):
            return logits.softmax(-1) @ self.table.weight

    model = Soft()
    with pytest.raises(AttlasError, match="at least one attention call"), observe(model):
        model(torch.randn(2, 3, 11))


class LocalAttention(nn.Module):
    """Reads some softmaxes by a product with values, and others by a sum that nobody knows."""

    def __init__(self, known, unknown):
        super().__init__()
        self.known, self.unknown = known, unknown

    def forward(self, query, key, value):
        weights = [(query @ key.mT).softmax(-1) for _ in range(self.known + self.unknown)]
        read = [one @ value for one in weights[: self.known]]
        summed = [
            (one[..., None] * value[..., None, :, :]).sum(-2) for one in weights[self.known :]
        ]
        return sum(read + summed)


@pytest.mark.parametrize("known", [0, 1, 2])
@pytest.mark.parametrize("unknown", [1, 3])
def test_how_many_softmaxes_of_a_module_could_not_be_read_is_reported(known, unknown):
    model = nn.ModuleList([Calling(F.scaled_dot_product_attention), LocalAttention(known, unknown)])
    model.forward = lambda *given: [layer(*given) for layer in model]
    reported = rf"not in the trace: \['1'\] \({unknown} × each\): a softmax that is not multiplied"
    with pytest.warns(UserWarning, match=reported), observe(model) as trace:
        model(*vectors(1, 2, QUERIES, 4))
    assert [len(trace.calls(layer)) for layer in trace] == [1, known][: 1 + bool(known)]


def test_what_was_read_is_not_reported_as_unread_whoever_was_to_keep_it(recwarn):
    model = nn.ModuleList([LocalAttention(2, 0), LocalAttention(1, 1)])
    model.forward = lambda *given: [layer(*given) for layer in model]
    with observe(model, layers="0", last_calls=1):
        model(*vectors(1, 2, QUERIES, 4))
    assert not recwarn.list


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_backward_pass_computes_again_is_not_counted_again(reentrant):
    layer = LocalAttention(1, 1)
    model = Calling(lambda *given: checkpoint(layer, *given, use_reentrant=reentrant))
    model.layer = layer
    given = vectors(1, 2, QUERIES, 4).requires_grad_().unbind()
    with pytest.warns(UserWarning, match=r"\['layer'\] \(1 × each\)"), observe(model) as trace:
        model(*given).sum().backward()
    assert len(trace.calls("layer")) == 1


def written(query, key, value):
    scores = (query @ key.mT / 2).masked_fill(HIDDEN, -1e9)
    return scores.softmax(-1) @ value


def fused(query, key, value):
    mask = (key[..., :1].mT > 0) | ~HIDDEN  # which differs from text to text
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@pytest.mark.parametrize("function", [written, fused])
@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_call_inside_vmap_runs_as_it_would_and_is_reported(function, derived):
    model = Calling(function)
    given = vectors(3, 2, QUERIES, 4)
    called = grad(lambda *given: model(*given).sum()) if derived else model
    plain = torch.func.vmap(called)(*given)
    seen = []
    reported = r"\[''\] \(1 × each\): a call inside torch.func.vmap.*call it without vmap"
    with pytest.raises(AttlasError, match=reported), observe(model):
        seen.append(torch.func.vmap(called)(*given))
    assert torch.equal(seen[0], plain)
    with pytest.raises(AttlasError, match="in layer ''; got a call inside"), intervene(model, same):
        torch.func.vmap(called)(*given)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_call_beside_one_inside_vmap_is_in_the_trace():
    model, given = Calling(fused), vectors(3, 2, QUERIES, 4)
    model.forward = lambda *given: (fused(*given), torch.func.vmap(fused)(*given))
    with pytest.warns(UserWarning, match=r"inside torch\.func\.vmap"), observe(model) as trace:
        model(*given)
    assert trace[""].shape == (3, 2, QUERIES, QUERIES)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_scale_of_each_model_of_many_is_no_number():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.rand(()))

        def forward(self, query, key, value):
            return (query @ key.mT * self.scale).softmax(-1) @ value

    models = [Scaled() for _ in range(3)]
    state = torch.func.stack_module_state(models)
    given = tuple(vectors(2, 2, QUERIES, 4))
    seen = []
    many = torch.func.vmap(lambda *own: torch.func.functional_call(models[0], own, given))
    with pytest.raises(AttlasError, match=r"inside torch\.func\.vmap"), observe(models[0]):
        seen.append(many(*state))
    torch.testing.assert_close(seen[0], torch.stack([model(*given) for model in models]))


@pytest.mark.parametrize("function", [written, fused])
def test_a_functional_call_and_a_gradient_are_read_as_any_call(function):
    model = nn.Sequential(nn.Linear(4, 4), Calling(function))
    model.forward = lambda query, *rest: model[1](model[0](query), *rest)
    query, key, value = vectors(2, 2, QUERIES, 4)
    own = {"0.weight": torch.eye(4) * 2, "0.bias": torch.ones(4)}
    with observe(model) as trace:
        torch.func.functional_call(model, own, (query, key, value))
    with observe(model) as again:
        grad(lambda q: torch.func.functional_call(model, own, (q, key, value)).sum())(query)
    with observe(model[1]) as plain:
        model[1](query * 2 + 1, key, value)
    torch.testing.assert_close(trace["1"].weights(), plain[""].weights())
    torch.testing.assert_close(again["1"].weights(), plain[""].weights())


def nested(*lengths, width=8, **named):
    texts = [vectors(length, width, count=1)[0] for length in lengths]
    return torch.nested.nested_tensor(texts, **named)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_run_as_they_would_and_are_reported():
    texts = nested(3, 5, layout=torch.jagged).unflatten(-1, (2, 4)).transpose(1, 2)
    plain = F.scaled_dot_product_attention(texts, texts, texts)
    model, seen = Calling(F.scaled_dot_product_attention), []
    with pytest.raises(AttlasError, match="a call with nested tensors; pad them"), observe(model):
        seen.append(model(texts, texts, texts))
    for one, other in zip(seen[0].unbind(), plain.unbind(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_in_attention_that_is_written_out_are_reported():
    texts = nested(3, 5)
    model, seen = Calling(lambda text: (text @ text.transpose(1, 2)).softmax(-1) @ text), []
    with pytest.raises(AttlasError, match="a call with nested tensors; pad them"), observe(model):
        seen.append(model(texts))
    for one, text in zip(seen[0].unbind(), texts.unbind(), strict=True):
        torch.testing.assert_close(one, (text @ text.mT).softmax(-1) @ text)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_that_only_the_fast_path_takes_are_refused_with_the_way_out():
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, 1).eval()
    texts = nested(3, 5)
    with torch.no_grad():
        model(texts)
        with (
            pytest.raises(AttlasError, match=r"in layer 'layers.0.self_attn'; got nested.*pad"),
            observe(model),
        ):
            model(texts)


class Beside(nn.Module):
    """Attention that is read, beside some that may not be."""

    def __init__(self, other):
        super().__init__()
        self.read = nn.MultiheadAttention(8, 2, batch_first=True)
        self.other = other

    def forward(self, x, *given):
        return self.read(x, x, x)[0], self.other(*given)


class OverQueries(nn.Module):
    def forward(self, query, key, value):
        return (query @ key.mT).softmax(-2) @ value


class Slots(nn.Module):
    """The queries compete for each key (Locatello et al., 2020)."""

    def forward(self, query, key, value):
        weights = (key @ query.mT).softmax(-1)
        return (weights / weights.sum(-2, keepdim=True)).mT @ value


class TurnedSlots(Slots):
    def forward(self, query, key, value):
        return (value.mT @ (query @ key.mT).softmax(-2).mT).mT


@pytest.mark.parametrize("other", [OverQueries, Slots, TurnedSlots])
def test_a_softmax_over_queries_is_reported(other):
    model = Beside(other())
    reported = r"\['other'\] .*a softmax of the product of two tensors"
    with pytest.warns(UserWarning, match=reported), observe(model) as trace:
        model(torch.randn(1, 5, 8), *torch.randn(3, 1, 2, 4, 8))
    assert tuple(trace) == ("read",)


def summed(weights, sampled):
    """As Deformable DETR is written."""
    return (weights[..., None] * sampled).sum(-2)


def by_einsum(weights, sampled):
    return torch.einsum("bhqp,bhqpd->bhqd", weights, sampled)


class DeformableAttention(nn.Module):
    """Weights of points beside each query, in a map of 3 × 4 values (Zhu et al., 2021)."""

    def __init__(self, read):
        super().__init__()
        self.offsets, self.weights = nn.Linear(8, 2 * 3 * 2), nn.Linear(8, 2 * 3)
        self.read = read

    def forward(self, query, values):
        batch, queries, _ = query.shape
        grid = self.offsets(query).view(batch, queries, 2, 3, 2).transpose(1, 2).tanh()
        weights = self.weights(query).view(batch, queries, 2, 3).transpose(1, 2).softmax(-1)
        maps = values.view(batch, 3, 4, 2, 4).permute(0, 3, 4, 1, 2).flatten(0, 1)
        sampled = F.grid_sample(maps, grid.flatten(0, 1), align_corners=False)
        return self.read(weights, sampled.permute(0, 2, 3, 1).unflatten(0, (batch, 2)))


@pytest.mark.parametrize("read", [summed, by_einsum])
def test_attention_to_sampled_points_is_reported_to_have_no_axis_of_keys(read):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.sampling = DeformableAttention(read)
            self.plain = Calling(F.scaled_dot_product_attention)

        def forward(self, query, values, *given):
            return self.sampling(query, values), self.plain(*given)

    given = torch.randn(2, 5, 8), torch.randn(2, 12, 8)
    alone = DeformableAttention(read)
    reported = (
        r"cannot read: \[''\] \(1 × each\): .*sampled points \(deformable attention\).*no axis of"
    )
    with pytest.raises(AttlasError, match=reported), observe(alone):
        alone(*given)
    model = Model()
    reported = (
        r"cannot read.*\['sampling'\] \(1 × each\): .*sampled points \(deformable attention\)"
    )
    with pytest.warns(UserWarning, match=reported), observe(model) as trace:
        model(*given, *vectors(1, 2, QUERIES, 4))
    assert tuple(trace) == ("plain",)
