"""Settings: frozen values, read from TOML, written back, overridden from the command line."""

from attlas.config.base import Config, nearest, regrouped
from attlas.config.toml import Overridden, overridden, read_toml, write_toml

__all__ = [
    "Config",
    "Overridden",
    "nearest",
    "overridden",
    "read_toml",
    "regrouped",
    "write_toml",
]
