"""A model that is a table: every probability is written down, so that search can be refereed."""

from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Literal

import torch
from torch import Tensor, nn

from attlas.data.vocabulary import BEGIN, END, UNKNOWN
from attlas.models.encoder_decoder import SequenceToSequence, join_optional
from attlas.ops.cache import pad_and_concat
from attlas.recording import AttentionHook, DenseAttentionMap

WORDS = (UNKNOWN, 4, 5)
VOCABULARY = 6
CELLS = 4001


@dataclass(frozen=True)
class TableState:
    cell: Tensor  # (batch,): a number for the source and everything decoded so far
    token_mask: Tensor
    coverage: Tensor | None

    def with_coverage(self) -> "TableState":
        return self

    def select(self, rows: Tensor) -> "TableState":
        coverage = None if self.coverage is None else self.coverage[rows]
        return TableState(self.cell[rows], self.token_mask[rows], coverage)

    def concat(self, other: "TableState") -> "TableState":
        token_mask = pad_and_concat(self.token_mask, other.token_mask)
        coverage = join_optional(self.coverage, other.coverage, pad_and_concat)
        return TableState(pad_and_concat(self.cell, other.cell), token_mask, coverage)


class TableModel(SequenceToSequence[TableState]):
    """P(next | source, everything before) is a row of a table, random unless it is given."""

    def __init__(self, seed: int = 0, looks: bool = True, sharpness: float = 1.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shape = (CELLS, VOCABULARY)
        self.table = sharpness * torch.randn(shape, generator=generator, dtype=torch.float64)
        self.attention = torch.rand(CELLS, 64, generator=generator, dtype=torch.float64)
        self.looks = looks
        self.eval()

    def encode(self, source: Tensor, token_mask: Tensor | None = None) -> TableState:
        token_mask = torch.ones_like(source, dtype=torch.bool) if token_mask is None else token_mask
        place = torch.arange(1, source.shape[1] + 1)
        cell = (source * place * place * token_mask).sum(1) % CELLS
        coverage = torch.zeros(source.shape, dtype=torch.float64) if self.looks else None
        return TableState(cell, token_mask, coverage)

    def step(self, tokens: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        cell = (state.cell * 7 + tokens + 1) % CELLS
        coverage = state.coverage
        if coverage is not None:
            weights = self.attention[cell, : state.token_mask.shape[1]] * state.token_mask
            coverage = coverage + weights / weights.sum(1, keepdim=True)
        return self.table[cell], replace(state, cell=cell, coverage=coverage)

    def decode(self, target: Tensor, state: TableState) -> Tensor:
        rows = []
        for tokens in target.T:
            logits, state = self.step(tokens, state)
            rows.append(logits)
        return torch.stack(rows, dim=1)

    def logits(self, features: Tensor) -> Tensor:
        return features

    def attention_kind(self, layer: str) -> Literal["source", "target", "across"]:
        return "across"


def sources(*lengths: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Padded random sources that end with END, and which of their keys are real."""
    generator = torch.Generator().manual_seed(seed)
    token_mask = torch.arange(max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
    ids = torch.randint(4, 50, token_mask.shape, generator=generator) * token_mask
    ids[torch.arange(len(lengths)), torch.tensor(lengths) - 1] = END
    return ids, token_mask


def log_probability(
    model: TableModel, source: Tensor, tokens: tuple[int, ...], ended: bool
) -> tuple[float, Tensor | None]:
    """Σ log P of a sentence (and of END), one token at a time, and the coverage after it."""
    state = model.encode(source.unsqueeze(0))
    total, last = 0.0, BEGIN
    for token in (*tokens, END) if ended else tokens:
        logits, state = model.step(torch.tensor([last]), state)
        total += float(logits.log_softmax(-1)[0, token])
        last = token
    return total, None if state.coverage is None else state.coverage[0]


def all_sentences(max_positions: int, shortest: int = 0) -> list[tuple[int, ...]]:
    """Every sentence over the three words."""
    lengths = range(shortest, max_positions + 1)
    return [sentence for length in lengths for sentence in product(WORDS, repeat=length)]


class LookingTable(TableModel):
    """A table whose attention can be heard, as one attention map of the layer "look" per pass."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.look = nn.ModuleDict({"hook": AttentionHook()})

    def decode(self, target: Tensor, state: TableState) -> Tensor:
        seen = [state.coverage]
        rows = []
        for tokens in target.T:
            logits, state = self.step(tokens, state)
            rows.append(logits)
            seen.append(state.coverage)
        steps = torch.stack([after - before for before, after in pairwise(seen)], dim=1)
        hook = self.look["hook"]
        assert isinstance(hook, AttentionHook)
        if hook.is_recording:
            hook.record(DenseAttentionMap(steps.unsqueeze(1)))
        return torch.stack(rows, dim=1)
