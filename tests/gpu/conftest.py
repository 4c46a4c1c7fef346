"""What needs a GPU is not even collected where there is none: CI leaves out nothing else."""

from collections.abc import Iterator

import pytest
import torch

collect_ignore_glob = [] if torch.cuda.is_available() else ["test_*.py"]


@pytest.fixture(autouse=True)
def all_bits() -> Iterator[None]:
    """cuDNN's recurrent layers round what they multiply to 10 bits, as torch has it by itself."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


@pytest.fixture(autouse=True, scope="session")
def woken() -> None:
    """torch warns where the first that the thread of autograd does on a GPU is a product."""
    torch.ones(2, device="cuda", requires_grad=True).sin().sum().backward()
