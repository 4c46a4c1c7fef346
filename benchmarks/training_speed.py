"""How many target tokens a second a training update takes in, beside peers.

The same batches (joint BPE of 8,000, at most 4,096 padded tokens a side, buckets by length), the
same architecture (3 + 3 layers, width 256, 4 heads, feed-forward 1,024, ReLU, tied embeddings,
dropout 0.1 on embeddings, residuals, weights and inside the feed-forward), label smoothing 0.1,
clipping, Adam. Padding does not count.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from turns import serve, table, take_turns

from attlas.data import (
    Batch,
    Batches,
    BatchingConfig,
    FilesData,
    VocabularyConfig,
    build_vocabularies,
    encode_corpus,
)
from attlas.layers import SinusoidalPositions
from attlas.models import TransformerConfig, build

UPDATES = 4  # per block
SHAPE = {"width": 256, "heads": 4, "feedforward": 1024}
DROPOUT = 0.1


def batches(data: tuple[Path, Path]) -> tuple[list[Batch], int]:
    """The first batches of an epoch, and the size of the vocabulary."""
    names = [str(path) for path in data]
    corpus = FilesData(train=names, valid=names).load().train
    vocabularies = build_vocabularies(
        VocabularyConfig(kind="bpe", size=8000, joint=True), corpus.pairs
    )
    made = Batches(encode_corpus(corpus, vocabularies), BatchingConfig(tokens=4096), seed=1)
    return [made.batch(rows) for rows in made.epoch(0)[:64]], len(vocabularies.target)


def attlas(size: int, dropout: float) -> Callable[[Batch, int], None]:
    """Ours, as `attlas train` updates."""
    from attlas.training import TrainingConfig
    from attlas.training.allocator import keep_freed_memory
    from attlas.training.learner import Learner

    keep_freed_memory()
    config = TransformerConfig(
        **SHAPE, placement="post", dropout=dropout, attention_dropout=dropout,
        feedforward_dropout=dropout, tied_source=True,
    )  # fmt: skip
    settings = TrainingConfig(updates=10**6, rate=1e-4, smoothing=0.1)
    learner = Learner(build(config, size, size), settings, 1, torch.device("cpu"))

    def update(batch: Batch, number: int) -> None:
        learner.update([batch], number)

    return update


class Plain(nn.Module):
    """torch's Transformer between embeddings, as tutorials write it."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, 256, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=256**-0.5)
        self.positions = SinusoidalPositions(256)
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(256, 4, 3, 3, 1024, dropout, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, source: Tensor, real: Tensor, target: Tensor, heard: Tensor) -> Tensor:
        x, y = (self.dropout(self.positions(self.embedding(ids) * 16)) for ids in (source, target))
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).isinf()
        hidden = self.transformer(
            x, y, tgt_mask=mask, src_key_padding_mask=~real, memory_key_padding_mask=~real,
            tgt_key_padding_mask=~heard, tgt_is_causal=True,
        )  # fmt: skip
        return F.linear(hidden, self.embedding.weight, self.bias)


def by_hand(model: nn.Module, logits: Callable[[Batch], Tensor]) -> Callable[[Batch, int], None]:
    """The loop of a tutorial."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
    model.train()

    def update(batch: Batch, number: int) -> None:
        optimiser.zero_grad()
        loss = F.cross_entropy(
            logits(batch).flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=0,
            label_smoothing=0.1,
        )  # fmt: skip
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        loss.item()

    return update


def plain(size: int, dropout: float) -> Callable[[Batch, int], None]:
    """A hand-written loop around `nn.Transformer`."""
    model = Plain(size, dropout)
    return by_hand(
        model,
        lambda b: model(b.source, b.source_real, b.target[:, :-1], b.target_real[:, :-1]),
    )


def marian(size: int, dropout: float) -> Callable[[Batch, int], None]:
    """A hand-written loop around Hugging Face's Marian."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=size, d_model=256, encoder_layers=3, decoder_layers=3,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024,
        decoder_ffn_dim=1024, dropout=dropout, attention_dropout=dropout,
        activation_dropout=dropout, activation_function="relu", scale_embedding=True,
        pad_token_id=0, eos_token_id=3, decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config)

    def logits(batch: Batch) -> Tensor:
        found: Any = model(
            batch.source, attention_mask=batch.source_real.long(),
            decoder_input_ids=batch.target[:, :-1], use_cache=False,
        )  # fmt: skip
        return found.logits

    return by_hand(model, logits)


CONTENDERS = {"attlas": attlas, "nn.Transformer": plain, "Marian": marian}


def main() -> None:
    """Take turns; or, as one of the contenders, answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs=2, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--dropout", type=float, default=DROPOUT)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--contender", choices=CONTENDERS)
    options = parser.parse_args()
    if options.contender is None:
        same = [
            "--data", *map(str, options.data), "--threads", str(options.threads),
            "--dropout", str(options.dropout),
        ]  # fmt: skip
        commands = {
            name: [sys.executable, __file__, *same, "--contender", name] for name in CONTENDERS
        }
        print(table(take_turns(commands, options.blocks), "target tokens/s"))
        return
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    some, size = batches(tuple(options.data))
    update = CONTENDERS[options.contender](size, options.dropout)

    def block(number: int) -> float:
        chosen = [some[(number * UPDATES + i) % len(some)] for i in range(UPDATES)]
        start = time.perf_counter()
        for i, batch in enumerate(chosen):
            update(batch, 1 + number * UPDATES + i)
        return sum(batch.tokens for batch in chosen) / (time.perf_counter() - start)

    serve(block)


if __name__ == "__main__":
    main()
