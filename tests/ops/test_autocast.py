"""What holds within `autocast`, and no longer."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress

import pytest
import torch

from attlas._hardware import without_cudnn, without_cudnn_attention
from attlas.errors import AttlasError
from attlas.ops.linear import NUMBERS, Autocast, autocast, check_autocast, is_bf16_matmul

CPU, GPU = torch.device("cpu"), torch.device("cuda")


KERNELS = ("cudnn", "flash", "mem_efficient", "math")


@pytest.fixture
def allowed() -> Iterator[Callable[..., None]]:
    """Allows attention of these kernels and of no others; afterwards all is as it was."""
    enabled = [getattr(torch.backends.cuda, f"{name}_sdp_enabled")() for name in KERNELS]

    def allow(*names: str) -> None:
        for name in KERNELS:
            getattr(torch.backends.cuda, f"enable_{name}_sdp")(name in names)

    yield allow
    allow(*(name for name, was in zip(KERNELS, enabled, strict=True) if was))


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU torch would warn, and leave its autocast out."""
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)


def cudnn_attends() -> bool:
    return torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_on_cuda_cudnn_attends_again_after_the_block_if_it_did_before(
    name: Autocast, before: bool, allowed: Callable[..., None]
) -> None:
    allowed("math", *["cudnn"] * before)
    with suppress(KeyError), autocast(name, GPU):
        assert not cudnn_attends()
        assert torch.is_autocast_enabled("cuda")
        assert torch.get_autocast_dtype("cuda") == NUMBERS[name]
        with autocast(name, GPU):
            pass
        assert not cudnn_attends()
        raise KeyError
    assert cudnn_attends() is before
    assert not torch.is_autocast_enabled("cuda")
    with autocast("none", GPU):
        assert cudnn_attends() is before


@pytest.mark.parametrize(
    ("switch", "is_on"),
    [
        (without_cudnn_attention, cudnn_attends),
        (without_cudnn, lambda: torch.backends.cudnn.enabled),
    ],
)
def test_of_threads_that_overlap_the_last_one_turns_cudnn_on_again(
    switch: AbstractContextManager[None], is_on: Callable[[], bool]
) -> None:
    assert is_on()
    begun, over = threading.Event(), threading.Event()

    def other() -> None:
        with switch:
            begun.set()
            assert over.wait(10)

    with ThreadPoolExecutor(1) as pool:
        with switch:
            done = pool.submit(other)
            assert begun.wait(10)
        assert not is_on()
        over.set()
        done.result()
    assert is_on()


def test_on_a_cpu_the_linear_maps_alone_are_of_fewer_bits() -> None:
    with autocast("bf16", CPU):
        assert is_bf16_matmul()
        assert not torch.is_autocast_enabled("cpu")
    for device in (CPU, GPU):
        with autocast("none", device):
            assert not is_bf16_matmul()
            assert not torch.is_autocast_enabled(device.type)


def test_float16_on_a_cpu_is_refused() -> None:
    with pytest.raises(AttlasError, match="a CUDA device for there = 'fp16'; got device 'cpu'"):
        check_autocast("fp16", CPU, "there")
