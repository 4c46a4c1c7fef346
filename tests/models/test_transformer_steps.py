"""The decoder's short way for a step, against the long one; and what the rows of a beam share."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from attlas.errors import AttlasError
from attlas.models import Transformer, TransformerState
from attlas.ops.dropout import Dropout
from attlas.recording import intervene, observe, uniform
from support.transformer_kinds import KINDS, TARGETS, made, small

BEAM = torch.tensor([0, 0, 1, 1, 2, 2])


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def transformer(request: pytest.FixtureRequest) -> Transformer:
    return made(request.param)


def beams(
    model: Transformer, source: Tensor, token_mask: Tensor, steps: int = 3
) -> TransformerState:
    """Two hypotheses for each of three sources, some of which have changed places."""
    state = model.encode(source, token_mask)
    _, state = model.step(torch.tensor([2, 2, 2]), state)
    state = state.select(BEAM)
    for step in range(steps):
        _, state = model.step((torch.arange(6) * 5 + step) % TARGETS, state)
        state = state.select(torch.tensor([1, 1, 2, 3, 5, 4]))
    return state


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_the_short_way_is_the_long_one(transformer, source, token_mask, training: bool) -> None:
    transformer.train(training)
    tokens = torch.tensor([4, 5, 6, 7, 8, 9])
    expected, _ = transformer.step(tokens, beams(transformer, source, token_mask))  # with gradients
    with torch.inference_mode():
        found, _ = transformer.step(tokens, beams(transformer, source, token_mask))
    torch.testing.assert_close(found, expected.detach())


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("name", ["self_attention", "cross_attention"])
def test_a_hook_acts_on_the_steps_of_a_search_too(
    source, token_mask, name: str, everywhere: bool
) -> None:
    model = made(KINDS["pre"]).eval()
    attention = getattr(model.decoder.layers[0], name)

    def hook(module: nn.Module, given: object, read: Tensor) -> Tensor | None:
        return read * 0 if module is attention else None

    tokens = torch.tensor([4, 5, 6, 7, 8, 9])
    with torch.no_grad():
        state = beams(model, source, token_mask)
        plain, _ = model.step(tokens, state)
    has_hooks = (
        register_module_forward_hook(hook) if everywhere else attention.register_forward_hook(hook)
    )
    expected, _ = model.step(tokens, state)  # with gradients, the long way
    with torch.no_grad():
        found, _ = model.step(tokens, state)
    has_hooks.remove()
    torch.testing.assert_close(found, expected.detach())
    assert not torch.allclose(found, plain)


@given(
    data=st.data(),
    kind=st.sampled_from(["pre", "grouped keys", "rms swiglu rotary", "longformer", "sparse"]),
)
@settings(deadline=None, max_examples=20)
def test_each_row_knows_its_own_past_however_rows_are_selected(
    data: st.DataObject, kind: str
) -> None:
    model = made(KINDS[kind]).eval()
    source, token_mask = (
        torch.tensor([[4, 9, 7, 3], [8, 6, 3, 0]]),
        torch.arange(4) < torch.tensor([[4], [3]]),
    )
    origin, histories = [0, 1], torch.zeros(2, 0, dtype=torch.long)
    with torch.no_grad():
        state = model.encode(source, token_mask)
        for _ in range(data.draw(st.integers(2, 14))):
            tokens = torch.tensor(
                data.draw(
                    st.lists(st.integers(1, TARGETS - 1), min_size=(n := len(origin)), max_size=n)
                )
            )
            histories = torch.cat([histories, tokens.unsqueeze(1)], dim=1)
            logits, state = model.step(tokens, state)
            wanted = model(source[origin], histories, token_mask=token_mask[origin])[:, -1]
            torch.testing.assert_close(logits, wanted)
            if data.draw(st.booleans()):  # as a beam does
                width = data.draw(st.integers(1, 4))
                rows = [
                    data.draw(st.sampled_from([i for i, o in enumerate(origin) if o == sentence]))
                    for sentence in sorted(set(origin))
                    for _ in range(width)
                ]
            else:
                rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=6))
            state = state.select(torch.tensor(rows))
            histories, origin = histories[rows], [origin[row] for row in rows]


@pytest.mark.parametrize("covered", [False, True])
@pytest.mark.parametrize("grad", [False, True], ids=["short way", "long way"])
@pytest.mark.parametrize("others", ["alone", "beams"])
def test_the_rows_of_two_states_go_on_as_they_would_have(
    transformer, source, token_mask, others: str, grad: bool, covered: bool
) -> None:
    transformer.eval()
    with torch.set_grad_enabled(grad):
        one = beams(transformer, source[1:][[0, 1, 1]][:, :3], token_mask[1:][[0, 1, 1]][:, :3])
        if others == "beams":
            other = beams(transformer, source, None)
        else:
            other = transformer.encode(source, None)
            for step in range(one.position):
                _, other = transformer.step(torch.tensor([2, 3, 4]) + step, other)
        if covered:
            one, other = one.with_coverage(), other.with_coverage()
        tokens = torch.arange(one.rows + other.rows) % TARGETS
        both = one.concat(other)
        assert both.rows == len(tokens)
        for step in range(3):
            a, one = transformer.step(tokens[: one.rows] + step % 2, one)
            b, other = transformer.step(tokens[one.rows :] + step % 2, other)
            found, both = transformer.step(tokens + step % 2, both)
            torch.testing.assert_close(found, torch.cat([a, b]))
        if covered:
            apart = one.concat(other).coverage
            torch.testing.assert_close(both.coverage, apart)
            assert both.coverage.any(1).all()


def test_states_at_two_positions_are_no_batch(source, token_mask) -> None:
    model = made(KINDS["pre"]).eval()
    with pytest.raises(AttlasError, match="as many tokens, 4; got one that has read 0"):
        beams(model, source, token_mask).concat(model.encode(source, token_mask))
    state = model.encode(source, token_mask)
    with pytest.raises(AttlasError, match="which both count where they look, or both do not"):
        state.concat(state.with_coverage())


@pytest.mark.parametrize("kind", ["pre", "longformer", "sparse"])
def test_hypotheses_that_change_places_copy_nothing(source, token_mask, kind: str) -> None:
    model = made(KINDS[kind]).eval()
    with torch.inference_mode():
        state = beams(model, source, token_mask)
        moved = state.select(torch.tensor([1, 0, 3, 3, 4, 5]))
    assert all(a is b for a, b in zip(moved.past.layers, state.past.layers, strict=True))
    assert moved.past.rows_per_cache == 2


@pytest.mark.parametrize("kind", ["pre", "sparse"])
def test_slots_that_are_nobodys_are_cleared_away(source, token_mask, kind: str) -> None:
    model, tokens = made(KINDS[kind]).eval(), torch.tensor([4, 5, 6, 7, 8, 9])
    with torch.inference_mode():
        state = beams(model, source, token_mask, steps=60)
        found, _ = model.step(tokens, state)
    assert state.position == 61
    assert state.past.layers[0].num_keys < 61 + 61  # each step brings two, of which one survives
    expected, _ = model.step(tokens, beams(model, source, token_mask, steps=60))  # with gradients
    torch.testing.assert_close(found, expected.detach())


def test_a_position_that_sees_nothing_reads_zeros_in_a_step_too(source, token_mask) -> None:
    model, target = made(small(decoder_patterns=("landmarks(2)",))).eval(), torch.tensor([4, 5, 6])
    wanted = model(source, target.repeat(3, 1), token_mask=token_mask)
    state, found = model.encode(source, token_mask), []
    with torch.inference_mode():
        for token in target.tolist():
            logits, state = model.step(torch.full((3,), token), state)
            found.append(logits)
    torch.testing.assert_close(torch.stack(found, dim=1), wanted.detach())


def test_queries_can_learn_step_by_step_while_all_else_is_frozen(
    source, token_mask, target
) -> None:
    model = made(KINDS["pre"])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".q_proj." in name)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    state, steps = model.encode(source, token_mask), []
    for tokens in target.unbind(1):
        logits, state = model.step(tokens, state)
        steps.append(logits)
    by_steps, at_once = (
        torch.autograd.grad(logits.sin().sum(), learned)
        for logits in (torch.stack(steps, dim=1), model(source, target, token_mask=token_mask))
    )
    torch.testing.assert_close(by_steps, at_once)


@pytest.mark.parametrize("which", ["dropout", "attention_dropout", "ffn_dropout"])
def test_dropout_alone_in_training_falls_on_every_step_and_on_the_encoder(
    source, token_mask, which: str
) -> None:
    model = made(small(**{which: 0.5})).eval()
    for module in model.modules():
        if isinstance(module, Dropout):
            module.train()
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    with torch.inference_mode():
        assert not torch.equal(model.encoder(x, token_mask), model.encoder(x, token_mask))
        state = model.encode(source, token_mask)
        x = torch.randn(3, 8, dtype=torch.float64)
        (first, _), (second, _) = model.decoder.step(x, state), model.decoder.step(x, state)
    assert not torch.equal(first, second)


def test_who_listens_to_a_beam_hears_each_row_by_itself(source, token_mask) -> None:
    model, tokens = made(KINDS["pre"]).eval(), torch.tensor([4, 5, 6, 7, 8, 9])
    with torch.no_grad():
        state = beams(model, source, token_mask)
        plain, _ = model.step(tokens, state)
        with observe(model) as trace:
            heard, after = model.step(tokens, state)
        torch.testing.assert_close(heard, plain)
        assert trace["decoder.layers.0.self_attention"].shape == (6, 2, 1, 5)
        assert trace["decoder.layers.0.cross_attention"].shape == (6, 2, 1, 5)
        # And what comes after is as if nobody had listened.
        _, quiet = model.step(tokens, state)
        order = torch.tensor([1, 1, 2, 3, 5, 4])
        expected, _ = model.step(tokens, quiet.select(order))
        found, _ = model.step(tokens, after.select(order))
        torch.testing.assert_close(found, expected)


def test_an_intervention_reaches_the_steps_of_a_beam(source, token_mask) -> None:
    model, tokens = made(KINDS["pre"]).eval(), torch.tensor([4, 5, 6, 7, 8, 9])
    with torch.no_grad(), intervene(model, uniform):
        state = beams(model, source, token_mask)
        changed, _ = model.step(tokens, state)
    with intervene(model, uniform):
        wanted, _ = model.step(tokens, beams(model, source, token_mask))
    torch.testing.assert_close(changed, wanted.detach())
    with torch.no_grad():
        untouched, _ = model.step(tokens, beams(model, source, token_mask))
    assert not torch.allclose(changed, untouched)


def test_a_source_without_a_token_is_read_as_zeros(source, token_mask) -> None:
    model, nothing = (
        made(KINDS["post"]).eval(),
        token_mask & torch.tensor([[True], [True], [False]]),
    )
    tokens = torch.tensor([2, 2, 2])
    expected, _ = model.step(tokens, model.encode(source, nothing))
    with torch.no_grad():
        found, _ = model.step(tokens, model.encode(source, nothing))
    torch.testing.assert_close(found, expected.detach())
    assert found.isfinite().all()


def test_half_precision_takes_the_same_steps(source, token_mask) -> None:
    model = made(small()).eval().bfloat16()
    expected, _ = model.step(torch.tensor([2, 5, 7]), model.encode(source, token_mask))
    with torch.no_grad():
        found, _ = model.step(torch.tensor([2, 5, 7]), model.encode(source, token_mask))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected.detach(), rtol=0.1, atol=0.1)


def test_as_many_tokens_as_rows(source, token_mask) -> None:
    model = made(KINDS["pre"]).eval()
    with pytest.raises(AttlasError, match="one token for each of 3 rows; got 6"):
        model.step(torch.zeros(6, dtype=torch.long), model.encode(source, token_mask))


@pytest.mark.parametrize("kind", ["pre", "grouped keys", "rms swiglu rotary", "longformer"])
@pytest.mark.parametrize("together", [0, 1, 2])
def test_many_rows_of_one_source_have_pasts_of_their_own_and_stay_what_they_are(
    kind: str, together: int
) -> None:
    """Draws begin apart; hypotheses that begin as one, for so many tokens, part later."""
    model, draws = made(KINDS[kind]).eval(), 20
    source, token_mask = torch.tensor([[4, 9, 7, 3]]), torch.ones(1, 4, dtype=torch.bool)
    tokens = torch.randint(4, TARGETS, (12, draws), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        state = model.encode(source, token_mask)
        alone = model.encode(source.expand(draws, -1), token_mask.expand(draws, -1))
        for _ in range(together):
            _, state = model.step(torch.tensor([2]), state)
            _, alone = model.step(torch.full((draws,), 2), alone)
        state = state.select(torch.zeros(draws, dtype=torch.long))
        shared = set()
        for step in tokens:
            found, state = model.step(step, state)
            expected, alone = model.step(step, alone)
            torch.testing.assert_close(found, expected)
            shared.add(state.past.rows_per_cache)
    assert shared == ({draws, 1} if together else {1})
    assert state.past.layers[0].num_keys == together + len(tokens)


def test_a_beam_that_counts_where_it_looks_shares_its_past(transformer, source, token_mask) -> None:
    transformer.eval()

    def steps() -> tuple[Tensor, TransformerState]:
        state = transformer.encode(source, token_mask).with_coverage()
        _, state = transformer.step(torch.tensor([2, 2, 2]), state)
        state = state.select(BEAM)
        for tokens in ([4, 5, 6, 7, 8, 9], [5, 5, 4, 9, 9, 7], [6, 4, 8, 8, 5, 5]):
            found, state = transformer.step(torch.tensor(tokens), state)
            state = state.select(torch.tensor([1, 1, 2, 3, 5, 4]))
        return found, state

    expected, counted = steps()  # with gradients
    with torch.inference_mode():
        found, state = steps()
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(state.coverage, counted.coverage.detach())
    torch.testing.assert_close(state.coverage.sum(1), torch.full((6,), 4.0).double())
    if transformer.decoder._can_step_fast(state):
        assert state.past.rows_per_cache == 2
