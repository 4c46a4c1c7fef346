"""Looking into a recurrent model, and changing where it looks."""

import pytest
import torch
from torch import Tensor

from attlas.errors import AttlasError
from attlas.models import RecurrentConfig, RecurrentModel, build
from attlas.recording import Trace, intervene, observe, uniform

LAYER = "decoder.attention"


def read(model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor) -> Tensor:
    with observe(model) as trace:
        model(source, target, token_mask=token_mask)
    assert tuple(trace) == (LAYER,)
    return trace[LAYER].weights()


def test_a_whole_target_is_one_reading_whose_rows_sum_to_one_over_the_tokens(
    looking: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    looking.double()
    weights = read(looking, source, token_mask, target)
    assert weights.shape == (3, 1, 6, 5)
    assert (weights >= 0).all()
    sums = weights.sum(-1)
    # A local window may lie beyond the end of a short source: it reads nothing.
    empty = sums == 0
    assert not empty.any() or "Local" in type(looking.decoder.attention).__name__
    torch.testing.assert_close(sums[~empty], torch.ones_like(sums[~empty]))
    assert not weights.masked_select(~token_mask[:, None, None, :]).any()


def test_observing_changes_no_output_and_no_gradient(
    looking: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    def outcome() -> tuple[Tensor, ...]:
        logits = looking(source, target, token_mask=token_mask)
        return logits, *torch.autograd.grad(logits.square().sum(), [*looking.parameters()])

    before = outcome()
    with observe(looking) as trace:
        during = outcome()
    assert all(torch.equal(a, b) for a, b in zip(before, during, strict=True))
    assert not trace[LAYER].weights().requires_grad


def test_each_step_is_a_reading_of_one_query(
    looking: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    with observe(looking) as trace:
        state = looking.encode(source, token_mask)
        for tokens in target.unbind(1):
            _, state = looking.step(tokens, state)
    calls = trace.calls(LAYER)
    assert [attention_map.shape for attention_map in calls] == [(3, 1, 1, 5)] * 6
    joined = torch.cat([attention_map.weights() for attention_map in calls], dim=2)
    torch.testing.assert_close(joined, read(looking, source, token_mask, target))


def test_the_coverage_is_the_sum_of_the_readings(
    looking: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    state = looking.encode(source, token_mask)
    assert state.coverage is not None
    assert not state.coverage.any()
    for tokens in target.unbind(1):
        _, state = looking.step(tokens, state)
    weights = read(looking, source, token_mask, target)
    torch.testing.assert_close(state.coverage, weights[:, 0].sum(1))


def test_an_intervention_rules_steps_and_whole_targets_alike(
    looking: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    untouched = looking(source, target, token_mask=token_mask)
    with intervene(looking, uniform):
        whole = looking(source, target, token_mask=token_mask)
        state = looking.encode(source, token_mask)
        logits = []
        for tokens in target.unbind(1):
            scores, state = looking.step(tokens, state)
            logits.append(scores)
    torch.testing.assert_close(torch.stack(logits, dim=1), whole)
    assert not torch.allclose(whole[0], untouched[0])
    # A row of one token has one way to look; only a local window may miss it.
    torch.testing.assert_close(whole[2, 0], untouched[2, 0])


def test_coverage_counts_the_weights_that_were_used(source: Tensor, token_mask: Tensor) -> None:
    model = build(RecurrentConfig(dropout=0.0), 11, 13)
    state = model.encode(source, token_mask)
    with intervene(model, uniform):
        for token in (2, 7):
            _, state = model.step(torch.full((3,), token), state)
    shares = token_mask / token_mask.sum(1, keepdim=True)
    torch.testing.assert_close(state.coverage, 2 * shares)


def test_a_trace_of_a_translation_survives_the_disk(
    tmp_path, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    model = build(RecurrentConfig(decoder="luong", attention="general"), 11, 13).eval()
    with observe(model) as trace:
        model(source, target, token_mask=token_mask)
    trace.save(tmp_path / "trace.safetensors")
    again = Trace.load(tmp_path / "trace.safetensors")
    assert torch.equal(again[LAYER].weights(), trace[LAYER].weights())


def test_a_plain_model_has_nothing_to_observe(source: Tensor) -> None:
    model = build(RecurrentConfig(attention="none"), 11, 13)
    assert model.encode(source).coverage is None
    with pytest.raises(AttlasError, match="did not run"), observe(model):
        pass


def test_luong_without_feeding_is_one_rnn_call_and_one_read(
    monkeypatch, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    model = build(RecurrentConfig(decoder="luong"), 11, 13)
    state = model.encode(source, token_mask)
    requested, called = [], []
    score, forward = model.decoder.attention.score, model.decoder.recurrence.rnn.forward
    monkeypatch.setattr(
        model.decoder.attention, "score", lambda q, k: requested.append(q.shape) or score(q, k)
    )
    monkeypatch.setattr(
        model.decoder.recurrence.rnn, "forward", lambda *a: called.append(1) or forward(*a)
    )
    model.decode(target, state)
    assert requested == [(3, 6, 512)]
    assert called == [1]
