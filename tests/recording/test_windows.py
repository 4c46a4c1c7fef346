"""Heads are those that the module names, wherever they are; texts and windows are the batch."""

from itertools import permutations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.errors import AttlasError
from attlas.recording import intervene, observe
from support.written_attention import QUERIES, same

TEXTS, HEADS, WINDOWS, WIDTH = 2, 3, 4, 8
ORDERS = ["".join(order) for order in permutations("bhw")]


def fused(query, key, value, mask=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def written(query, key, value, mask=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ value


class Named(nn.Module):
    """Names its heads."""

    def __init__(self, function, heads=HEADS):
        super().__init__()
        self.function, self.num_heads = function, heads

    def forward(self, *given):
        return self.function(*given)


def check(model, expected, *given):
    """What is read of it is as expected; the same weights change nothing, others their own head."""
    with torch.no_grad():
        plain = model(*given)
        with observe(model) as trace:
            assert torch.equal(model(*given), plain)
        found = trace[""].weights()
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
        with intervene(model, same):
            torch.testing.assert_close(model(*given), plain, atol=1e-5, rtol=1e-5)


def batched(weights, order):
    """(texts, heads, windows, …) as (batch, heads, …), in the order in which texts and windows
    come."""
    first, second = (" bhw".index(axis) - 1 for axis in order if axis != "h")
    return weights.permute(first, second, 1, 3, 4).flatten(0, 1)


def masks(kind):
    if kind == "none":
        return None
    if kind == "of all axes":
        return torch.rand(TEXTS, HEADS, WINDOWS, QUERIES, QUERIES) > 0.3
    if kind == "of heads":
        return torch.randn(1, HEADS, 1, QUERIES, QUERIES)
    return torch.randn(QUERIES, QUERIES)


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["none", "of all axes", "of heads", "of pairs"])
@pytest.mark.parametrize("copied", [False, True])
def test_of_five_axes_heads_are_those_that_the_module_names(function, order, kind, copied):
    torch.manual_seed(0)
    given = torch.randn(3, TEXTS, HEADS, WINDOWS, QUERIES, WIDTH)
    mask = masks(kind)
    if kind == "of all axes":
        mask[..., 0] = True
    scores = given[0] @ given[1].mT / WIDTH**0.5
    if kind == "of all axes":
        scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask
    turned = [*("bhw".index(axis) for axis in order), 3, 4]
    query, key, value = (one.permute(*turned) for one in given)
    if copied:
        query, key, value = (one.contiguous() for one in (query, key, value))
    mask = mask.permute(*turned) if mask is not None and mask.ndim == 5 else mask
    given = (query, key, value, mask)
    check(Named(function), batched(scores.softmax(-1), order), *given)
    model = Named(function)
    with intervene(
        model, lambda weights, seen, layer: weights * torch.eye(HEADS)[1, :, None, None]
    ):
        changed = model(*given).movedim(order.index("h"), 0)
    assert changed[1].any()
    assert not changed[[0, 2]].any()


class Projected(nn.Module):
    """Makes heads of a linear map, and puts its axes in an order; folded: all of them in one."""

    def __init__(self, function, order, heads, *, copied=False, folded=False):
        super().__init__()
        self.heads, self.to_qkv = heads, nn.Linear(12, 36)
        self.function, self.order, self.copied, self.folded = function, order, copied, folded

    def apart(self, x):
        """Queries, keys and values with axes texts, windows, places, heads, width."""
        return self.to_qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(3)

    def forward(self, x):
        places = {"b": 0, "w": 1, "h": 3}
        turned = [*(places[axis] for axis in self.order), 2, 4]
        vectors = [one.permute(*turned) for one in self.apart(x)]
        if self.copied:
            vectors = [one.contiguous() for one in vectors]
        if self.folded:
            vectors = [one.reshape(-1, *one.shape[-2:]) for one in vectors]
        query, key, value = vectors
        return self.function(query * 1.0, key, value)


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("copied", "folded"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("sizes", [(3, 3, 3), (3, 2, 3), (2, 3, 3), (2, 6, 3)])
def test_as_many_texts_or_windows_as_heads_are_no_heads(function, order, copied, folded, sizes):
    texts, windows, heads = sizes
    torch.manual_seed(1)
    model = Projected(function, order, heads, copied=copied, folded=folded)
    x = torch.randn(texts, windows, QUERIES, 12)
    with torch.no_grad():
        query, key, _ = (one.movedim(3, 1) for one in model.apart(x))
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    check(model, batched(weights, order), x)


class Blocks(nn.Module):
    """Convolutions make vectors; heads are folded beside texts, and blocks of a picture, which look
    at their surroundings, have an axis of their own (Vaswani et al., HaloNet, 2021)."""

    def __init__(self, function, heads):
        super().__init__()
        self.function, self.num_heads, self.own = function, heads, 12 // heads
        self.q, self.kv = nn.Conv2d(12, 12, 1), nn.Conv2d(12, 24, 1)

    def forward(self, x):
        texts, _, height, width = x.shape
        blocks, rows = height * width // 4, texts * self.num_heads
        query = self.q(x).reshape(-1, self.own, height // 2, 2, width // 2, 2)
        query = query.permute(0, 1, 3, 5, 2, 4).reshape(rows, self.own, -1, blocks).transpose(1, 3)
        around = F.pad(self.kv(x), [1, 1, 1, 1]).unfold(2, 4, 2).unfold(3, 4, 2)
        around = around.reshape(rows, 2 * self.own, blocks, -1).permute(0, 2, 3, 1)
        key, value = torch.split(around, [self.own, self.own], dim=-1)
        return self.function(query, key, value)

    def weights(self, x):
        """Block by block."""
        queries = self.q(x).unflatten(1, (self.num_heads, -1))
        keys = F.pad(self.kv(x), [1, 1, 1, 1]).unflatten(1, (self.num_heads, -1))[:, :, : self.own]
        found = []
        for text in range(len(x)):
            for row in range(0, x.shape[2], 2):
                for column in range(0, x.shape[3], 2):
                    query = queries[text, ..., row : row + 2, column : column + 2].flatten(2)
                    key = keys[text, ..., row : row + 4, column : column + 4].flatten(2)
                    found.append((query.mT @ key / self.own**0.5).softmax(-1))
        return torch.stack(found)


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize(("texts", "side", "heads"), [(1, 4, 3), (2, 4, 4), (4, 4, 4), (3, 6, 3)])
def test_heads_that_are_folded_beside_windows_are_taken_apart(function, texts, side, heads):
    torch.manual_seed(0)
    model, x = Blocks(function, heads), torch.randn(texts, 12, side, side)
    with torch.no_grad():
        expected = model.weights(x)
    check(model, expected, x)


class Picture(nn.Module):
    """Heads beside texts, of a convolution that makes queries, keys and values at once (Srinivas et
    al., BoTNet, 2021)."""

    def __init__(self, function):
        super().__init__()
        self.function, self.num_heads = function, HEADS
        self.qkv = nn.Conv2d(8, 36, 1, bias=False)

    def forward(self, x):
        made = self.qkv(x).split(12, 1)
        return self.function(*(one.reshape(len(x) * HEADS, 4, -1).mT for one in made))


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize("texts", [1, 2, 3, 6])
def test_heads_of_a_convolution_are_found_by_its_width(function, texts):
    torch.manual_seed(0)
    model, x = Picture(function), torch.randn(texts, 8, 3, 3)
    with torch.no_grad():
        query, key, _ = model.qkv(x).view(texts, 3, HEADS, 4, 9).mT.unbind(1)
    check(model, (query @ key.mT / 2).softmax(-1), x)


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize("texts", [1, 2, 6])
def test_heads_that_share_keys_may_have_an_axis_of_their_own(function, texts):
    torch.manual_seed(0)
    query = torch.randn(texts, QUERIES, 48).view(texts, QUERIES, 2, 3, 8).permute(0, 2, 3, 1, 4)
    key, value = torch.randn(2, texts, 2, 1, QUERIES, 8)
    weights = (query @ key.mT / 8**0.5).softmax(-1).flatten(1, 2)
    check(Named(function, 6), weights, query, key, value)
    check(Named(function, 6), weights, query.contiguous(), key, value)


@pytest.mark.parametrize("function", [fused, written])
def test_weights_of_heads_may_read_values_of_several_texts(function):
    torch.manual_seed(0)
    query, key = torch.randn(2, HEADS, QUERIES, WIDTH)
    weights = (query @ key.mT / WIDTH**0.5).softmax(-1)
    values = torch.randn(TEXTS, HEADS, QUERIES, WIDTH)
    check(Named(function), weights[None], query, key, values)


@pytest.mark.parametrize("function", [fused, written])
def test_windows_of_a_module_with_one_head_are_texts(function):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, TEXTS, WINDOWS, QUERIES, WIDTH)
    weights = (query @ key.mT / WIDTH**0.5).softmax(-1)
    check(Named(function, 1), weights.flatten(0, 1)[:, None], query, key, value)


SHARED = {  # scores, context, heads, and the axes of weights in order
    "queries in front of heads": ("bqhd,bsd->bqhs", "bqhs,bsd->bqhd", 3, "bhqs"),
    "queries behind heads": ("bhqd,bsd->bhqs", "bhqs,bsd->bhqd", 3, "bhqs"),
    "groups in front": ("bgrqd,bgsd->bgrqs", "bgrqs,bgsd->bgrqd", 6, "bgrqs"),
    "groups behind": ("bqgrd,bsgd->bqgrs", "bqgrs,bsgd->bqgrd", 6, "bgrqs"),
    "groups moved": ("bqgrd,bsgd->bgrqs", "bgrqs,bsgd->bqgrd", 6, "bgrqs"),
}


@pytest.mark.parametrize("way", SHARED)
@pytest.mark.parametrize("texts", [2, 3, 6])
def test_sums_with_keys_that_heads_share_have_the_heads_that_the_module_names(way, texts):
    torch.manual_seed(0)
    scores, context, heads, axes = SHARED[way]
    sizes = {"b": texts, "q": QUERIES, "s": 6, "d": 8, "g": 2, "r": 3, "h": 3}
    asking, requested = scores.partition("->")[0].split(",")
    query = torch.randn([sizes[axis] for axis in asking])
    key, value = torch.randn([2, *(sizes[axis] for axis in requested)])

    def function(query, key, value):
        return torch.einsum(context, torch.einsum(scores, query, key).softmax(-1), value)

    weights = torch.einsum(scores, query, key).softmax(-1)
    weights = torch.einsum(f"{scores.partition('->')[2]}->{axes}", weights)
    check(Named(function, heads), weights.reshape(texts, heads, QUERIES, 6), query, key, value)


class Channels(nn.Module):
    """Every number of a vector looks at all others (El-Nouby et al., XCiT, 2021; Ding et al.,
    DaViT, 2022)."""

    def __init__(self, function):
        super().__init__()
        self.function, self.num_heads = function, 2
        self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        query, key, value = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 4, 1).unbind(0)
        query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        return self.proj(self.function(query, key, value).permute(0, 3, 1, 2).flatten(2))


class PictureChannels(nn.Module):
    """The same of a picture (Zamir et al., Restormer, 2022)."""

    def __init__(self, function):
        super().__init__()
        self.function, self.num_heads = function, 2
        self.qkv, self.project_out = nn.Conv2d(16, 48, 1), nn.Conv2d(16, 16, 1)

    def forward(self, x):
        picture = x.mT.contiguous().unflatten(-1, (1, -1))
        made = self.qkv(picture).unflatten(1, (3, 2, 8)).flatten(4).unbind(1)
        return self.project_out(self.function(*made).reshape_as(picture)).flatten(2).mT


class Tokens(Channels):
    def forward(self, x):
        made = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(self.function(*made).transpose(1, 2).flatten(2))


class Around(nn.Module):
    """One layer, and one that is read in any case."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.other = layer, nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        x = self.layer(x)
        return self.other(x, x, x)[0]


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize("layer", [Channels, PictureChannels])
@pytest.mark.parametrize("places", [5, 8, 16, 24])  # 8 is as wide as a head, 16 as a vector
def test_attention_of_channels_is_not_shown_as_of_tokens(layer, function, places):
    model, x = Around(layer(function)), torch.randn(2, places, 16)
    reported = r"\['layer'\] \(1 × each\): attention of channels: its 8 rows and columns"
    with pytest.warns(UserWarning, match=reported), observe(model) as trace:
        model(x)
    assert tuple(trace) == ("other",)
    with pytest.raises(AttlasError, match="attention of channels"), intervene(model, same):
        model(x)


@pytest.mark.parametrize("function", [fused, written])
@pytest.mark.parametrize("places", [5, 8, 16, 24])
def test_attention_of_tokens_is_read_whatever_their_number(function, places, recwarn):
    model, x = Around(Tokens(function)), torch.randn(2, places, 16)
    with observe(model) as trace:
        model(x)
    assert tuple(trace) == ("layer", "other")
    assert trace["layer"].shape == (2, 2, places, places)
    assert not recwarn.list
