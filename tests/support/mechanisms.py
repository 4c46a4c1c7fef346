"""Every mechanism, and how to ask it something: what the contract is tested on.

A new mechanism joins the contract by one line in `MECHANISMS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from attlas.layers import (
    AdditiveAttention,
    Attention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalAttention,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    MultiheadAttention,
    RotaryPositions,
    ScaledDotProductAttention,
)
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Pattern, both, causal, either, everywhere, landmarks, strided, window


@dataclass(frozen=True)
class Mechanism:
    """How to build one, and which of its keys stand somewhere.

    ordered: the weights depend on where keys stand, also where the pattern does not.
    counts_slots: what a query reads depends on how many keys there are, as local-p does.
    """

    name: str
    make: Callable[..., Attention]
    query_dim: int
    key_dim: int
    ordered: bool = False
    counts_keys: bool = False

    def build(
        self,
        seed: int,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float64,
    ) -> Attention:
        """One with random parameters, biases too."""
        attention = self.make(pattern=pattern, dropout=dropout)
        generator = torch.Generator().manual_seed(seed)
        for parameter in attention.parameters():
            torch.nn.init.normal_(parameter, std=0.7, generator=generator)
        return attention.to(dtype)


MECHANISMS = [
    Mechanism("additive", lambda **o: AdditiveAttention(3, 2, 4, **o), 3, 2),
    Mechanism("dot", lambda **o: DotAttention(**o), 3, 3),
    Mechanism("general", lambda **o: GeneralAttention(3, 2, **o), 3, 2),
    Mechanism("concat", lambda **o: ConcatAttention(3, 2, 4, **o), 3, 2),
    Mechanism(
        "local-m", lambda **o: LocalMonotonicAttention(DotAttention(**o), 1), 3, 3, ordered=True
    ),
    Mechanism(
        "local-p",
        lambda **o: LocalPredictiveAttention(GeneralAttention(3, 2, **o), 2, 3, 4),
        *(3, 2),
        ordered=True,
        counts_keys=True,
    ),
    Mechanism(
        "local-m of concat",
        lambda **o: LocalMonotonicAttention(ConcatAttention(3, 2, 4, **o), 1),
        *(3, 2),
        ordered=True,
    ),
    Mechanism(
        "local-p of additive",
        lambda **o: LocalPredictiveAttention(AdditiveAttention(3, 2, 4, **o), 2, 3, 4),
        *(3, 2),
        ordered=True,
        counts_keys=True,
    ),
    Mechanism("scaled dot-product", lambda **o: ScaledDotProductAttention(**o), 3, 3),
    Mechanism("multi-head", lambda **o: MultiheadAttention(4, 2, kdim=3, vdim=3, **o), 4, 3),
    Mechanism(
        "grouped-query", lambda **o: MultiheadAttention(4, 4, num_kv_heads=2, bias=False, **o), 4, 4
    ),
    Mechanism(
        "multi-query",
        lambda **o: MultiheadAttention(
            3, 2, num_kv_heads=1, head_dim=3, value_dim=2, scale=0.5, **o
        ),
        *(3, 3),
    ),
    Mechanism(
        "rotary",
        lambda **o: MultiheadAttention(4, 2, positions=RotaryPositions(2), **o),
        *(4, 4),
        ordered=True,
    ),
    Mechanism(
        "rotary grouped-query",
        lambda **o: MultiheadAttention(8, 4, num_kv_heads=2, positions=RotaryPositions(2), **o),
        *(8, 8),
        ordered=True,
    ),
    Mechanism(
        "normed queries and keys", lambda **o: MultiheadAttention(4, 2, qk_norm=True, **o), 4, 4
    ),
    Mechanism(
        "rotary grouped-query with normed queries and keys",
        lambda **o: MultiheadAttention(
            8, 4, num_kv_heads=2, positions=RotaryPositions(2), qk_norm=True, **o
        ),
        *(8, 8),
        ordered=True,
    ),
]

# Each pattern beside its rule, said once more in plain Python.
PATTERNS: list[tuple[Pattern, Callable[[int, int], bool]]] = [
    (everywhere, lambda i, j: True),
    (causal, lambda i, j: j <= i),
    (window(0), lambda i, j: i == j),
    (window(1), lambda i, j: abs(i - j) <= 1),
    (strided(2), lambda i, j: i % 2 == j % 2),
    (both(causal, window(2)), lambda i, j: i - 2 <= j <= i),
    (either(window(1), landmarks(2)), lambda i, j: abs(i - j) <= 1 or 2 in (i, j)),
]


@dataclass(frozen=True)
class Layout:
    """What is asked, without the numbers: sizes, padding, pattern and the first position."""

    seed: int
    batch: int
    queries: int
    num_keys: int
    token_mask: Tensor | None
    pattern: Pattern
    query_offset: int | None

    def tensor(self, *shape: int, salt: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
        """Normal numbers of this layout."""
        generator = torch.Generator().manual_seed(self.seed + 7919 * salt)
        return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)

    def on(self, mechanism: Mechanism, dropout: float = 0.0) -> "Scene":
        """The layout with the numbers for one mechanism."""
        return Scene(
            mechanism.build(self.seed, self.pattern, dropout),
            self.tensor(self.batch, self.queries, mechanism.query_dim, salt=1),
            self.tensor(self.batch, self.num_keys, mechanism.key_dim, salt=2),
            self.token_mask,
            self.query_offset,
            self.pattern,
        )


@st.composite
def layouts(
    draw: Any,
    patterns: list[Pattern] | None = None,
    square: bool = False,
    most: tuple[int, int, int] = (3, 4, 7),
) -> Layout:
    """Any layout of at most `most` rows, queries and keys; square: as many queries as keys."""
    batch, queries, num_keys = (draw(st.integers(1, size)) for size in most)
    bits = draw(st.none() | st.integers(0, 2 ** (batch * num_keys) - 1))
    token_mask = None
    if bits is not None:
        token_mask = torch.tensor([bool(bits >> n & 1) for n in range(batch * num_keys)])
        token_mask = token_mask.reshape(batch, num_keys)
    return Layout(
        seed=draw(st.integers(0, 2**20)),
        batch=batch,
        queries=num_keys if square else queries,
        num_keys=num_keys,
        token_mask=token_mask,
        pattern=draw(st.sampled_from(patterns or [pattern for pattern, _ in PATTERNS])),
        query_offset=None if square else draw(st.none() | st.integers(-2, num_keys + 2)),
    )


@dataclass(frozen=True)
class Scene:
    """A mechanism, its queries and its source."""

    attention: Attention
    query: Tensor
    source: Tensor
    token_mask: Tensor | None
    query_offset: int | None
    pattern: Pattern

    @property
    def memory(self) -> KeyValueCache:
        return self.project_kv(0, self.source.shape[1])

    def project_kv(self, start: int, stop: int) -> KeyValueCache:
        """The keys from start to stop, remembered where they stand."""
        source = self.source[:, start:stop]
        token_mask = None if self.token_mask is None else self.token_mask[:, start:stop]
        if isinstance(self.attention, MultiheadAttention):
            return self.attention.project_kv(source, token_mask, key_offset=start)
        return self.attention.project_kv(source, token_mask)

    def read(self) -> Tensor:
        context: Tensor = self.attention.attend(self.query, self.memory, self.query_offset)
        return context

    def attention_weights(self) -> Tensor:
        return self.attention.attention_weights(self.query, self.memory, self.query_offset)

    def outcome(self, read: "Callable[[Scene], Tensor]" = read) -> list[Tensor]:
        """What is read, and the gradients at the query, the source and every parameter.

        read: another way to read what a scene holds.
        """
        query, source = self.query.clone().requires_grad_(), self.source.clone().requires_grad_()
        context = read(replace(self, query=query, source=source))
        inputs = [query, source, *self.attention.parameters()]
        # A loss in which no two outputs weigh the same.
        loss = (
            context * torch.linspace(1, 2, context.numel(), device=context.device).view_as(context)
        ).sum()
        gradients = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
        return [context.detach(), *gradients]

    def allowed(self) -> Tensor:
        """Which keys each query sees, (batch, 1, queries, keys), found pair by pair."""
        rule = dict(PATTERNS)[self.pattern]
        batch, queries, num_keys = *self.query.shape[:2], self.source.shape[1]
        query_offset = num_keys - queries if self.query_offset is None else self.query_offset
        token_mask = (
            torch.ones(batch, num_keys, dtype=torch.bool)
            if self.token_mask is None
            else self.token_mask
        )
        seen = torch.tensor(
            [[[rule(query_offset + i, j) for j in range(num_keys)] for i in range(queries)]]
        ) & token_mask.unsqueeze(1)
        if isinstance(self.attention, LocalAttention):
            place = token_mask.cumsum(1) - 1
            centre = self.attention.centre(self.query, self.memory, self.query_offset)
            far = (place.unsqueeze(1) - centre.unsqueeze(-1)).abs() > self.attention.radius
            seen = seen & ~far
        return seen.unsqueeze(1)

    def nothing(self) -> Tensor:
        """What a query that sees nothing reads: zeros, behind the output layer if there is one."""
        if (
            isinstance(self.attention, MultiheadAttention)
            and self.attention.out_proj.bias is not None
        ):
            return self.attention.out_proj.bias
        return torch.zeros(self.read().shape[-1], dtype=self.query.dtype)
