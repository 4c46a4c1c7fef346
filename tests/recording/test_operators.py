"""Attention by other ways of torch: flex attention, operators by their names, logarithms."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from attlas.errors import AttlasError
from attlas.patterns import causal
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, intervene, observe, uniform
from support.written_attention import QUERIES, Calling, check, same, vectors

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def _scores(query, key):
    return query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).mT * 0.3


def _alibi(score, batch, head, query, slot):
    return score - (head + 1) * (query - slot).abs() * 0.1


def _looking_back(batch, head, query, slot):
    return query >= slot


@pytest.mark.parametrize("num_kv_heads", [1, 4])
def test_flex_attention_is_read(num_kv_heads):
    (query,), (key, value) = vectors(2, 4, QUERIES, 8, count=1), vectors(2, num_kv_heads, 7, 8)[:2]
    check(
        lambda *given: flex_attention(*given, scale=0.3, enable_gqa=True),
        _scores(query, key).softmax(-1),
        *(query, key, value),
    )


def test_the_rule_of_a_block_mask_is_read_as_the_pattern_that_it_spells_out():
    query, key, value = vectors(2, 4, QUERIES, 8)
    blocks = create_block_mask(_looking_back, None, None, QUERIES, QUERIES, device="cpu")
    shown = causal.mask(QUERIES, QUERIES, 0)
    attention_map = check(
        lambda *given: flex_attention(*given, scale=0.3, block_mask=blocks),
        _scores(query, key).masked_fill(~shown, -torch.inf).softmax(-1),
        *(query, key, value),
    )
    assert attention_map.pattern == causal
    assert attention_map.bias is None


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
        kind=DenseAttentionMap,
    )


def test_a_modified_score_does_not_make_visible_what_the_rule_hides():
    query, key, value = vectors(2, 4, QUERIES, 8)
    blocks = create_block_mask(_looking_back, None, None, QUERIES, QUERIES, device="cpu")
    model = Calling(lambda *given: flex_attention(*given, score_mod=_faint, block_mask=blocks))
    with observe(model) as trace:
        model(query, key, value)
    shown = causal.mask(QUERIES, QUERIES, 0)
    shown[:, 0] = False  # which the function makes −∞; weights too faint to tell are seen
    assert torch.equal(
        trace[""].allowed_rows(0, QUERIES).expand(2, 4, -1, -1), shown.expand(2, 4, -1, -1)
    )
    uniform_rows = shown / shown.sum(-1, keepdim=True).clamp(min=1)
    with intervene(model, uniform):
        torch.testing.assert_close(model(query, key, value), uniform_rows @ value)


def _faint(score, batch, head, query, slot):
    return torch.where(slot == 0, -torch.inf, score - 300.0 * (query - slot))


CUTS = {
    "those above a number": lambda score, *place: torch.where(score > 0, score, -torch.inf),
    "logarithms": lambda score, *place: torch.log(score.abs()),
    "reciprocals": lambda score, *place: -1 / score.abs(),
}


@pytest.mark.parametrize("way", CUTS)
def test_what_a_function_of_scores_hides_may_depend_on_the_score(way):
    query, key, value = vectors(1, 2, QUERIES, 8)
    model = Calling(lambda *given: flex_attention(*given, score_mod=CUTS[way], scale=0.3))
    with observe(model) as trace:
        model(query, key, value)
    scores = CUTS[way](_scores(query, key).double())
    expected = scores.softmax(-1).nan_to_num(0.0)
    torch.testing.assert_close(trace[""].weights().double(), expected, atol=1e-6, rtol=1e-5)
    assert torch.equal(trace[""].allowed_rows(0, QUERIES).expand_as(scores), scores > -torch.inf)


def test_flex_attention_is_read_where_nobody_has_called_it_before():
    """torch's compiler, which goes through it then, does not go through what watches."""
    query, key, value = vectors(1, 2, QUERIES, 8)
    torch._dynamo.reset()
    model = Calling(lambda *given: flex_attention(*given, scale=0.3))
    with torch.no_grad(), observe(model) as trace:
        model(query, key, value)
    expected = _scores(query, key).softmax(-1)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)


def test_a_block_mask_whose_rule_says_something_else_than_its_blocks_is_refused():
    """Compiled, blocks are left out; as it is written, the rule alone is asked."""
    places = 256
    counts, columns = torch.ones(1, 1, 2, dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]])
    blocks = BlockMask.from_kv_blocks(counts, columns.int(), BLOCK_SIZE=128)
    given = vectors(1, 2, places, 8)
    model = Calling(lambda *given: flex_attention(*given, block_mask=blocks))
    with pytest.raises(AttlasError, match="mask_mod says what its blocks say"), observe(model):
        model(*given)
    within = BlockMask.from_kv_blocks(
        *(counts, columns.int()),
        BLOCK_SIZE=128,
        mask_mod=lambda batch, head, query, slot: query // 128 == slot // 128,
    )
    model = Calling(lambda *given: flex_attention(*given, block_mask=within))
    with observe(model) as trace:
        model(*given)
    far = trace[""].weights()[:, :, :128, 128:]
    assert not far.any()


