"""How many shapes the batches of an epoch are padded to for CUDA graphs, and how much is padding.

python benchmarks/padded_shapes.py train.en.gz train.de.gz [--tokens 2048 4096 16384]

Padding is told in positions of source and target, beyond the tokens that are there: of the batches
as they are, and in the shapes of `attlas.training.cuda_graphs`. It counts, and trains nothing.
"""

import argparse
from collections import Counter
from collections.abc import Iterable

from attlas.data import (
    Batch,
    Batches,
    BatchingConfig,
    FilesData,
    VocabularyConfig,
    build_vocabularies,
    encode_corpus,
)
from attlas.training.cuda_graphs import BatchShapes


def counted(batches: Iterable[Batch], shapes: BatchShapes) -> dict[str, float]:
    """Batches, shapes before and after, shapes of one or two batches, and padding a token."""
    before: Counter[tuple[int, ...]] = Counter()
    after: Counter[object] = Counter()
    tokens = plain = padded = 0
    for batch in batches:
        shape = shapes.of(batch)
        before[*batch.source.shape, *batch.target.shape] += 1
        after[shape] += 1
        tokens += int(batch.source_mask.sum()) + batch.tokens
        plain += batch.source.numel() + batch.decoder_input.numel()
        padded += shape.rows * (shape.source + shape.target - 1)
    return {
        "batches": after.total(),
        "shapes of the batches": len(before),
        "padded shapes": len(after),
        "of them rare": sum(count <= 2 for count in after.values()),
        "padding": plain / tokens - 1.0,
        "padding in shapes": padded / tokens - 1.0,
    }


def main() -> None:
    """Count, and print a line for each size of a batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2048, 4096, 16384, 65536])
    parser.add_argument("--vocabulary", type=int, default=8000)
    given = parser.parse_args()
    names = (given.files[0], given.files[1])
    train = FilesData(train=names, valid=names).load().train
    config = VocabularyConfig(kind="bpe", size=given.vocabulary, shared=True)
    encoded = encode_corpus(train, build_vocabularies(config, train.pairs))
    for tokens in given.tokens:
        batching = BatchingConfig(max_tokens=tokens)
        made = Batches(encoded, batching, seed=1)
        found = counted((made.batch(rows) for rows in made.epoch(0)), BatchShapes(batching))
        figures = (
            f"{name} {value:.1%}" if isinstance(value, float) else f"{name} {value:,}"
            for name, value in found.items()
        )
        print(f"{tokens:,} tokens: {', '.join(figures)}")


if __name__ == "__main__":
    main()
