"""The head of a model of Hugging Face: its map from tokens to a vocabulary."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def no_logits(model: nn.Module) -> Iterator[None]:
    """Give the head no tokens, so that (batch, 0, vocabulary) logits come of a pass.

    The head comes after all layers, so that each of them is computed as ever. A model that is a
    body, without a head, is left alone, and so is one whose head is another thing than a linear map
    (FSMT and UDOP name an embedding, which is read before the layers too).
    """
    head = model.get_output_embeddings()  # type: ignore[operator]
    if not isinstance(head, nn.Linear):
        yield
        return
    handle = head.register_forward_pre_hook(_of_nothing)
    try:
        yield
    finally:
        handle.remove()


def _of_nothing(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    tokens, *others = given
    return (tokens[:, :0], *others)