def test_heads_may_be_brought_together_after_an_intervention():
    """Kernels lay out their result place by place, as the queries are."""
    query, key, value = (one.transpose(1, 2) for one in vectors(2, QUERIES, 4, 8))
    for attend in (flex_attention, F.scaled_dot_product_attention):
        model = Calling(lambda *given, f=attend: f(*given).transpose(1, 2).view(2, QUERIES, 32))
        plain = model(query, key, value)
        with intervene(model, same):
            torch.testing.assert_close(model(query, key, value), plain)


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
    "safe": lambda q, k, v: torch._safe_softmax(q @ k.mT * 8**-0.5, -1) @ v,
    "cast": lambda q, k, v: (
        torch.ops.aten.softmax.int(q @ k.mT * 8**-0.5, -1, torch.float64).float() @ v
    ),
    "einsum": lambda q, k, v: torch.ops.aten.einsum(
        "bhqs,bhsd->bhqd", [torch.ops.aten.softmax.int(q @ k.mT * 8**-0.5, -1), v], path=None
    ),
    "turned": lambda q, k, v: torch.ops.aten.matmul(
        (q @ torch.ops.aten.mT(k) * 8**-0.5).softmax(-1), v
    ),
    "dropout": lambda q, k, v: (
        torch.ops.aten.dropout((q @ k.mT * 8**-0.5).softmax(-1), p=0.1, train=False) @ v
    ),
    "logarithms": lambda q, k, v: F.log_softmax(q @ k.mT * 8**-0.5, dim=-1).exp() @ v,
}


@pytest.mark.parametrize("way", WAYS)
def test_operators_of_torch_are_heard_by_their_names(way):
    query, key, value = vectors(2, 2, QUERIES, 8)
    check(WAYS[way], (query @ key.mT * 8**-0.5).softmax(-1), query, key, value)


LOGARITHMS = {
    "cast": lambda logs: logs.clone().to(torch.float32).exp(),
    "shaped": lambda logs: logs.view(4, QUERIES, QUERIES).view(2, 2, QUERIES, QUERIES).exp(),
    "hidden": lambda logs: logs.masked_fill(logs < -99, -torch.inf).exp(),
    "named": lambda logs: torch.exp(input=logs),
    "operator": lambda logs: torch.ops.aten.exp(torch.ops.aten.clone(logs)),
}


@pytest.mark.parametrize("way", LOGARITHMS)
def test_logarithms_may_be_cast_shaped_and_hidden_before_they_are_weights(way):
    query, key, value = vectors(2, 2, QUERIES, 8)
    check(
        lambda q, k, v: LOGARITHMS[way](torch.ops.aten._log_softmax(q @ k.mT, -1, False)) @ v,
        (query @ key.mT).softmax(-1),
        *(query, key, value),
        kind=FactoredAttentionMap if way == "named" else DenseAttentionMap,
    )


def test_logarithms_that_become_weights_twice_are_one_map():
    def twice(q, k, v):
        logs = F.log_softmax(q @ k.mT, -1)
        return logs.exp() @ v + logs.exp() @ v

    model = Calling(twice)
    with observe(model) as trace:
        model(*vectors(2, 2, QUERIES, 8))
    assert len(trace.calls("")) == 1


def test_a_softmin_of_distances_is_read():
    query, key, value = vectors(2, 2, QUERIES, 8)
    check(
        lambda q, k, v: F.softmin(torch.cdist(q, k), -1) @ v,
        (-torch.cdist(query, key)).softmax(-1),
        *(query, key, value),
        kind=DenseAttentionMap,
    )


def test_logarithms_of_scores_that_nobody_knows_are_read_as_weights():
    query, key, value = vectors(2, 2, QUERIES, 8)
    check(
        lambda q, k, v: torch.log_softmax(-torch.cdist(q, k), -1).exp() @ v,
        (-torch.cdist(query, key)).softmax(-1),
        *(query, key, value),
        kind=DenseAttentionMap,
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


def test_a_kernel_that_is_called_by_its_own_name_is_reported():
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    model = Calling(lambda *given: kernel(*given)[0])
    reported = "_scaled_dot_product_flash_attention_for_cpu, a kernel of torch"
    with pytest.raises(AttlasError, match=reported), observe(model):
        model(*vectors(2, 2, QUERIES, 8))
