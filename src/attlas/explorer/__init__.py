"""The explorer: a web page of one's own that shows where a model looks."""

from attlas.explorer.app import app
from attlas.explorer.notebook import show
from attlas.explorer.server import serve

__all__ = [
    "app",
    "serve",
    "show",
]
