"""What the C library does with memory that is given back to it."""

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Let this process keep the memory that it frees, for as long as it lives; whether it could.

    An update allocates and frees the same big tensors as the update before it, and so do the steps
    of a search. glibc takes each of them fresh from the system and gives it back at once, and every
    page of it faults again: once a third of a training's time on a CPU, and nothing that could be
    measured of late (docs/log.md); a tenth of a translation's.
    Kept, the process stays as large as its largest update.
    Threads share one arena, because those of their own hold no more than 64 MiB at a time.
    Only glibc has this setting; elsewhere nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1, _ARENA_MAX: 1}
    return all(mallopt(*setting) for setting in settings.items())


def give_back_freed_memory() -> bool:
    """Give what this process has freed back to the system now; whether any could be.

    glibc keeps freed blocks that are not at the end of a heap, of each thread that computed. A
    server that had one large question would stay as large for good. Only glibc has this call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))
