"""The machine: memory, processor, devices, and what torch may do on them."""

import ctypes
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.errors import AttlasError, UnsupportedError, quoted, shortened

_Value = TypeVar("_Value")

# How the C library treats freed memory.


_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of glibc's malloc.h


def disable_malloc_trim() -> bool:
    """Let this process keep the memory that it frees. Return True if it could.

    An update allocates and frees the same big tensors as the update before it, and so do the steps
    of a search. glibc takes each of them from the system and gives it back at once, so that every
    page faults again. That once cost a third of a training's time on a CPU, and lately nothing that
    could be measured (docs/dev/log.md). It costs a tenth of a translation's time. With memory kept,
    the process stays as large as its largest update. Threads share one arena, because an arena of a
    thread holds at most 64 MiB at a time. Only glibc has this setting; elsewhere nothing changes.
    """
    mallopt = getattr(_c_library(), "mallopt", None)
    if mallopt is None:
        return False
    settings = {_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1, _ARENA_MAX: 1}
    return all(mallopt(*setting) for setting in settings.items())


def malloc_trim() -> bool:
    """Give freed memory back to the system now. Return True if there was any.

    glibc keeps freed blocks that are not at the end of a thread's heap. So a server would stay as
    large as its largest request made it. Only glibc has this call.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    return trim is not None and bool(trim(0))


def _c_library() -> Any:
    """The C library of this process; None on Windows, where it has no name."""
    return None if sys.platform == "win32" else ctypes.CDLL(None)


class _LeftOut(AbstractContextManager[None]):
    """A switch of the whole process. Several threads may be inside at a time: the first one
    switches it off, the last one restores it.
    """

    def __init__(self, is_on: Callable[[], bool], turn: Callable[[bool], None]) -> None:
        self._is_on, self._turn = is_on, turn
        self._lock = threading.Lock()
        self._inside = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._is_on()
                self._turn(False)
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._turn(self._before)


def _enable(on: bool) -> None:
    torch.backends.cudnn.enabled = on


without_cudnn = _LeftOut(lambda: torch.backends.cudnn.enabled, _enable)
"""`with without_cudnn:` for gradients in eval mode, which its recurrent layers do not have."""


without_cudnn_attention = _LeftOut(
    torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp
)
"""`with without_cudnn_attention:` for texts of ever new lengths: it makes a plan for every new
shape, on an H100 20 ms forwards and 24 back, where an update of a small Transformer takes 40. torch
prefers it on Hoppers in half precision; its other kernels plan nothing."""


# What a CUDA graph can capture, and how products of float32 are rounded.


class _Thread(threading.local):
    """What holds in this thread."""

    is_capturable = False


_thread = _Thread()


@contextmanager
def capturable() -> Iterator[None]:
    """Within the block, in this thread, no shape and no branch depends on numbers in tensors.

    Only such code can be captured by a CUDA graph, which replays kernels and asks no questions. It
    holds on a CPU as well, so that the same code can be tested there.
    """
    previous, _thread.is_capturable = _thread.is_capturable, True
    try:
        yield
    finally:
        _thread.is_capturable = previous


def is_capturable() -> bool:
    """Return True within `capturable`, in this thread."""
    return _thread.is_capturable


def integers_on(device: torch.device, numbers: Sequence[int]) -> Int[Tensor, " numbers"]:
    """A few integers, made on a device: no copy from the host, which a graph cannot capture."""
    parts = [torch.full((1,), number, dtype=torch.int64, device=device) for number in numbers]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64, device=device)


@contextmanager
def tf32_products(enabled: bool = True) -> Iterator[None]:
    """Within the block a GPU multiplies float32 in TF32: factors of 10 bits, sums of float32.

    It is a switch of the whole process, for matrix products and for cuDNN's layers. torch has two
    APIs for it. Reading the older one raises where somebody has set the newer, so that one is left
    alone then; otherwise both say the same, because other libraries read the older.

    Args:
        enabled: False = all bits are multiplied.
    """
    backends: Any = torch.backends  # whose stubs lack some of these
    switches = (
        backends.cuda.matmul,
        backends.cudnn.conv,
        backends.cudnn.rnn,
        backends.mkldnn.matmul,  # of a CPU; the older API sets it with that of a GPU
    )
    before = [switch.fp32_precision for switch in switches]
    matmul = _readable(torch.get_float32_matmul_precision)
    cudnn = _readable(lambda: backends.cudnn.allow_tf32)
    if matmul is not None:
        torch.set_float32_matmul_precision("high" if enabled else "highest")
    if cudnn is not None:
        backends.cudnn.allow_tf32 = enabled
    for switch in switches[:3]:
        switch.fp32_precision = "tf32" if enabled else "ieee"
    try:
        yield
    finally:
        if matmul is not None:
            torch.set_float32_matmul_precision(matmul)
        if cudnn is not None:
            backends.cudnn.allow_tf32 = cudnn
        for switch, precision in zip(switches, before, strict=True):
            switch.fp32_precision = precision


_PRODUCTS = threading.RLock()


@contextmanager
def whole_products(device: torch.device) -> Iterator[None]:
    """Within the block float32 is multiplied with all of its bits, on a GPU, too.

    The switch is one of the process, so one thread at a time is in the block.
    """
    if device.type != "cuda":
        yield
        return
    with _PRODUCTS, tf32_products(False):
        yield


def _readable(read: Callable[[], _Value]) -> _Value | None:
    """What torch's older API says; None where it raises because the newer one was set."""
    try:
        return read()
    except RuntimeError:
        return None


