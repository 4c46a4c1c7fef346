"""Models that answer: in evaluation mode, where nothing is dropped."""

from torch import nn

from attlas.errors import AttlasError


def check_evaluating(model: nn.Module) -> None:
    """That a model is in evaluation mode. Errors: `AttlasError` where it is not."""
    if model.training:
        raise AttlasError("a model in evaluation mode", "one in training mode", "call model.eval()")
