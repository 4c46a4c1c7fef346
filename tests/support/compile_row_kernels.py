"""Compile the kernels of attention statistics for GPUs, on a machine that has none.

python tests/support/compile_row_kernels.py           those of the tests
python tests/support/compile_row_kernels.py --all     all types, widths and cards

Each line has the registers of a thread, the bytes of its stack, the shared memory of a program, and
the instructions for each score in each loop, innermost first. A kernel fails that has more shared
memory than its card, or a stack: then its numbers do not fit into registers.
"""

import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from attlas.recording.maps import row_kernels, triton_kernels

BINARIES = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
SHARED = {80: 163 * 1024, 86: 99 * 1024, 90: 227 * 1024}
"""The shared memory that a program may have, by compute capability."""

POINTERS = {
    "tokens": "*u8", "counted": "*u8", "marks": "*u8",
    "best_keys": "*i32", "counts": "*i32", "targets": "*i32", "top_keys": "*i32", "groups": "*i32",
    "sums": "*fp64", "maxima": "*fp32", "inverses": "*fp32", "entropies": "*fp32",
    "squares": "*fp32", "distances": "*fp32", "weights": "*fp32", "top_weights": "*fp32",
    "masses": "*fp32", "cells": "*fp32", "numbers": "*i32",
}  # fmt: skip
NUMBERS = {"scale": "fp32", "softcap": "fp32", "threshold": "fp32"}
UNIT_STRIDES = ("query_dim", "key_dim", "bias_key")
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
PLAIN: dict[str, Any] = {
    "TOKENS": False, "BIAS": "none", "SOFTCAP": False, "STRIDED": False, "UPCAST": False,
    "MARKS": False, "PADDED": False, "SIZE": 16,
    "GROUPS": 16, "MAXIMUM": True, "COUNTED": False, "FIXED": True, "COUNT": False,
    "ENTROPY": True, "SQUARES": False, "DISTANCE": True, "BEST": True,
}  # fmt: skip
PADDING = {"TOKENS": True, "COUNTED": True}
EVERYTHING = {
    **PADDING, "BIAS": "number", "SOFTCAP": True, "STRIDED": True, "MARKS": True, "PADDED": True,
    "COUNT": True, "SQUARES": True,
}  # fmt: skip


def compiled(
    name: str, dtype: str, width: int, card: int, flags: dict[str, Any], blocks: tuple[int, int]
) -> Any:
    """A kernel as it is compiled at its first call."""
    kernel = getattr(triton_kernels, name)
    constants = {**PLAIN, "ROWS": blocks[0], "KEYS": blocks[1], "WIDTH": width, **flags}
    bias = "*u8" if constants["BIAS"] == "mask" else f"*{dtype}"
    types = {**POINTERS, **NUMBERS, "query": f"*{dtype}", "keys": f"*{dtype}", "bias": bias}
    signature, values, aligned = {}, {}, {}
    for place, given in enumerate(kernel.params):
        if given.is_constexpr or given.name in UNIT_STRIDES:
            signature[given.name] = "constexpr"
            values[(place,)] = constants.get(given.name, 1)
            continue
        signature[given.name] = types.get(given.name, "i32")
        is_stride = given.name.endswith(("_batch", "_head", "_row"))
        if signature[given.name].startswith("*") or (is_stride and not given.do_not_specialize):
            aligned[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, values, aligned)
    options = row_kernels._options(*blocks)
    return triton.compile(source, target=GPUTarget("cuda", card, 32), options=options), options


def resources(code: bytes, scores: float) -> tuple[int, int, list[float]]:
    """Registers, bytes of the stack, and instructions for each score of each loop."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(code)
        usage = _said_by("cuobjdump", "-res-usage", str(file))
        text = _said_by("nvdisasm", "-c", str(file))
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert found is not None, usage
    labels: dict[str, int] = {}
    instructions: list[str] = []
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(instructions)
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            instructions.append(instruction[1])
    loops = []
    for place, instruction in enumerate(instructions):
        back = re.search(r"BRA.*`\((\.L_x_\d+)\)", instruction)
        if back and labels.get(back[1], place) < place - 30:
            loops.append(round((place - labels[back[1]]) / scores, 1))
    return int(found[1]), int(found[2]), loops


def _said_by(program: str, *arguments: str) -> str:
    done = subprocess.run([BINARIES / program, *arguments], capture_output=True, text=True)
    return done.stdout + done.stderr


def check(name: str, dtype: str, width: int, card: int, flags: dict[str, Any]) -> bool:
    """Compile one, print what it takes, and return True if it fits."""
    query = torch.empty(1, 1, 1, width, dtype=TYPES[dtype], device="meta")
    bias = query if flags.get("BIAS", "none") != "none" else None
    scores: Any = SimpleNamespace(query=query, bias=bias)
    blocks = row_kernels._blocks_of(scores)
    if name in ("mass_pass", "pool_pass"):
        blocks = row_kernels._with_sums(blocks, scores)
    kernel, options = compiled(name, dtype, width, card, flags, blocks)
    # A warp of 32 threads runs an instruction for all of them.
    share = blocks[0] * blocks[1] / (32 * options["num_warps"])
    registers, stack, loops = resources(kernel.asm["cubin"], share)
    shared = kernel.metadata.shared
    is_fit = stack <= MOST_STACK and shared <= SHARED[card]
    print(
        f"{'' if is_fit else 'DOES NOT FIT '}{name} {dtype} width {width} sm_{card} {blocks} "
        f"{' '.join(f'{flag}={value}' for flag, value in flags.items())}: {registers} registers, "
        f"stack {stack}, shared {shared}, instructions {loops}",
        flush=True,
    )
    return is_fit


MOST_STACK = 64
"""Bytes: a few numbers of a thread that are kept from before a loop to after it."""

PASSES = [name for name in vars(triton_kernels) if name.endswith("_pass")]
FEW = [
    *((name, "bf16", 128, 90, {}) for name in PASSES),
    *(("row_pass", dtype, width, 90, {}) for dtype, width in (("bf16", 256), ("fp32", 64))),
    ("row_pass", "bf16", 128, 80, {}),
    ("row_pass", "bf16", 64, 86, PADDING),
    ("row_pass", "bf16", 128, 90, {"BIAS": "number", "COUNT": True}),
    ("received_pass", "fp16", 64, 90, PADDING),
    ("pool_pass", "fp32", 256, 90, {}),
    ("mass_pass", "fp32", 256, 90, {"GROUPS": 64}),
    ("row_pass", "bf16", 64, 90, EVERYTHING),
]
ALL = [
    (name, dtype, width, card, flags)
    for name, dtype, width, card, flags in product(
        PASSES, TYPES, (16, 64, 128, 256), SHARED,
        ({}, PADDING, {"BIAS": "number", "COUNT": True}, {"GROUPS": 64}, EVERYTHING),
    )
    if ("GROUPS" in flags) <= (name == "mass_pass")
]  # fmt: skip

if __name__ == "__main__":
    chosen = ALL if "--all" in sys.argv[1:] else FEW
    fits = [check(*case) for case in chosen]
    print(f"{sum(fits)} of {len(fits)} fit")
    sys.exit(not all(fits))
