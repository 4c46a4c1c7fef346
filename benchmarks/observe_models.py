"""Models that are observed and models that are not: (batch, length).

They have 6 layers, and weights as they are drawn: what looking costs does not depend on those.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from cases import PASSES, Shape, Suite, Work
from torch import Tensor, nn

import attlas
from attlas.models.transformer.config import parse_patterns
from attlas.models.transformer.factory import build_encoder
from attlas.models.transformer.model_config import TransformerConfig

LAYERS, WIDTH, HEADS, VOCABULARY = 6, 384, 12, 1000
Model = Callable[[], nn.Module]


def of_huggingface(attention: str, width: int = WIDTH) -> nn.Module:
    """An encoder of Hugging Face's transformers, with this implementation of attention."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    config = BertConfig(
        hidden_size=width, num_hidden_layers=LAYERS, num_attention_heads=width // (WIDTH // HEADS),
        intermediate_size=4 * width, vocab_size=VOCABULARY, max_position_embeddings=4096,
        attn_implementation=attention,
    )  # fmt: skip
    return BertModel(config, add_pooling_layer=False).eval()


def of_torch() -> nn.Module:
    """PyTorch's own."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), encoder).eval()


class OfAttlas(nn.Module):
    """attlas's own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        config = TransformerConfig(
            embed_dim=WIDTH, num_heads=HEADS, ffn_dim=4 * WIDTH, encoder_layers=LAYERS
        )
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder = build_encoder(config, parse_patterns(config.encoder_patterns, LAYERS))
        self.eval()

    def forward(self, source: Tensor) -> Tensor:
        """The last states."""
        found: Tensor = self.encoder(self.embedding(source), None)
        return found


def states(answer: object) -> Tensor:
    """What a model says, whoever's it is."""
    found = answer if isinstance(answer, Tensor) else getattr(answer, "last_hidden_state")  # noqa: B009
    assert isinstance(found, Tensor)
    return found


def tokens(shape: Shape) -> Tensor:
    """The same in every process."""
    torch.manual_seed(1)
    return torch.randint(VOCABULARY, shape)


def plain(model: Model) -> Callable[[Shape], Work]:
    """Nobody looks."""

    def work(shape: Shape) -> Work:
        made, source = model(), tokens(shape)
        return Work(lambda: states(made(source)), list(made.parameters()))

    return work


def observed(model: Model) -> Callable[[Shape], Work]:
    """All layers are kept."""

    def work(shape: Shape) -> Work:
        made, source = model(), tokens(shape)

        def run() -> Tensor:
            with attlas.observe(made) as trace:
                answer = states(made(source))
            assert len(trace) == LAYERS
            return answer

        return Work(run, list(made.parameters()))

    return work


def with_weights(model: Model) -> Callable[[Shape], Work]:
    """Every layer's weights are returned, as transformers does it."""

    def work(shape: Shape) -> Work:
        made, source = model(), tokens(shape)

        def run() -> Tensor:
            answer = made(source, output_attentions=True)
            assert len(answer.attentions) == LAYERS
            return states(answer)

        return Work(run, list(made.parameters()))

    return work


def looking(model: Model, more: dict[str, Callable[[Shape], Work]] | None = None) -> Suite:
    """A model that is observed, and the same that is not."""
    return Suite(
        "batch × length",
        {"observed": observed(model), "not observed": plain(model), **(more or {})},
        plain(model),
        quick=((1, 512), (1, 2048)),
        more=((1, 4096),),
        memory=((1, 2048), (1, 4096)),
        passes=PASSES[:1],
        blocks=7,
    )


MODELS = {
    "transformers' BERT": looking(
        lambda: of_huggingface("sdpa"),
        {"output_attentions with eager attention": with_weights(lambda: of_huggingface("eager"))},
    ),
    "transformers' BERT, 256 wide, of a sentence": replace(
        looking(lambda: of_huggingface("sdpa", 256)), quick=((1, 64),), more=(), memory=()
    ),
    "nn.TransformerEncoder": looking(of_torch),
    "attlas's encoder": looking(OfAttlas),
}
