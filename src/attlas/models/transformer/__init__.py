"""The Transformer: an encoder–decoder of attention alone."""

from attlas.models.transformer.building import build_transformer
from attlas.models.transformer.config import TransformerConfig
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.state import TransformerState

__all__ = ["Transformer", "TransformerConfig", "TransformerState", "build_transformer"]
