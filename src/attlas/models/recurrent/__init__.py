"""Recurrent encoder–decoders: Bahdanau's, Luong's, and the plain one that cannot look."""

from attlas.models.recurrent.building import build_recurrent
from attlas.models.recurrent.config import LocalConfig, RecurrentConfig
from attlas.models.recurrent.model import RecurrentModel
from attlas.models.recurrent.state import RecurrentState

__all__ = ["LocalConfig", "RecurrentConfig", "RecurrentModel", "RecurrentState", "build_recurrent"]
