"""Where products of numbers of 8 bits are not what they should be."""

from typing import Any

import torch


def saturates() -> bool:
    """Whether this CPU may lose a part of a sum of products of 8 bits.

    An x86 without VNNI adds pairs of such products in 16 bits, and what does not fit is cut off:
    log P of a translation was off by a tenth and more. Where nobody can tell, it may be so.
    """
    # Older releases of torch cannot say.
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    if known.get("architecture", "x86_64") not in ("x86_64", "i386"):
        return False
    return not (known.get("avx512_vnni") or known.get("avx_vnni"))
