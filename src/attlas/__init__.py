"""attlas trains attention models, and shows where they look.

    import attlas

    context = attlas.scaled_dot_product_attention(query, key, value)   # NumPy arrays or tensors
    translator = attlas.Translator("runs/demo")             # a run on disk
    translation = translator("The cat is sleeping on the sofa.")
    classifier = attlas.TextClassifier("runs/imdb")
    label = classifier("A lovely film.").label
    figure = attlas.figures.heatmap(...)

Each name is imported when it is first used, so that `import attlas` costs nothing.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attlas import (
        analysis,
        config,
        corpus_statistics,
        data,
        decoding,
        explorer,
        export,
        figures,
        inference,
        lab,
        layers,
        metrics,
        models,
        monitoring,
        ops,
        patterns,
        recording,
        reference,
        runs,
        training,
    )
    from attlas._hardware import disable_malloc_trim
    from attlas.decoding import DecodingConfig
    from attlas.errors import AttlasError
    from attlas.explorer import show
    from attlas.inference import TextClassifier, Translator
    from attlas.layers import (
        scaled_dot_product_attention,
        scaled_dot_product_attention_with_weights,
    )
    from attlas.monitoring import watch
    from attlas.recording import Trace, intervene, observe
    from attlas.recording.attention_interface import (
        attention_weights_in_every_call,
        register_attention_interface,
    )
    from attlas.recording.hook_patterns import hook_patterns
    from attlas.runs import Run
    from attlas.training import Recipe, read_recipe, train

__all__ = [
    "AttlasError",
    "DecodingConfig",
    "Recipe",
    "Run",
    "TextClassifier",
    "Trace",
    "Translator",
    "analysis",
    "attention_weights_in_every_call",
    "config",
    "corpus_statistics",
    "data",
    "decoding",
    "disable_malloc_trim",
    "explorer",
    "export",
    "figures",
    "hook_patterns",
    "inference",
    "intervene",
    "lab",
    "layers",
    "metrics",
    "models",
    "monitoring",
    "observe",
    "ops",
    "patterns",
    "read_recipe",
    "recording",
    "reference",
    "register_attention_interface",
    "runs",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_with_weights",
    "show",
    "train",
    "training",
    "watch",
]

_HOME = {
    "AttlasError": "errors",
    "DecodingConfig": "decoding",
    "Recipe": "training",
    "Run": "runs",
    "TextClassifier": "inference",
    "Trace": "recording",
    "Translator": "inference",
    "attention_weights_in_every_call": "recording.attention_interface",
    "hook_patterns": "recording.hook_patterns",
    "scaled_dot_product_attention": "layers",
    "scaled_dot_product_attention_with_weights": "layers",
    "intervene": "recording",
    "disable_malloc_trim": "_hardware",
    "observe": "recording",
    "read_recipe": "training",
    "register_attention_interface": "recording.attention_interface",
    "show": "explorer",
    "train": "training",
    "watch": "monitoring",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("attlas")
    if name in _HOME:
        return getattr(import_module(f"attlas.{_HOME[name]}"), name)
    if name in __all__:
        return import_module(f"attlas.{name}")
    raise AttributeError(f"module 'attlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
