"""Settings: frozen pydantic models, read from TOML and overridden on the command line."""

from attlas.config.config import Config
from attlas.config.json import parse_json
from attlas.config.override import overridden
from attlas.config.toml import read_toml, write_toml

__all__ = ["Config", "overridden", "parse_json", "read_toml", "write_toml"]
