"""What every recurrent model keeps, whatever its cell, wiring and attention."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.errors import AttlasError
from attlas.models import RecurrentConfig, RecurrentModel, build
from attlas.models.rnn.bahdanau import BahdanauDecoder
from attlas.models.rnn.luong import InputFeedingDecoder
from support.recurrent_kinds import EVERY, PLAIN, SOURCES, TARGETS, made


def stepped(
    model: RecurrentModel, source: Tensor, token_mask: Tensor | None, target: Tensor
) -> Tensor:
    state = model.encode(source, token_mask)
    logits = []
    for tokens in target.unbind(1):
        scores, state = model.step(tokens, state)
        logits.append(scores)
    return torch.stack(logits, dim=1)


def gradients(model: RecurrentModel, logits: Tensor) -> dict[str, Tensor]:
    weight = torch.linspace(-1.0, 1.0, logits.numel(), dtype=logits.dtype).view_as(logits)
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad((logits * weight).sum(), parameters)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("training", [True, False])
def test_step_by_step_is_the_whole_target_at_once(
    every_model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor, training: bool
) -> None:
    model = every_model.train(training)
    whole, by_steps = (
        model(source, target, token_mask=token_mask),
        stepped(model, source, token_mask, target),
    )
    torch.testing.assert_close(by_steps, whole)
    torch.testing.assert_close(gradients(model, by_steps), gradients(model, whole))


@given(
    config=st.sampled_from([*EVERY.values(), *PLAIN.values()]),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    queries=st.integers(1, 5),
    padding=st.integers(0, 2),
)
def test_steps_and_whole_targets_agree_at_any_length_and_each_row_is_alone(
    config: RecurrentConfig, lengths: list[int], queries: int, padding: int
) -> None:
    model = made(config)
    slots = max(1, *lengths) + padding
    token_mask = torch.arange(slots) < torch.tensor(lengths).unsqueeze(1)
    source = torch.randint(1, SOURCES, (len(lengths), slots))
    target = torch.randint(1, TARGETS, (len(lengths), queries))
    whole = model(source, target, token_mask=token_mask)
    torch.testing.assert_close(stepped(model, source, token_mask, target), whole)
    for row, length in enumerate(lengths):
        if length:
            alone = model(source[row : row + 1, :length], target[row : row + 1])
            torch.testing.assert_close(alone, whole[row : row + 1])


def test_a_target_can_go_on_from_a_state_in_its_middle(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    state = model.encode(source, token_mask)
    for tokens in target[:, :2].unbind(1):
        _, state = model.step(tokens, state)
    rest = model.logits(model.decode(target[:, 2:], state))
    torch.testing.assert_close(rest, model(source, target, token_mask=token_mask)[:, 2:])


def test_ids_in_padding_change_nothing_not_even_ids_that_are_none(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    junk = torch.where(token_mask, source, torch.tensor(-(2**40)))
    assert torch.equal(
        model(junk, target, token_mask=token_mask), model(source, target, token_mask=token_mask)
    )


def test_more_padding_changes_nothing(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    wider, as_real = (
        torch.nn.functional.pad(source, (0, 4)),
        torch.nn.functional.pad(token_mask, (0, 4)),
    )
    torch.testing.assert_close(
        model(wider, target, token_mask=as_real), model(source, target, token_mask=token_mask)
    )


def test_a_batch_of_one_is_the_same_inside_a_batch(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    together = model(source, target, token_mask=token_mask)
    for row in range(len(source)):
        length = int(token_mask[row].sum())
        alone = model(source[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone, together[row : row + 1])


def test_a_source_without_a_token_disturbs_nobody_and_has_finite_gradients(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    empty = token_mask & torch.tensor([[True], [True], [False]])
    logits = model(source, target, token_mask=empty)
    torch.testing.assert_close(logits[:2], model(source, target, token_mask=token_mask)[:2])
    junk = source.clone()
    junk[2] = 10
    assert torch.equal(model(junk, target, token_mask=empty), logits)
    assert logits.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients(model, logits).values())


def test_a_later_target_token_changes_no_earlier_prediction(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    other = target.clone()
    other[:, 3] = 1
    before, after = (
        model(source, target, token_mask=token_mask),
        model(source, other, token_mask=token_mask),
    )
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


def test_select_commutes_with_step(
    model: RecurrentModel, source: Tensor, token_mask: Tensor
) -> None:
    rows = torch.tensor([2, 0, 0, 1])
    _, state = model.step(torch.tensor([2, 2, 2]), model.encode(source, token_mask))
    tokens = torch.tensor([5, 9, 12])
    logits, after = model.step(tokens, state)
    moved, moved_after = model.step(tokens[rows], state.select(rows))
    torch.testing.assert_close(moved, logits[rows])
    torch.testing.assert_close(moved_after.hidden, after.select(rows).hidden)
    torch.testing.assert_close(moved_after.coverage, after.select(rows).coverage)
    assert moved_after.position == after.position == 2


@pytest.mark.parametrize("shared", [False, True])
def test_the_rows_of_two_states_go_on_as_they_would_have(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, shared: bool
) -> None:
    rows, tokens = torch.tensor([0, 0, 1, 1]), torch.tensor([7, 2, 5, 9, 12, 4, 1])
    _, one = model.step(tokens[:2], model.encode(source[1:, :3], token_mask[1:, :3]))
    _, other = model.step(tokens[:3], model.encode(source, None))  # padding and all
    one = one.select(rows) if shared else one
    both = one.concat(other)
    expected = [model.step(tokens[: one.rows], one)[0], model.step(tokens[:3], other)[0]]
    found, _ = model.step(torch.cat([tokens[: one.rows], tokens[:3]]), both)
    torch.testing.assert_close(found, torch.cat(expected))
    with pytest.raises(AttlasError, match="as many tokens, 1; got one that has read 0"):
        one.concat(model.encode(source, token_mask))


def test_hypotheses_that_share_a_source_step_as_each_would_alone(
    model: RecurrentModel, source: Tensor, token_mask: Tensor
) -> None:
    tokens, rows = torch.tensor([7, 2, 5, 9, 12, 4]), torch.tensor([0, 0, 1, 1, 2, 2])
    _, state = model.step(tokens[:3], model.encode(source, token_mask))
    beams = state.select(rows)
    logits, after = model.step(tokens, beams)
    if beams.source is not None:
        assert (beams.source.rows_per_cache, len(beams.source.layers[0].keys)) == (2, 3)
    for row, origin in enumerate(rows.tolist()):
        alone, own = model.step(tokens[row : row + 1], state.select(torch.tensor([origin])))
        torch.testing.assert_close(logits[row], alone[0])
        if own.coverage is not None:
            assert after.coverage is not None
            torch.testing.assert_close(after.coverage[row], own.coverage[0])


def test_a_step_leaves_the_state_before_it_as_it_was(
    model: RecurrentModel, source: Tensor, token_mask: Tensor
) -> None:
    state = model.encode(source, token_mask)
    first, _ = model.step(torch.tensor([2, 2, 2]), state)
    model.step(torch.tensor([7, 8, 9]), state)
    again, _ = model.step(torch.tensor([2, 2, 2]), state)
    assert torch.equal(first, again)


def test_the_gradient_reaches_every_parameter(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    reached = gradients(model, model(source, target, token_mask=token_mask))
    assert [name for name, gradient in reached.items() if not gradient.any()] == []


def test_every_target_vocabulary_row_gets_a_logit(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    features = model.decode(target, model.encode(source, token_mask))
    assert model.logits(features).shape == (3, 6, 13)
    assert model.logits(features[:, 2]).shape == (3, 13)


def test_the_state_dictionary_names_every_parameter_once() -> None:
    config = RecurrentConfig(tie_output=True, tie_source=True)
    stored = build(config, 20, 20).state_dict()
    assert len({value.data_ptr() for value in stored.values()}) == len(stored)


def test_tied_embeddings_are_one_matrix(source: Tensor, target: Tensor) -> None:
    model = build(RecurrentConfig(tie_output=True, tie_source=True, dropout=0.0), 13, 13)
    before = model(source, target)
    with torch.no_grad():
        model.target_embedding.weight[12] += 1.0  # no token of the source
    after = model(source, target)
    assert not torch.allclose(before[..., 12], after[..., 12])
    with torch.no_grad():
        model.target_embedding.weight[9] += 1.0  # a token of the source
    assert not torch.allclose(model(source, target)[0, 0], after[0, 0])


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_acts_in_training_alone(source: Tensor, target: Tensor, dropout: float) -> None:
    model = build(RecurrentConfig(layers=2, dropout=dropout, attention_dropout=dropout), 13, 13)
    same = torch.equal(model(source, target), model(source, target))
    assert same is (dropout == 0.0)
    model.eval()
    assert torch.equal(model(source, target), model(source, target))


def test_the_same_seed_builds_the_same_model() -> None:
    def parameters() -> dict[str, Tensor]:
        torch.manual_seed(5)
        return build(RecurrentConfig(), 20, 20).state_dict()

    first, second = parameters(), parameters()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_half_precision_autocast_stays_finite_and_steps_alike(
    model: RecurrentModel, source: Tensor, token_mask: Tensor, target: Tensor
) -> None:
    model.float()
    with torch.autocast("cpu", torch.bfloat16):
        whole = model(source, target, token_mask=token_mask)
        by_steps = stepped(model, source, token_mask, target)
    exact = model(source, target, token_mask=token_mask)
    torch.testing.assert_close(whole.float(), exact, atol=0.1, rtol=0.05)
    torch.testing.assert_close(by_steps.float(), exact, atol=0.1, rtol=0.05)


def test_an_id_beyond_the_vocabulary_is_the_callers_error(source: Tensor, target: Tensor) -> None:
    model = build(RecurrentConfig(), 8, 13)
    with pytest.raises(AttlasError, match="source ids from 0 to 7; got 9; number the text"):
        model.encode(source)
    model = build(RecurrentConfig(), 11, 5)
    with pytest.raises(AttlasError, match="target ids from 0 to 4; got 7"):
        model(source, target)


def test_an_empty_target_and_an_empty_source_are_the_callers_error(source: Tensor) -> None:
    model = build(RecurrentConfig(), 11, 13)
    with pytest.raises(AttlasError, match="a target of at least one token"):
        model(source, source[:, :0])
    with pytest.raises(AttlasError, match=r"one position; got 3 row\(s\) and 0 position\(s\)"):
        model.encode(source[:, :0])
    with pytest.raises(AttlasError, match=r"at least one row .*; got 0 row\(s\)"):
        model.encode(source[:0])


def test_a_state_of_another_kind_of_model_is_the_callers_error(source: Tensor) -> None:
    plain = build(RecurrentConfig(attention="none"), 11, 13).encode(source)
    luong = build(RecurrentConfig(decoder="luong"), 11, 13).encode(source)
    begin = torch.tensor([2, 2, 2])
    with pytest.raises(AttlasError, match="a state with a memory of the source"):
        build(RecurrentConfig(), 11, 13).step(begin, plain)
    feeding = build(RecurrentConfig(decoder="luong", input_feeding=True), 11, 13)
    with pytest.raises(AttlasError, match="a state with the last attentional vector"):
        feeding.step(begin, luong)


def test_the_wiring_chooses_the_decoder() -> None:
    assert isinstance(build(RecurrentConfig(), 5, 5).decoder, BahdanauDecoder)
    feeding = RecurrentConfig(decoder="luong", input_feeding=True)
    assert isinstance(build(feeding, 5, 5).decoder, InputFeedingDecoder)
