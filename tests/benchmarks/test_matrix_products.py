"""The matrix products of a profile."""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from matrix_products import products


def _event(key: str, shapes: list[list[int]], count: int, microseconds: float) -> SimpleNamespace:
    return SimpleNamespace(
        key=key, input_shapes=shapes, count=count, self_cpu_time_total=microseconds
    )


def test_products_are_reported_by_their_sizes_with_their_rates() -> None:
    found = products(
        [
            _event("aten::addmm", [[8], [2, 4], [4, 8]], 10, 1.0),  # 128 operations a call
            _event("aten::addmm", [[8], [3, 4], [4, 8]], 10, 1.0),  # 192; fewer than 16 rows too
            _event("mkldnn::_linear_pointwise", [[64, 4], [8, 4], [8]], 1, 4.0),  # 4,096
            _event("aten::mm", [[4, 20], [20, 8]], 1, 0.5),  # 1,280: a gradient, over 20 rows
            _event("aten::mm", [[4, 30], [30, 8]], 1, 0.5),  # 1,920
            _event("aten::bmm", [[2, 3, 4], [2, 4, 8]], 1, 0.25),  # 384, of six rows
            _event("aten::tanh", [[64, 4]], 1, 9.0),
        ],
        sizes={4, 8},
    )
    assert found == [
        "mkldnn::_linear_pointwise, < 256 × 4 × 8: 1 calls, 0.000 s, 1 GFLOP/s",
        "aten::addmm, < 16 × 4 × 8: 20 calls, 0.000 s, 2 GFLOP/s",
        "aten::mm, 4 × < 64 × 8: 2 calls, 0.000 s, 3 GFLOP/s",
        "aten::bmm, < 16 × 4 × 8: 1 calls, 0.000 s, 2 GFLOP/s",
        "all of these: 0.00 s, 0 GFLOP",
    ]
