"""Checks of model settings that would have no effect."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from attlas.config import Config
from attlas.errors import AttlasError, ConfigError


def refuse_idle(config: Config, combination: str, cures: Mapping[str, str]) -> None:
    """Refuse these settings of `config` if they are set, because another setting makes them
    meaningless.

    Args:
        combination: The setting that makes them idle.
        cures: For each name what would give it an effect.

    Raises:
        AttlasError: If not.
    """
    fields = type(config).model_fields
    for name, cure in cures.items():
        value = getattr(config, name)
        if value != fields[name].default:
            raise ConfigError(
                f"no {name} with {combination}, where it has no effect",
                f"{name} = {_toml(value)}",
                f"leave {name} out, or {cure}",
            )


def _toml(value: Any) -> str:
    if isinstance(value, Config):
        return f"{{{', '.join(f'{k} = {_toml(v)}' for k, v in value)}}}"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def refuse_settings(model: type, parts: Iterable[object], builder: str) -> None:
    """Raise `AttlasError` if settings are given to a model, which is made of its parts."""
    for part in parts:
        if isinstance(part, Config):
            settings = type(part).__name__
            raise AttlasError(
                f"the parts of a {model.__name__}",
                f"its settings, a {settings}",
                f"let attlas.models.{builder} make it",
            )


# The numbers that settings of models hold.


Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
