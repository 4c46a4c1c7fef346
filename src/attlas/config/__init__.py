"""Settings: frozen values, read from TOML, written back, overridden from the command line."""

from attlas.config.base import (
    Config,
    descriptions,
    drop_idle_settings,
    explanations,
    nearest_settings,
)
from attlas.config.toml import Overridden, overridden, read_toml, write_toml

__all__ = [
    "Config",
    "Overridden",
    "descriptions",
    "drop_idle_settings",
    "explanations",
    "nearest_settings",
    "overridden",
    "read_toml",
    "write_toml",
]
