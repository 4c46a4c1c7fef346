"""A hand-written loop around Hugging Face's Marian, over attlas's batches."""

import options

settings, pace = options.read()

import by_hand  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from transformers import MarianConfig, MarianMTModel  # noqa: E402

from attlas.data import Batch  # noqa: E402


class Marian(nn.Module):
    """Marian, with our ids."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.marian = MarianMTModel(
            MarianConfig(
                vocab_size=size, d_model=256, encoder_layers=3, decoder_layers=3,
                encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024,
                decoder_ffn_dim=1024, dropout=0.1, attention_dropout=0.1, activation_dropout=0.1,
                activation_function="relu", scale_embedding=True, pad_token_id=0, eos_token_id=3,
                decoder_start_token_id=2, forced_eos_token_id=None,
            )
        )  # fmt: skip

    def forward(self, batch: Batch) -> Tensor:
        """The logits."""
        found: Tensor = self.marian(
            batch.source, attention_mask=batch.source_mask.long(),
            decoder_input_ids=batch.target[:, :-1], use_cache=False,
        ).logits  # fmt: skip
        return found


batches, size = by_hand.batches(settings.corpus, settings.tokens)
by_hand.train(Marian(size), batches, pace)
