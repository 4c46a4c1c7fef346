"""Heads that are folded into the axis of texts or of queries."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.errors import AttlasError
from attlas.recording import DenseAttentionMap, observe
from support.written_attention import Calling, check

WIDTH, HEADS = 32, 4


class HeadsFirst(nn.Module):
    """As "attention-is-all-you-need-pytorch" folds them: heads × texts."""

    def __init__(self) -> None:
        super().__init__()
        self.n_head, self.own = HEADS, WIDTH // HEADS
        self.w_qs, self.w_ks, self.w_vs = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        batch, places, _ = x.shape

        def folded(y):
            apart = y.view(batch, places, HEADS, self.own).permute(2, 0, 1, 3)
            return apart.contiguous().view(-1, places, self.own)

        query, key, value = folded(self.w_qs(x)), folded(self.w_ks(x)), folded(self.w_vs(x))
        weights = torch.bmm(query, key.transpose(1, 2)).softmax(-1)
        self.weights = weights.view(HEADS, batch, places, places).transpose(0, 1)
        read = torch.bmm(weights, value).view(HEADS, batch, places, self.own)
        return read.permute(1, 2, 0, 3).reshape(batch, places, WIDTH)


def test_how_one_layer_folds_its_heads_is_not_reported_of_another():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = HeadsFirst()
            self.other = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x):
            x = self.one(x)
            return self.other(x, x, x, average_attn_weights=False)

    torch.manual_seed(0)
    model = Both()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    for batch, places in ((2, 7), (3, 5), (4, 8)):
        with observe(model) as trace:
            _, weights = model(torch.randn(batch, places, WIDTH))
        torch.testing.assert_close(trace["other"].weights(), weights, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(trace["one"].weights(), model.one.weights, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("queries", [1, 5])
def test_heads_behind_their_queries_are_reported_by_the_number_that_a_layer_names(queries):
    class Shared(nn.Module):
        """One key head, as GPTBigCode has written it."""

        def __init__(self):
            super().__init__()
            self.num_heads = 3

        def forward(self, query, key, value):
            texts, places, heads, width = query.shape
            requested = query.reshape(texts, places * heads, width)
            weights = (requested @ key.mT).view(texts, places, heads, -1).softmax(-1)
            return weights.view(texts, places * heads, -1) @ value

    key, value = torch.randn(2, 2, 6, 4)
    with pytest.raises(AttlasError, match="a softmax of the product"), observe(model := Shared()):
        model(torch.randn(2, queries, 3, 4), key, value)


def test_key_heads_may_be_read_for_a_group_of_heads_at_once():
    def written(query, key, value):
        shared = query.reshape(2, 2, 2 * 5, 4)  # four heads and five queries, two key heads
        weights = (shared @ key.mT).view(2, 4, 5, 6).softmax(-1)
        return weights.view(2, 2, 10, 6) @ value

    query, key, value = torch.randn(2, 4, 5, 4), *torch.randn(2, 2, 2, 6, 4)
    expected = (query @ key.repeat_interleave(2, 1).mT).softmax(-1)
    check(written, expected, query, key, value, kind=DenseAttentionMap)


def test_axes_may_change_places_by_name():
    def written(x):
        y = torch.permute(input=torch.transpose(input=x, dim0=1, dim1=2), dims=(0, 2, 1))
        return F.scaled_dot_product_attention(y, y, y)

    x = torch.randn(2, 5, 8)
    with observe(model := Calling(written)) as trace:
        model(x)
    assert trace[""].shape == (2, 1, 5, 5)


def test_heads_that_lie_among_the_queries_are_not_taken_for_queries():
    """With one key head, as GPTBigCode has written it: what its axes are nobody can know."""

    def written(query, key, value):
        texts, places, heads, width = 2, 5, 3, 4
        requested = query.reshape(texts, places * heads, width)
        weights = (requested @ key.mT).view(texts, places, heads, -1).softmax(-1)
        return weights.view(texts, places * heads, -1) @ value

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.plain = Calling(written), Calling(torch.matmul)

        def forward(self, query, key, value):
            weights = (key @ key.mT).softmax(-1)
            return self.attention(query, key, value), self.plain(weights, value)

    query = torch.randn(2, 5, 3, 4)
    key, value = torch.randn(2, 2, 6, 4)
    model = Model()
    with pytest.warns(UserWarning, match="cannot read.*attention"), observe(model) as trace:
        model(query, key, value)
    assert "attention" not in trace


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (2, 3, 4, 5), (2, 6, 10), (5, 3, 2, 4), (120,)])
def test_axes_may_be_cut_anywhere(shape):
    """As relative positions are shifted: a factor that is cut in an odd way is no factor."""

    def written(x):
        y = x.reshape(shape).reshape(2, 3, 5, 4)
        return F.scaled_dot_product_attention(y, y, y)

    x = torch.randn(2, 3, 4, 5)
    y = x.reshape(2, 3, 5, 4)
    check(written, (y @ y.mT / 2).softmax(-1), x.transpose(0, 1).contiguous().transpose(0, 1))


class SampledPoints(nn.Module):
    """Deformable attention: each query of each head weighs points of its own."""

    def __init__(self, named):
        super().__init__()
        self.score = nn.Linear(WIDTH, HEADS * 3)
        if named:
            self.num_heads = HEADS

    def forward(self, x, points):
        weights = self.score(x).unflatten(-1, (HEADS, 3)).softmax(-1).transpose(1, 2)
        self.weights = weights
        return (weights[..., None, :] @ points)[..., 0, :]


@pytest.mark.parametrize("named", [True, False])
def test_queries_that_weigh_points_of_their_own_are_no_heads(named):
    torch.manual_seed(0)
    batch, places = 2, 5
    model = SampledPoints(named)
    with observe(model) as trace:
        model(torch.randn(batch, places, WIDTH), torch.randn(batch, HEADS, places, 3, WIDTH))
    seen = trace[""].weights()
    if named:
        assert seen.shape == (batch * places, HEADS, 1, 3)
        expected = model.weights.transpose(1, 2).reshape(seen.shape)
    else:
        assert seen.shape == (batch * HEADS * places, 1, 1, 3)
        expected = model.weights.reshape(seen.shape)
    torch.testing.assert_close(seen, expected)
