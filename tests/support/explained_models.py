"""Small models of which it is known what their weights explain."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from attlas.models.classifier import Classifier, ClassifierConfig, build_classifier


class Pooled(nn.Module):
    """logits = read(Σ_j α_j v_j), α = softmax(scores) over the tokens; one row per example."""

    def __init__(self, scores, values, read=lambda context: context, token_mask=None):
        super().__init__()
        self.scores, self.values, self.read, self.token_mask = scores, values, read, token_mask

    def forward(self):
        keys = self.scores[:, None, :, None]
        query = torch.ones_like(keys[:, :, :1])
        mask = None if self.token_mask is None else self.token_mask[:, None, None]
        context = F.scaled_dot_product_attention(
            query, keys, self.values[:, None], attn_mask=mask, scale=1.0
        )
        return self.read(context[:, 0, 0])


def log(context):
    return context.clamp(min=1e-30).log()


def reported(weights, token_mask=None):
    """The output distribution is these weights themselves."""
    weights = torch.as_tensor(weights, dtype=torch.float64)
    values = torch.eye(weights.shape[1], dtype=torch.float64).expand(len(weights), -1, -1)
    return Pooled(log(weights), values, log, token_mask)


def classifier(dropout=0.0, **settings):
    """attlas's own, with two layers of two heads, in float64."""
    given = {
        "embed_dim": 8,
        "num_heads": 2,
        "layers": 2,
        "ffn_dim": 16,
        "dropout": dropout,
    } | settings
    model: Classifier = build_classifier(ClassifierConfig(**given), 11, 3)
    return model.double()


TEXTS = torch.tensor([[4, 5, 6, 7, 8], [9, 10, 4, 0, 0]])
REAL = TEXTS != 0

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "vocab_size": 31,
    "max_position_embeddings": 32,
}


def bert(kind="bert", **settings):
    return AutoModel.from_config(AutoConfig.for_model(kind, **SMALL, **settings)).double()


def llama():
    """In float64 throughout: transformers' own norm reckons in float32, whatever its model does."""
    config = AutoConfig.for_model("llama", **SMALL, num_key_value_heads=2)
    model = AutoModelForCausalLM.from_config(config)
    for path, module in list(model.named_modules()):
        if type(module).__name__ == "LlamaRMSNorm":
            norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
            model.set_submodule(path, norm)
    return model.double()


class MultiheadPooling(nn.Module):
    """A query of the model's own, nn.MultiheadAttention, and a linear map."""

    def __init__(self, width=8, heads=2, labels=3, dropout=0.0):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 1, width))
        self.attention = nn.MultiheadAttention(width, heads, dropout, batch_first=True)
        self.output = nn.Linear(width, labels)
        self.double()

    def forward(self, source, padding=None):
        query = self.query.expand(len(source), -1, -1)
        read = self.attention(query, source, source, key_padding_mask=padding, need_weights=False)
        return self.output(read[0][:, 0])
