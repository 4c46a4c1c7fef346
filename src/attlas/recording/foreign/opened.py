"""`F.multi_head_attention_forward`, run so that what it calls can be seen."""

from types import FunctionType
from typing import Any

import torch.nn.functional as F

_WHOLE = F.multi_head_attention_forward


def _nobody(*_: Any) -> bool:
    return False


def opened(function: Any) -> Any:
    """The same code, which does not hand itself over to whoever overrides torch's functions.

    What its module names is asked for now: a kernel may have been put there since.

    A function of torch that finds an override gives itself to it as a whole, and an override that
    then calls it is out of the way while it runs. This one runs its own lines, under the override.
    """
    names = {**function.__globals__, "has_torch_function": _nobody}
    twin = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def multi_head_attention_forward(*args: Any, **kwargs: Any) -> Any:
    """`F.multi_head_attention_forward`, opened; torch's own, whatever has been put around it."""
    return opened(_WHOLE)(*args, **kwargs)
