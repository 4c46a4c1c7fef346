"""Encoder–decoders in a training loop of plain PyTorch: ids in, logits and weights out."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from attlas import AttlasError, intervene, observe
from attlas.models import (
    ClassifierConfig,
    RecurrentConfig,
    SequenceToSequence,
    TransformerConfig,
    build,
    build_classifier,
)
from attlas.recording import uniform

SIZES: dict[str, Any] = {"embed_dim": 8, "hidden_dim": 10, "encoder_hidden_dim": 5, "dropout": 0.0}
RECURRENT = {
    "gru bahdanau": RecurrentConfig(**SIZES),
    "lstm luong": RecurrentConfig(**SIZES, cell="lstm", decoder="luong", attention="general"),
    "input feeding": RecurrentConfig(**SIZES, decoder="luong", attention="dot", input_feeding=True),
    "coverage": RecurrentConfig(**SIZES, decoder="luong", attention="concat", coverage=True),
}
WITH_ATTENTION: dict[str, Any] = {
    **RECURRENT,
    "transformer": TransformerConfig(
        embed_dim=8, num_heads=2, ffn_dim=12, encoder_layers=1, decoder_layers=2, dropout=0.0
    ),
}
EVERY = {**WITH_ATTENTION, "plain": RecurrentConfig(**SIZES, attention="none")}
SOURCE = torch.tensor([[5, 0, 7, 9, 3], [8, 6, 3, 0, 0], [3, 0, 0, 0, 0]])
MASK = torch.arange(5) < torch.tensor([5, 3, 1]).unsqueeze(1)  # the 0 inside of a row is a token
TARGET = torch.tensor([[2, 7, 12, 5, 9, 4], [2, 11, 3, 0, 0, 0], [2, 6, 6, 6, 3, 0]])


def made(config: Any) -> SequenceToSequence[Any]:
    torch.manual_seed(1)
    return build(config, 13).double()


@pytest.fixture(params=EVERY.values(), ids=EVERY)
def model(request: pytest.FixtureRequest) -> SequenceToSequence[Any]:
    return made(request.param)


@pytest.fixture(params=WITH_ATTENTION.values(), ids=WITH_ATTENTION)
def looking(request: pytest.FixtureRequest) -> SequenceToSequence[Any]:
    return made(request.param)


def by_hand(model: SequenceToSequence[Any], forced: Tensor) -> Tensor:
    """The loop of the textbooks, with the coins given."""
    state, fed, logits = model.encode(SOURCE, MASK), TARGET[:, 0], []
    for t in range(TARGET.shape[1]):
        scores, state = model.step(fed, state)
        logits.append(scores)
        if t + 1 < TARGET.shape[1]:
            fed = torch.where(forced[:, t + 1], TARGET[:, t + 1], scores.argmax(1))
    return torch.stack(logits, 1)


def test_a_ratio_of_one_is_teacher_forcing(model: SequenceToSequence[Any]) -> None:
    found = model(SOURCE, TARGET)
    assert found.shape == (3, 6, 13)
    assert torch.equal(found, model(SOURCE, TARGET, teacher_forcing_ratio=1.0, token_mask=MASK))
    torch.testing.assert_close(found, by_hand(model, torch.ones_like(TARGET, dtype=torch.bool)))


def test_a_ratio_of_zero_reads_nothing_of_the_target_but_its_first_token(
    model: SequenceToSequence[Any],
) -> None:
    found = model(SOURCE, TARGET, 0.0)
    torch.testing.assert_close(found, by_hand(model, torch.zeros_like(TARGET, dtype=torch.bool)))
    others = TARGET.clone()
    others[:, 1:] = 1
    assert torch.equal(model(SOURCE, others, 0.0), found)
    before = torch.get_rng_state()
    model(SOURCE, TARGET, 0.0)
    assert torch.equal(torch.get_rng_state(), before)  # an evaluation draws nothing


def test_between_them_tokens_are_drawn_by_the_generator_of_torch(
    model: SequenceToSequence[Any],
) -> None:
    torch.manual_seed(7)
    found = model(SOURCE, TARGET, teacher_forcing_ratio=0.5)
    torch.manual_seed(7)
    forced = torch.rand(TARGET.shape) < 0.5
    torch.testing.assert_close(found, by_hand(model, forced))
    torch.manual_seed(7)
    assert torch.equal(model(SOURCE, TARGET, teacher_forcing_ratio=0.5), found)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_gradients_reach_every_parameter(model: SequenceToSequence[Any], ratio: float) -> None:
    logits = model(SOURCE, TARGET[:, :-1], ratio)
    torch.autograd.backward(F.cross_entropy(logits.mT, TARGET[:, 1:], ignore_index=0))
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_weights_are_those_that_were_read_with(
    looking: SequenceToSequence[Any], ratio: float
) -> None:
    logits, weights = looking.forward_with_weights(SOURCE, TARGET, ratio)
    assert logits.shape == (3, 6, 13)
    assert weights.shape == (3, 6, 5)
    torch.testing.assert_close(logits, looking(SOURCE, TARGET, ratio))
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 6, dtype=torch.float64))
    assert not weights.masked_select(~MASK.unsqueeze(1)).any()
    with observe(looking) as trace:  # the referee, a step at a time or all at once
        looking(SOURCE, TARGET, ratio)
    across = [name for name in trace if name.endswith(("cross_attention", "decoder.attention"))]
    noted = torch.cat([call.weights() for call in trace.calls(across[-1])], dim=2)
    torch.testing.assert_close(weights.detach(), noted.mean(1))
    assert torch.autograd.grad(weights.square().sum(), [*looking.parameters()], allow_unused=True)


def test_weights_are_those_of_an_intervention(looking: SequenceToSequence[Any]) -> None:
    with intervene(looking, uniform):
        _, weights = looking.forward_with_weights(SOURCE, TARGET)
    wanted = (MASK / MASK.sum(1, keepdim=True)).unsqueeze(1).expand(-1, 6, -1)
    torch.testing.assert_close(weights, wanted.double(), check_dtype=False)


@pytest.mark.slow
def test_a_loop_of_plain_pytorch_learns_to_reverse_four_symbols() -> None:
    torch.manual_seed(0)
    begin, source = 1, torch.randint(2, 6, (256, 4))
    target = torch.cat([torch.full((256, 1), begin), source.flip(1)], dim=1)
    loader = DataLoader(TensorDataset(source, target), batch_size=32, shuffle=True)
    model = build(RecurrentConfig(cell="gru", embed_dim=16, hidden_dim=32, dropout=0.0), 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = torch.nn.CrossEntropyLoss(ignore_index=0)
    for _ in range(8):
        model.train()
        for sources, targets in loader:
            logits = model(sources, targets[:, :-1], teacher_forcing_ratio=0.7)
            loss = criterion(logits.flatten(0, 1), targets[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    model.eval()
    every = torch.cartesian_prod(*[torch.arange(2, 6)] * 4)
    with torch.no_grad():
        logits = model(every, torch.full((256, 4), begin), teacher_forcing_ratio=0.0)
    assert (logits.argmax(-1) == every.flip(1)).all(1).float().mean() > 0.9


def test_a_classifier_makes_its_mask_of_the_padding_id_alike() -> None:
    torch.manual_seed(0)
    classifier = build_classifier(ClassifierConfig(embed_dim=8, num_heads=2), 13, 3).eval()
    found = classifier(SOURCE)
    torch.testing.assert_close(found, classifier(SOURCE, MASK))
    torch.testing.assert_close(found[1:2], classifier(SOURCE[1:2, :3]))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "ratio above 1": ({"teacher_forcing_ratio": 1.5}, "from 0 to 1; got 1.5"),
    "ratio of NaN": ({"teacher_forcing_ratio": float("nan")}, "from 0 to 1; got nan"),
    "floats": ({"source": torch.rand(3, 5)}, "source ids, integers of shape.*float32"),
    "mask for a target": ({"target": MASK}, "target ids.*bool.*token_mask=mask"),
    "half a dimension": ({"source": SOURCE[0]}, r"shape \(5,\).*unsqueeze"),
    "one-hot": ({"target": F.one_hot(TARGET, 13)}, r"shape \(3, 6, 13\)"),
    "bytes": ({"source": SOURCE.to(torch.uint8)}, "uint8.*long"),
    "outside": ({"target": TARGET + 1}, "target ids from 0 to 12; got 13"),
    "negative": ({"source": SOURCE - 1}, "source ids from 0 to 12; got -1"),
    "batch": ({"target": TARGET[:2]}, "3 rows of source and 2 of target"),
    "no target": ({"target": TARGET[:, :0]}, "a target of at least one token"),
    "no begin": ({"target": torch.zeros_like(TARGET)}, "begin.* with a token; got 0.*row 0"),
    "left padding": ({"source": SOURCE.flip(1)}, "behind the tokens.*row 1|row 1.*behind"),
    "short mask": ({"token_mask": MASK[:, :4]}, "token_mask of bool and shape"),
}


@pytest.mark.parametrize(("given", "reported"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_reported_in_one_sentence(
    model: SequenceToSequence[Any], given: dict[str, Any], reported: str
) -> None:
    with pytest.raises(AttlasError, match=reported):
        model(**({"source": SOURCE, "target": TARGET} | given))


def test_the_order_of_arguments_of_before_is_reported(model: SequenceToSequence[Any]) -> None:
    with pytest.raises(AttlasError, match="token_mask=mask"):
        model(SOURCE, MASK)


def test_weights_of_a_model_without_attention_are_refused() -> None:
    with pytest.raises(AttlasError, match="a model with attention"):
        made(EVERY["plain"]).forward_with_weights(SOURCE, TARGET)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_a_mask_of_zeros_and_ones_says_what_a_mask_of_bools_says(model, dtype):
    """As tokenizers give it: attention_mask."""
    model.eval()
    expected = model(SOURCE, TARGET, token_mask=MASK)
    assert torch.equal(model(SOURCE, TARGET, token_mask=MASK.to(dtype)), expected)
    encoded = model.decode(TARGET, model.encode(SOURCE, MASK.to(dtype)))
    assert torch.equal(model.logits(encoded), expected)
    with pytest.raises(AttlasError, match="0 and 1; got integers from 0 to 2"):
        model(SOURCE, TARGET, token_mask=2 * MASK.to(dtype))
    with pytest.raises(AttlasError, match="float32 of shape"):
        model(SOURCE, TARGET, token_mask=MASK.float())


def test_a_classifier_reads_a_mask_of_zeros_and_ones_too():
    torch.manual_seed(1)
    classifier = build_classifier(ClassifierConfig(embed_dim=8, num_heads=2), 13, 3).eval()
    expected = classifier(SOURCE, MASK)
    assert torch.equal(classifier(SOURCE, MASK.long()), expected)
