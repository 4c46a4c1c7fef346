"""What holds within `autocast`, and no longer."""

from contextlib import suppress

import pytest
import torch

from attlas.errors import AttlasError
from attlas.layers.autocast import NUMBERS, Autocast, autocast, check_autocast
from attlas.layers.half_products import halved

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("preferred", [True, False])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_on_cuda_cudnn_attends_again_after_the_block_if_it_did_before(
    name: Autocast, preferred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a GPU torch would warn, and leave its autocast out.
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(preferred)
    try:
        with suppress(KeyError), autocast(name, GPU):
            assert not torch.backends.cuda.cudnn_sdp_enabled()
            assert torch.is_autocast_enabled("cuda")
            assert torch.get_autocast_dtype("cuda") == NUMBERS[name]
            raise KeyError
        assert torch.backends.cuda.cudnn_sdp_enabled() is preferred
        assert not torch.is_autocast_enabled("cuda")
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def test_on_a_cpu_the_linear_maps_alone_are_of_fewer_bits() -> None:
    with autocast("bf16", CPU):
        assert halved()
        assert not torch.is_autocast_enabled("cpu")
    for device in (CPU, GPU):
        with autocast("none", device):
            assert not halved()
            assert not torch.is_autocast_enabled(device.type)


def test_float16_on_a_cpu_is_refused() -> None:
    with pytest.raises(AttlasError, match="a CUDA device for there = 'fp16'; got device 'cpu'"):
        check_autocast("fp16", CPU, "there")
