"""The loop of a tutorial, over attlas's batches."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from turns import Pace

from attlas.data import (
    Batch,
    Batches,
    BatchingConfig,
    FilesData,
    VocabularyConfig,
    build_vocabularies,
    encode_corpus,
)


def batches(corpus: Path, tokens: int) -> tuple[Iterator[Batch], int]:
    """Epoch after epoch, and the size of the vocabulary."""
    names = [str(corpus / f"{side}.txt") for side in ("source", "target")]
    train = FilesData(train=names, valid=names).load().train
    config = VocabularyConfig(kind="bpe", size=8000, shared=True)
    vocabularies = build_vocabularies(config, train.pairs)
    made = Batches(encode_corpus(train, vocabularies), BatchingConfig(max_tokens=tokens), seed=1)
    endless = (made.batch(rows) for epoch in count() for rows in made.epoch(epoch))
    return endless, len(vocabularies.target)


def train(model: nn.Module, batches: Iterator[Batch], pace: Pace) -> None:
    """For ever; `model(batch)` gives the logits."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    model.train()
    for batch in pace.through(batches, lambda batch: batch.tokens):
        optimizer.zero_grad()
        loss = F.cross_entropy(
            model(batch).flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=0,
            label_smoothing=0.1,
        )  # fmt: skip
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
