"""What is found for a sentence does not depend on the sentences beside it."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.decoding import DecodingConfig, Hypothesis, SearchInput, decode, decode_all
from attlas.models import ModelConfig, RecurrentConfig, SequenceToSequence, TransformerConfig, build
from attlas.ops import linear
from attlas.recording import observe
from support.table_model import CELLS, TableModel, TableState, sources

LENGTHS = tuple(1 + (7 * place) % 19 for place in range(64))
SHORT = {"max_len_a": 1.0, "max_len_b": 10}
WAYS = {
    "greedy": DecodingConfig(method="greedy", no_repeat_ngram=3, **SHORT),
    "beam": DecodingConfig(
        num_beams=4, n_best=3, length_penalty=1.0, coverage_penalty=0.2, **SHORT
    ),
    "exhaustive": DecodingConfig(
        num_beams=4, n_best=3, length_penalty=1.0, coverage_penalty=0.2, exhaustive=True, **SHORT
    ),
    "constrained": DecodingConfig(num_beams=3, n_best=2, no_repeat_ngram=2, min_length=4, **SHORT),
    "sample": DecodingConfig(
        method="sample", n_best=2, temperature=0.8, top_k=20, top_p=0.9, **SHORT
    ),
}
STRENGTH = 1.0  # the standard deviation of a stronger weight
MODELS: dict[str, ModelConfig] = {
    "bahdanau": RecurrentConfig(embed_dim=16, hidden_dim=24, encoder_hidden_dim=12),
    "luong": RecurrentConfig(
        cell="lstm",
        layers=2,
        embed_dim=16,
        hidden_dim=24,
        encoder_hidden_dim=12,
        attention="local",
        decoder="luong",
        input_feeding=True,
    ),
    "transformer": TransformerConfig(
        embed_dim=16,
        num_heads=2,
        ffn_dim=32,
        encoder_layers=1,
        decoder_layers=2,
        positions="rotary",
    ),
}


@cache
def trained_like(kind: str) -> SequenceToSequence[Any]:
    """A random model whose predictions are as far apart as those of a trained one.

    Its embeddings and its last layer alone are made stronger: a recurrence with large weights is
    chaotic, and would turn the rounding of a product into another sentence. A Transformer scales
    its embeddings itself, by the root of their width.
    """
    torch.manual_seed(len(kind))
    model = build(MODELS[kind], 60, 40)
    with torch.no_grad():
        for part in (model.source_embedding, model.target_embedding, model.output):
            for matrix in part.parameters():
                scale = getattr(model, "scale", 1.0)
                matrix.mul_(STRENGTH / scale / matrix.std().clamp(min=1e-3))
    return model.eval()


def in_batches(
    model: SequenceToSequence[Any],
    source: Tensor,
    token_mask: Tensor,
    config: DecodingConfig,
    size: int,
) -> list[list[Hypothesis]]:
    """Decoded `size` rows at a time; a batch is as wide as its own longest row."""
    found = []
    for ids, known in zip(source.split(size), token_mask.split(size), strict=True):
        width = int(known.sum(1).max())
        found += decode(model, ids[:, :width], known[:, :width], config)
    return found


def same(one: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> None:
    assert len(one) == len(other)
    for these, those in zip(one, other, strict=True):
        assert [(h.tokens, h.finished) for h in these] == [(h.tokens, h.finished) for h in those]
        for a, b in zip(these, those, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-4)
            assert a.log_probability == pytest.approx(b.log_probability, abs=1e-4)


@pytest.mark.sampled(5)
@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_results_do_not_depend_on_the_size_of_the_batch(kind: str, way: str) -> None:
    model = trained_like(kind).double()  # rounding decides nothing
    source, token_mask = sources(*LENGTHS)
    whole = decode(model, source, token_mask, WAYS[way])
    assert len({hypotheses[0].tokens for hypotheses in whole}) > 15  # they do depend on the source
    # A step of one row costs what one of sixteen does.
    for size, rows in (
        (1, slice(0, None, 6)),
        (3, slice(2, 32)),
        (16, slice(None)),
        (63, slice(None)),
    ):
        same(in_batches(model, source[rows], token_mask[rows], WAYS[way], size), whole[rows])


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
@pytest.mark.parametrize("way", WAYS)
def test_a_few_sentences_decode_the_same_alone_and_together(kind: str, way: str) -> None:
    model = trained_like(kind)
    source, token_mask = sources(*LENGTHS[:6])
    same(
        in_batches(model, source, token_mask, WAYS[way], 6),
        in_batches(model, source, token_mask, WAYS[way], 1),
    )


@given(
    seed=st.integers(0, 2**32),
    way=st.sampled_from(sorted(WAYS)),
    lengths=st.lists(st.integers(1, 9), min_size=2, max_size=7),
    data=st.data(),
)
def test_results_do_not_depend_on_which_sentences_share_a_batch(
    seed: int, way: str, lengths: list[int], data: st.DataObject
) -> None:
    model = TableModel(seed)
    source, token_mask = sources(*lengths, seed=seed)
    prefixes = [data.draw(st.lists(st.sampled_from((4, 5)), max_size=2)) for _ in lengths]
    together = decode(model, source, token_mask, WAYS[way], prefixes)
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=5))
    found = decode(
        model, source[chosen], token_mask[chosen], WAYS[way], [prefixes[i] for i in chosen]
    )
    same(found, [together[i] for i in chosen])


def parted(source: Tensor, token_mask: Tensor, sizes: list[int]) -> list[SearchInput]:
    """Batches of so many rows, each as wide as its own longest row."""
    batches = []
    for ids, known in zip(source.split(sizes), token_mask.split(sizes), strict=True):
        width = int(known.sum(1).max())
        batches.append(SearchInput(ids[:, :width], known[:, :width]))
    return batches


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_of_a_batch_finds_the_same_with_the_next_one(kind: str, way: str) -> None:
    model = trained_like(kind).double()
    source, token_mask = sources(*sorted(LENGTHS[:24]))
    batches = parted(source, token_mask, [12, 6, 6])
    apart = [decode(model, *batch[:2], WAYS[way]) for batch in batches]
    for found, expected in zip(decode_all(model, batches, WAYS[way]), apart, strict=True):
        same(found, expected)


@given(
    seed=st.integers(0, 2**32),
    way=st.sampled_from(sorted(WAYS)),
    lengths=st.lists(st.integers(1, 9), min_size=3, max_size=16),
    data=st.data(),
)
def test_batches_in_any_order_find_what_each_finds_alone(
    seed: int, way: str, lengths: list[int], data: st.DataObject
) -> None:
    model = TableModel(seed)
    source, token_mask = sources(*lengths, seed=seed)
    ends = data.draw(st.sets(st.integers(1, len(lengths) - 1), max_size=4))
    sizes = [stop - start for start, stop in pairwise([0, *sorted(ends), len(lengths)])]
    prefix = st.lists(st.sampled_from((4, 5)), max_size=2)
    batches = [
        one._replace(prefix=[data.draw(prefix) for _ in one.source]) if data.draw(st.booleans())
        else one
        for one in parted(source, token_mask, sizes)
    ]  # fmt: skip
    together = decode_all(model, batches, WAYS[way])
    for batch, found in zip(batches, together, strict=True):
        same(found, decode(model, batch.source, batch.token_mask, WAYS[way], batch.prefix))


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_what_is_left_of_several_batches_takes_the_steps_of_one(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    model, rows = trained_like("transformer").double(), []
    step = model.step

    def counted(tokens: Tensor, state: Any) -> Any:
        rows.append(len(tokens))
        return step(tokens, state)

    source, token_mask = sources(*sorted(LENGTHS))
    batches = parted(source, token_mask, [16, 16, 16, 16])
    monkeypatch.setattr(model, "step", counted)
    steps = []
    for batch in batches:
        decode(model, *batch[:2], WAYS[way])
        steps.append(len(rows))
        rows.clear()
    decode_all(model, batches, WAYS[way])
    joined, most = len(rows), max(rows)
    assert max(steps) <= joined < sum(steps)
    assert most <= 1.5 * 16 * WAYS[way].num_beams  # a batch, and less than half of another

    rows.clear()
    with observe(model):
        decode_all(model, batches, WAYS[way])
    assert len(rows) == sum(steps)  # who listens hears each batch by itself


def test_states_that_cannot_be_joined_go_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(TableState):
        """There may be more to join than what it inherits knows of."""

    encode = TableModel.encode

    def encoded(self: TableModel, *given: Tensor) -> Own:
        plain = encode(self, *given)
        return Own(plain.cell, plain.token_mask, plain.coverage)

    monkeypatch.setattr(TableModel, "encode", encoded)
    model, rows = TableModel(3), []
    step = model.step
    monkeypatch.setattr(model, "step", lambda *given: rows.append(len(given[0])) or step(*given))
    batches = parted(*sources(2, 3, 5, 5, 6, 7, 9, 9), [4, 2, 2])
    apart = [decode(model, *batch[:2], WAYS["beam"]) for batch in batches]
    steps = rows.copy()
    rows.clear()
    assert decode_all(model, batches, WAYS["beam"]) == apart
    assert rows == steps  # and none of them waits in vain


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_in_bfloat16_too_what_is_left_goes_on_with_the_next_one(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(linear, "_LEAST_HALVES", 0)  # so small a model is worth no bfloat16 else
    model = trained_like("transformer")
    config = WAYS[way].model_copy(update={"autocast": "bf16"})
    source, token_mask = sources(*sorted(LENGTHS[:24]))
    batches = parted(source, token_mask, [12, 6, 6])
    found = [one for batch in decode_all(model, batches, config) for one in batch]
    apart = [one for batch in batches for one in decode(model, *batch[:2], config)]
    same = sum(a[0].tokens == b[0].tokens for a, b in zip(found, apart, strict=True))
    assert same >= 20  # other sums are rounded to eight bits otherwise


def test_no_batch_and_a_batch_of_none_find_nothing() -> None:
    model, (source, token_mask) = TableModel(3), sources(2, 3)
    assert decode_all(model, [], WAYS["greedy"]) == []
    some = SearchInput(source, token_mask)
    none, one = decode_all(model, [SearchInput(source[:0], token_mask[:0]), some], WAYS["greedy"])
    assert none == []
    assert one == decode(model, source, token_mask, WAYS["greedy"])


@given(
    seed=st.integers(0, 2**32),
    kinds=st.integers(1, 3),
    num_beams=st.integers(1, 8),
    lengths=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    data=st.data(),
)
def test_a_tie_is_decided_the_same_alone_and_together(
    seed: int, kinds: int, num_beams: int, lengths: list[int], data: st.DataObject
) -> None:
    """Forced prefixes make the beams of some sentences narrower than those of their neighbours."""
    model = TableModel(seed)
    generator = torch.Generator().manual_seed(seed)
    model.table = torch.randint(kinds, (CELLS, 40), generator=generator).double()
    source, token_mask = sources(*lengths, seed=seed)
    prefixes = [data.draw(st.lists(st.integers(4, 39), max_size=4)) for _ in lengths]
    config = DecodingConfig(num_beams=num_beams, n_best=num_beams, **SHORT)
    together = decode(model, source, token_mask, config, prefixes)
    for row in range(len(lengths)):
        chosen = slice(row, row + 1)
        alone = decode(model, source[chosen], token_mask[chosen], config, prefixes[chosen])
        same(alone, together[chosen])


@pytest.mark.parametrize("kind", ["luong", "transformer"])
def test_the_probability_is_that_of_one_teacher_forced_pass(kind: str) -> None:
    model = trained_like(kind)
    source, token_mask = sources(*LENGTHS[:8])
    for row, (best,) in enumerate(decode(model, source, token_mask, DecodingConfig(num_beams=3))):
        own = source[row][token_mask[row]].unsqueeze(0)
        target = torch.tensor([[2, *best.tokens, *[3] * best.finished]])
        with torch.no_grad():
            log_p = model(own, target[:, :-1]).log_softmax(-1)
        total = log_p.gather(2, target[:, 1:].unsqueeze(-1)).sum()
        assert best.log_probability == pytest.approx(float(total), abs=1e-4)


def test_a_model_without_attention_decodes_too() -> None:
    model = build(
        RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8, attention="none"), 60, 40
    )
    source, token_mask = sources(3, 5)
    for way in ("greedy", "sample", "constrained"):
        assert all(decode(model.eval(), source, token_mask, WAYS[way]))
