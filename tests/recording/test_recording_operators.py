"""Attention by other ways of torch: flex attention, operators by their names, logarithms."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from written import QUERIES, Calling, check, vectors

from attlas.errors import AttlasError
from attlas.patterns import causal
from attlas.recording import DenseReading, observe

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def _scores(query, key):
    return query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).mT * 0.3


def _alibi(score, batch, head, query, slot):
    return score - (head + 1) * (query - slot).abs() * 0.1


def _looking_back(batch, head, query, slot):
    return query >= slot


@pytest.mark.parametrize("key_heads", [1, 4])
def test_flex_attention_is_read(key_heads):
    (query,), (key, value) = vectors(2, 4, QUERIES, 8, count=1), vectors(2, key_heads, 7, 8)[:2]
    check(
        lambda *given: flex_attention(*given, scale=0.3, enable_gqa=True),
        _scores(query, key).softmax(-1),
        *(query, key, value),
    )


def test_the_rule_of_a_block_mask_is_read_as_the_pattern_that_it_spells_out():
    query, key, value = vectors(2, 4, QUERIES, 8)
    blocks = create_block_mask(_looking_back, None, None, QUERIES, QUERIES, device="cpu")
    shown = causal.mask(QUERIES, QUERIES, 0)
    reading = check(
        lambda *given: flex_attention(*given, scale=0.3, block_mask=blocks),
        _scores(query, key).masked_fill(~shown, -torch.inf).softmax(-1),
        *(query, key, value),
    )
    assert reading.pattern == causal
    assert reading.bias is None


def test_what_a_rule_looks_up_in_a_table_is_read():
    query, key, value = vectors(2, 4, QUERIES, 8)
    texts = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]])
    blocks = create_block_mask(
        lambda batch, head, query, slot: texts[batch][query] == texts[batch][slot],
        *(2, None, QUERIES, QUERIES),
        device="cpu",
    )
    shown = (texts[:, :, None] == texts[:, None, :])[:, None]
    check(
        lambda *given: flex_attention(*given, scale=0.3, block_mask=blocks),
        _scores(query, key).masked_fill(~shown, -torch.inf).softmax(-1),
        *(query, key, value),
    )


def test_scores_that_flex_attention_modifies_are_read_as_weights():
    query, key, value = vectors(2, 4, QUERIES, 8)
    blocks = create_block_mask(_looking_back, None, None, QUERIES, QUERIES, device="cpu")
    places = torch.arange(QUERIES)
    slopes = (torch.arange(4) + 1.0).view(-1, 1, 1) * 0.1
    scores = _scores(query, key) - slopes * (places[:, None] - places).abs()
    check(
        lambda *given: flex_attention(*given, score_mod=_alibi, scale=0.3, block_mask=blocks),
        scores.masked_fill(~causal.mask(QUERIES, QUERIES, 0), -torch.inf).softmax(-1),
        *(query, key, value),
        kind=DenseReading,
    )


WAYS = {
    "sdpa": torch.ops.aten.scaled_dot_product_attention,
    "sdpa, overload": torch.ops.aten.scaled_dot_product_attention.default,
    "written": lambda q, k, v: torch.ops.aten.matmul.default(
        torch.ops.aten.softmax.int(
            torch.ops.aten.mul.Scalar(torch.ops.aten.matmul(q, k.mT), 8**-0.5), -1
        ),
        v,
    ),
    "decomposed": lambda q, k, v: torch.ops.aten.bmm.default(
        torch.ops.aten.view.default(
            torch.ops.aten._softmax.default(q @ k.mT * 8**-0.5, -1, False), [4, QUERIES, QUERIES]
        ),
        v.flatten(0, 1),
    ).view(2, 2, QUERIES, 8),
    "logarithms": lambda q, k, v: F.log_softmax(q @ k.mT * 8**-0.5, dim=-1).exp() @ v,
}


@pytest.mark.parametrize("way", WAYS)
def test_operators_of_torch_are_heard_by_their_names(way):
    query, key, value = vectors(2, 2, QUERIES, 8)
    check(WAYS[way], (query @ key.mT * 8**-0.5).softmax(-1), query, key, value)


def test_logarithms_of_scores_that_nobody_knows_are_read_as_weights():
    query, key, value = vectors(2, 2, QUERIES, 8)
    check(
        lambda q, k, v: torch.log_softmax(-torch.cdist(q, k), -1).exp() @ v,
        (-torch.cdist(query, key)).softmax(-1),
        *(query, key, value),
        kind=DenseReading,
    )


def test_logarithms_that_were_changed_are_none_any_more():
    model = Calling(lambda q, k, v: F.log_softmax(q @ k.mT, -1).mul_(2).exp() @ v)
    with pytest.raises(AttlasError, match="at least one attention call"), observe(model):
        model(*vectors(2, 2, QUERIES, 8))


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_an_exported_program_is_read(decomposed):
    layer = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    text = torch.randn(2, QUERIES, 16)
    wanted = layer(text, text, text, average_attn_weights=False)[1]
    looking = Calling(lambda x: layer(x, x, x, need_weights=False)[0]).eval()
    exported = torch.export.export(looking, (text,))
    model = (exported.run_decompositions() if decomposed else exported).module()
    with torch.no_grad(), observe(model) as trace:
        model(text)
    torch.testing.assert_close(trace[""].weights(), wanted)


def test_a_kernel_that_is_called_by_its_own_name_is_told():
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    model = Calling(lambda *given: kernel(*given)[0])
    told = "_scaled_dot_product_flash_attention_for_cpu, a kernel of torch"
    with pytest.raises(AttlasError, match=told), observe(model):
        model(*vectors(2, 2, QUERIES, 8))
