"""Compile the kernels of attention statistics for an H100, on a machine that has no GPU."""

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from attlas.recording.maps import triton_kernels

HOPPER = GPUTarget("cuda", 90, 32)
POINTERS = {
    "query": "*bf16", "keys": "*bf16", "tokens": "*u8", "bias": "*fp32", "counted": "*u8",
    "marks": "*u8",
    "best_keys": "*i32", "counts": "*i32", "targets": "*i32", "top_keys": "*i32", "groups": "*i32",
    "sums": "*fp64", "maxima": "*fp32", "inverses": "*fp32", "entropies": "*fp32",
    "squares": "*fp32", "distances": "*fp32", "weights": "*fp32", "top_weights": "*fp32",
    "masses": "*fp32", "cells": "*fp32",
}  # fmt: skip
NUMBERS = {"scale": "fp32", "softcap": "fp32", "threshold": "fp32"}
CONSTANTS = {
    "TOKENS": True, "BIAS": "number", "SOFTCAP": True, "STRIDED": True, "UPCAST": False,
    "MARKS": True,
    "ROWS": 128, "KEYS": 64, "WIDTH": 64, "GROUPS": 16, "MAXIMUM": True, "COUNTED": True,
    "FIXED": True, "ENTROPY": True, "SQUARES": True, "DISTANCE": True, "BEST": True,
}  # fmt: skip


def type_of(name: str) -> str:
    """The type of an argument; strides are 64 bits wide."""
    is_stride = name.endswith(("_batch", "_head", "_row", "_dim", "_key"))
    return {**POINTERS, **NUMBERS}.get(name, "i64" if is_stride else "i32")


for name, kernel in vars(triton_kernels).items():
    if not name.endswith("_pass"):
        continue
    signature = {
        given.name: "constexpr" if given.is_constexpr else type_of(given.name)
        for given in kernel.params
    }
    constants = {
        (place,): CONSTANTS[given.name]
        for place, given in enumerate(kernel.params)
        if given.is_constexpr
    }
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, given in enumerate(kernel.params)
        if given.name in POINTERS
    }
    source = ASTSource(kernel, signature, constants, aligned)
    compiled = triton.compile(source, target=HOPPER, options={"num_warps": 8, "num_stages": 2})
    assert compiled.asm["cubin"]
    assert compiled.metadata.shared <= 227 * 1024  # what a program of an H100 may have
    print(name)
