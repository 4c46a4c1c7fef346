"""Where the time of a translation goes."""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from search_profile import products


def _event(key: str, shapes: list[list[int]], count: int, microseconds: float) -> SimpleNamespace:
    return SimpleNamespace(
        key=key, input_shapes=shapes, count=count, self_cpu_time_total=microseconds
    )


def test_products_are_told_by_shape_and_rows_with_their_rates() -> None:
    found = products(
        [
            _event("aten::addmm", [[8], [2, 4], [4, 8]], 10, 1.0),  # 128 operations a call
            _event("aten::addmm", [[8], [3, 4], [4, 8]], 10, 1.0),  # 192; fewer than 16 rows too
            _event("mkldnn::_linear_pointwise", [[64, 4], [8, 4], [8]], 1, 4.0),  # 4,096
            _event("aten::tanh", [[64, 4]], 1, 9.0),
        ]
    )
    assert found == [
        "mkldnn::_linear_pointwise, 4 -> 8, < 256 rows: 1 calls, 0.000 s, 1 GFLOP/s",
        "aten::addmm, 4 -> 8, < 16 rows: 20 calls, 0.000 s, 2 GFLOP/s",
        "all products: 0.00 s, 0 GFLOP",
    ]
