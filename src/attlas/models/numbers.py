"""The numbers that settings of models hold."""

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
