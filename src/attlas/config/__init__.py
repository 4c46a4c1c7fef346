"""Settings: frozen values, read from TOML, written back, overridden from the command line."""

from attlas.config.config import Config
from attlas.config.json import parse_json, stored_bytes, utf8_text
from attlas.config.override import Overridden, overridden
from attlas.config.place import nearest, regrouped
from attlas.config.toml import read_toml, write_toml

__all__ = [
    "Config",
    "Overridden",
    "nearest",
    "overridden",
    "parse_json",
    "read_toml",
    "regrouped",
    "stored_bytes",
    "utf8_text",
    "write_toml",
]
