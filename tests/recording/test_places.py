"""Where a model looks from: which text, which heads, and which keys are no keys of a text."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from attlas.errors import AttlasError
from attlas.recording import intervene, observe
from support.written_attention import QUERIES, Calling, same, vectors


class ManyHeads(nn.Module):
    """Two heads, folded into the axis of texts or one by one."""

    def __init__(self, one_by_one, fused):
        super().__init__()
        self.num_heads, self.embed_dim = 2, 8
        self.to_q = nn.Linear(8, 8)
        self.one_by_one, self.fused = one_by_one, fused

    def look(self, query):
        if self.fused:
            return F.scaled_dot_product_attention(query, query, query, scale=1.0)
        return (query @ query.mT).softmax(-1) @ query

    def forward(self, source):
        query = self.to_q(source).unflatten(-1, (2, 4))
        if self.one_by_one:
            return torch.stack([self.look(query[:, :, head]) for head in range(2)], 1)
        return self.look(query.transpose(1, 2).flatten(0, 1))

    def expected(self, source):
        query = self.to_q(source).unflatten(-1, (2, 4)).transpose(1, 2)
        return (query @ query.mT).softmax(-1)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("batch", [2, 3, 4])
def test_heads_that_are_gone_through_one_by_one_are_not_taken_for_folded_ones(batch, fused):
    source = torch.randn(batch, QUERIES, 8)
    with torch.no_grad():
        for one_by_one in (False, True):
            model = ManyHeads(one_by_one, fused)
            with observe(model) as trace:
                model(source)
            maps = torch.cat([call.weights() for call in trace.calls("")], 1)
            assert len(trace.calls("")) == 1 + one_by_one
            torch.testing.assert_close(maps, model.expected(source))


def chunks(vectors, heads):
    return torch.cat(vectors.chunk(heads, -1), 0)


def stacked(vectors, heads):
    return torch.stack(vectors.split(vectors.shape[-1] // heads, -1)).flatten(0, 1)


def permuted(vectors, heads):
    apart = vectors.unflatten(-1, (heads, -1)).permute(2, 0, 1, 3)
    return apart.contiguous().view(-1, *apart.shape[2:]) * 1.0


def reshaped(vectors, heads):
    return vectors.unflatten(-1, (heads, -1)).permute(2, 0, 1, 3).flatten(0, 1)


def texts_first(vectors, heads):
    return vectors.unflatten(-1, (heads, -1)).transpose(1, 2).flatten(0, 1)


def places_first(vectors, heads):
    return vectors.transpose(0, 1).reshape(vectors.shape[1], -1, 3).transpose(0, 1)


class Folding(nn.Module):
    """Heads in the axis of texts, one head of all texts after another or the other way round."""

    def __init__(self, fold, way):
        super().__init__()
        self.num_heads, self.fold, self.way = 3, fold, way
        self.to_all = nn.Linear(9, 27)

    def forward(self, source):
        requested, keys, values = (self.fold(x, 3) for x in self.to_all(source).chunk(3, -1))
        if self.way == "fused":
            return F.scaled_dot_product_attention(requested, keys, values)
        scores = requested @ keys.mT / 3**0.5
        if self.way == "held":
            scores = scores + torch.sin(scores)  # what is read is the map itself
        return F.softmax(scores, -1) @ values

    def expected(self, source):
        requested, keys, _ = (
            x.unflatten(-1, (3, 3)).transpose(1, 2) for x in self.to_all(source).chunk(3, -1)
        )
        scores = requested @ keys.mT / 3**0.5
        return F.softmax(scores + torch.sin(scores) if self.way == "held" else scores, -1)


FOLDS = [chunks, stacked, permuted, reshaped, texts_first, places_first]


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.__name__)
@pytest.mark.parametrize("way", ["fused", "written", "held"])
@pytest.mark.parametrize("batch", [1, 2, 3, 4])
def test_folded_heads_belong_to_their_texts_in_whatever_order_they_were_folded(fold, way, batch):
    torch.manual_seed(batch)
    model, source = Folding(fold, way), torch.randn(batch, QUERIES, 9)
    changed = []

    def doubled(weights, seen, layer):
        changed.append(weights)
        return weights * 2

    with torch.no_grad():
        with observe(model) as trace:
            plain = model(source)
        torch.testing.assert_close(trace[""].weights(), model.expected(source))
        with intervene(model, doubled):
            twice = model(source)
        torch.testing.assert_close(changed[0], model.expected(source))
        torch.testing.assert_close(twice, plain * 2)


BESIDE = [
    {"add_zero_attn": True},
    {"add_bias_kv": True},
    {"add_zero_attn": True, "add_bias_kv": True},
]


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("needed", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_keys_that_are_no_slots_take_their_share_and_shift_nothing(beside, needed, masked):
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True, **beside)
    source = torch.randn(2, QUERIES, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(QUERIES) if masked else None
    given = {"attn_mask": mask, "average_attn_weights": False}
    plain, whole = model(source, source, source, **given)
    with observe(model) as trace:
        seen, _ = model(source, source, source, need_weights=needed, **given)
    torch.testing.assert_close(seen, plain)
    attention_map = trace[""]
    torch.testing.assert_close(attention_map.weights(), whole[..., :QUERIES], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        attention_map.self_weight(), attention_map.weights().diagonal(dim1=2, dim2=3)
    )
    assert attention_map.position == 0
    assert trace.kind("") == "self"
    assert trace.causal("") == masked
    with intervene(model, same):
        torch.testing.assert_close(model(source, source, source, **given)[0], plain)


def test_a_layer_beside_one_with_such_keys_keeps_all_of_its_own():
    model = nn.ModuleList([nn.MultiheadAttention(8, 2, add_zero_attn=True) for _ in range(2)])
    model[1].add_zero_attn = False
    model.forward = lambda text: [layer(text, text, text) for layer in model]
    with observe(model) as trace:
        model(torch.randn(QUERIES, 1, 8))
    assert [trace[layer].shape for layer in trace] == [(1, 2, QUERIES, QUERIES)] * 2


class Looking(nn.Module):
    """Attention of texts under names of its own."""

    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(3, 4))

    def forward(self, x, other=None, mask=None):
        asking = self.latents.expand(len(x), -1, -1) if other is None and mask is not None else x
        requested = x if other is None else other
        return F.scaled_dot_product_attention(
            asking[:, None], requested[:, None], requested[:, None]
        )


@pytest.mark.parametrize(
    ("given", "relation"),
    [
        (torch.randn(1, 2, 5, 4), "self"),
        (torch.randn(2, 2, 5, 4), "cross"),
        ([torch.randn(2, 5, 4), None, torch.zeros(2, 5, 5)], "cross"),  # what it learned asks
    ],
)
def test_a_module_that_was_given_one_text_as_long_as_what_looks_looks_at_itself(given, relation):
    model = Looking()
    with observe(model) as trace:
        model(*given)
    assert trace.kind("") == relation


def test_queries_and_keys_of_one_memory_are_of_one_text_whatever_the_values_are():
    """As MobileBERT has them."""

    class Bottled(nn.Module):
        def forward(self, query_tensor, key_tensor, value_tensor):
            asking, requested = query_tensor[:, None] * 2, key_tensor[:, None] * 3
            return helped(self, asking, requested, value_tensor[:, None])

    def helped(module, query, key, value):
        return F.scaled_dot_product_attention(query, key, value)

    model, text, value = Bottled(), torch.randn(2, QUERIES, 4), torch.randn(2, QUERIES, 4)
    with observe(model) as trace:
        model(text, text, value)
    assert trace.kind("") == "self"


def test_a_product_that_is_a_module_looks_at_the_text_of_who_holds_it():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.multiply = Calling(torch.matmul)

        def forward(self, x):
            heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
            return self.multiply((heads @ heads.mT).softmax(-1), heads)

    model = Holder()
    with observe(model) as trace:
        model(torch.randn(3, QUERIES, 4))
    assert trace.kind("multiply") == "self"


def test_what_is_called_a_cache_joins_no_calls_unless_it_is_one():
    class Remembering(nn.Module):
        def forward(self, text, cache):
            cache["longest"] = text.shape[1]
            return (text @ text.mT).cumsum(-1).softmax(-1) @ text

    model, cache = Remembering(), {}
    with observe(model) as trace:
        for text in vectors(1, QUERIES, 4):
            model(text, cache)
    assert [call.shape for call in trace.calls("")] == [(1, 1, QUERIES, QUERIES)] * 3


@pytest.mark.parametrize("hollow", [lambda: torch.device("meta"), FakeTensorMode])
@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("inference", [False, True])
def test_tensors_without_numbers_run_as_they_would_and_are_reported(hollow, written, inference):
    def function(query, key, value):
        if not written:
            return F.scaled_dot_product_attention(query, key, value, torch.zeros(QUERIES, QUERIES))
        scores = query @ key.mT / torch.tensor(2.0) + torch.zeros(QUERIES, QUERIES)
        hidden = torch.ones(QUERIES, QUERIES, dtype=torch.bool)
        scores.masked_fill_(hidden, -1e9)
        return scores.softmax(-1) @ value

    model, seen = Calling(function), []
    with hollow(), torch.inference_mode(inference):
        given = torch.randn(2, 2, QUERIES, 4), torch.randn(2, 2, QUERIES, 4)
        with pytest.raises(AttlasError, match=r"\(1 × each\).*no numbers.*meta"), observe(model):
            seen.append(model(*given, given[1]))
    assert seen[0].shape == (2, 2, QUERIES, 4)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_function_that_was_compiled_runs_as_it_is_written_while_somebody_looks(fullgraph):
    compiled = []

    def backend(graph, given):
        compiled.append(graph)
        return graph

    def helper(query, key, value):
        return (query @ key.mT).softmax(-1) @ value

    fast = torch.compile(helper, backend=backend, fullgraph=fullgraph)
    model, given = Calling(lambda *given: fast(*given)), vectors(1, 2, QUERIES, 4)
    stance = torch._dynamo.eval_frame._stance
    with observe(model) as trace, intervene(model, same):
        model(*given)
    torch.testing.assert_close(trace[""].weights(), (given[0] @ given[1].mT).softmax(-1))
    assert not compiled
    assert torch._dynamo.eval_frame._stance is stance
    assert torch.equal(model(*given), helper(*given))
    assert len(compiled) == 1


def test_another_thread_goes_on_to_run_what_it_compiled():
    model, stances = Calling(F.scaled_dot_product_attention), []

    def elsewhere():
        stances.append(torch._dynamo.eval_frame._stance.stance)

    with observe(model):
        model(*vectors(1, 2, QUERIES, 4))
        alone = threading.Thread(target=elsewhere)
        alone.start()
        alone.join()
        elsewhere()
    assert stances == ["default", "force_eager"]


def test_a_softmax_of_a_product_that_goes_another_way_is_reported_whatever_its_module_is_called():
    def summed(query, key, value):
        weights = (query @ key.mT).softmax(-1)
        return (weights.unsqueeze(-1) * value.unsqueeze(-3)).sum(-2)

    model = nn.ModuleList([Calling(F.scaled_dot_product_attention), Calling(summed)])
    model.forward = lambda *given: [layer(*given) for layer in model]
    reported = (
        r"\['1'\] \(1 × each\): a softmax of the product of two tensors, without a product with"
    )
    with pytest.warns(UserWarning, match=reported), observe(model) as trace:
        model(*vectors(1, 2, QUERIES, 4))
    assert tuple(trace) == ("0",)


def test_a_softmax_over_a_table_of_words_is_not_reported(recwarn):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.look, self.table = Calling(F.scaled_dot_product_attention), nn.Embedding(9, 4)

        def forward(self, text):
            return (self.look(text, text, text)[:, 0] @ self.table.weight.T).softmax(-1)

    model = Model()
    for inference in (False, True):
        with torch.inference_mode(inference), observe(model) as trace:
            model(torch.randn(2, QUERIES, 4))
        assert tuple(trace) == ("look",)
    assert not recwarn.list