# How much memory this process has used.


_STATUS = Path("/proc/self/status")  # of Linux


def peak_memory() -> int | None:
    """The largest number of bytes that this process held at a time; None if unknown.

    On Linux that of the program itself: what `resource` says there may be of whoever started it.
    """
    try:
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return _peak_working_set()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class _MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS of Windows."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("page_faults", ctypes.c_uint32),
        ("peak_working_set", ctypes.c_size_t),
        *((f"other{number}", ctypes.c_size_t) for number in range(7)),
    )


def _peak_working_set() -> int | None:
    """On Windows, where this was not tried."""
    try:
        library: Any = getattr(ctypes, "windll")  # noqa: B009
        counters = _MemoryCounters(size=ctypes.sizeof(_MemoryCounters))
        library.kernel32.GetCurrentProcess.restype = ctypes.c_void_p
        process = ctypes.c_void_p(library.kernel32.GetCurrentProcess())
        succeeded = library.psapi.GetProcessMemoryInfo(
            process, ctypes.byref(counters), counters.size
        )
    except (AttributeError, OSError):
        return None
    return int(counters.peak_working_set) if succeeded else None


def peak_gpu_memory(device: torch.device) -> int | None:
    """The most bytes of tensors on this GPU at a time; None for a CPU."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None


def gpu_memory(device: torch.device) -> int | None:
    """The bytes that this GPU has; None for a CPU."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else None


# The processor of this machine, by the names that it gives itself.


_FACTS = Path("/proc/cpuinfo")  # of Linux


def processor_name() -> str:
    """The model, such as "AMD EPYC (family 25, model 17)"; if unknown, the architecture, such as
    "arm64". Family and model are named because a virtual machine may hide which EPYC it is.
    """
    name, family, model = (_fact(field) for field in ("model name", "cpu family", "model"))
    if name and family and model:
        return f"{name} (family {family}, model {model})"
    return name or platform.processor() or platform.machine()


def processor_maker() -> str:
    """The maker, such as "AuthenticAMD" or "GenuineIntel"; "" if unknown."""
    vendor = _fact("vendor_id")
    # Windows: "AMD64 Family 25 Model 1 Stepping 1, AuthenticAMD".
    return vendor or platform.processor().rpartition(", ")[2]


@cache
def _fact(name: str) -> str:
    try:
        lines = _FACTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in fields if key.strip() == name), "")


# Where to compute.


def device_named(name: str) -> torch.device:
    """ "cpu", "cuda", "cuda:1", …; "auto" = a GPU where torch sees one, else the CPU.

    Raises:
        UnsupportedError: For a device that does not exist here.
    """
    return usable(device_called(name))


def device_called(name: str) -> torch.device:
    """The same without trying the device: a GPU that is tried keeps hundreds of MiB for this
    process.

    Raises:
        UnsupportedError: For what is no name of a device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise _useless(name, error) from None


def usable(device: torch.device) -> torch.device:
    """Return this device if it works.

    Raises:
        UnsupportedError: Otherwise.
    """
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise _useless(str(device), error) from None
    return device


def _useless(name: str, error: Exception) -> AttlasError:
    return UnsupportedError(
        "a device that torch can use here (auto, cpu, cuda)",
        f"{quoted(name)} ({shortened(str(error).splitlines()[0])})",
        "choose 'auto', which takes what there is",
    )
