"""Dropout."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attlas.errors import AttlasError

_STEPS = 1 << 16  # the random numbers are whole and below this

_thread_state = threading.local()


@contextmanager
def dropout_generator(generator: torch.Generator) -> Iterator[None]:
    """Within the block, `Dropout` on a CPU draws from this generator, in this thread alone.

    torch's own generator is shared by all threads: if several train at the same time, their draws
    would depend on timing.
    """
    previous = getattr(_thread_state, "generator", None)
    _thread_state.generator = generator
    try:
        yield
    finally:
        _thread_state.generator = previous


class Dropout(nn.Module):
    """y = x · m / (1 − p),  m = 0 with probability p, else 1, at each place    Srivastava et al.,
    2014; in evaluation y = x.

    On a CPU torch draws its random numbers one after the other, which costs more than the matrix
    products around it; see `dropout_mask` for what happens here. p is rounded to a multiple of
    1 / 65,536, and so is the scale. On other devices this is torch's own.
    """

    def __init__(self, p: float) -> None:
        if not 0.0 <= p <= 1.0:
            raise AttlasError("a dropout from 0 to 1", str(p), "use e.g. 0.1")
        super().__init__()
        self.p = p

    @property
    def active_p(self) -> float:
        """The dropout probability now: p in training, 0 in evaluation."""
        return self.p if self.training else 0.0

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Some of x set to zero, the others scaled up."""
        if not self.active_p:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        dropped = dropout_mask(x, self.p)
        return x if dropped is None else x * dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


class WordDropout(Dropout):
    """y_t = x_t · m_t / (1 − p),  m_t = 0 with probability p, else 1, for each vector of a text; in
    evaluation y = x.

    Words are left out whole, so that none decides alone and a decoder cannot rely on what it wrote:
    after Iyyer et al. (2015), who take the mean of those that are left, and Gal & Ghahramani
    (2016), who leave out a word wherever it stands. Here each place is drawn by itself, and scaled
    as `Dropout` does.
    """

    def forward(self, x: Float[Tensor, "*positions dim"]) -> Float[Tensor, "*positions dim"]:
        """Some vectors of x set to zero, the others scaled up."""
        return x * super().forward(x.new_ones((*x.shape[:-1], 1))) if self.active_p else x


def dropout_mask(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"] | None:
    """m / (1 − p) for a tensor like x, on a CPU; None where p rounds to 0.

    torch's generator, or that of `dropout_generator`, gives a seed, so that `torch.manual_seed`
    rules this too; from it SFC64 (of NumPy) fills the mask with 16-bit numbers, and those below
    65,536 p are dropped.
    """
    dropped = dropped_steps(p)
    if not dropped:
        return None
    if dropped == _STEPS:
        return torch.zeros_like(x)
    generator = getattr(_thread_state, "generator", None)
    seed = int(torch.randint(1 << 62, (), generator=generator))
    words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    # NumPy makes numbers of truth values in a fifth of torch's time.
    keep_mask = words.view(np.int16)[: x.numel()] >= dropped - _STEPS // 2
    dtype = np.float64 if x.dtype == torch.float64 else np.float32
    scaled = np.multiply(keep_mask, dtype(_STEPS / (_STEPS - dropped)))
    return torch.from_numpy(scaled).view(x.shape).to(x.dtype)


def dropped_steps(p: float) -> int:
    """How many of the 65,536 random numbers are dropped; 0: p is so small that none is."""
    return round(p * _STEPS)
