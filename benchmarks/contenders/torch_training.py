"""A hand-written loop around `nn.Transformer`, as tutorials write it, over attlas's batches."""

import options

settings, pace = options.read()

import by_hand  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from attlas.data import Batch  # noqa: E402
from attlas.layers import SinusoidalPositions  # noqa: E402


class Plain(nn.Module):
    """torch's Transformer between embeddings."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, 256, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=256**-0.5)
        self.positions = SinusoidalPositions(256)
        self.dropout = nn.Dropout(0.1)
        self.transformer = nn.Transformer(256, 4, 3, 3, 1024, 0.1, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, batch: Batch) -> Tensor:
        """The logits."""
        source, target = batch.source, batch.target[:, :-1]
        real, heard = ~batch.source_mask, ~batch.target_mask[:, :-1]
        x, y = (self.dropout(self.positions(self.embedding(ids) * 16)) for ids in (source, target))
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).isinf()
        hidden = self.transformer(
            x, y, tgt_mask=mask, src_key_padding_mask=real, memory_key_padding_mask=real,
            tgt_key_padding_mask=heard, tgt_is_causal=True,
        )  # fmt: skip
        return F.linear(hidden, self.embedding.weight, self.bias)


batches, size = by_hand.batches(settings.corpus, settings.tokens)
by_hand.train(Plain(size), batches, pace)
