"""What checks shapes in all other tests checks them."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import TypeCheckError, config

from shape_checker import begin_test

MODULE = """
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


def product(one: Float[Tensor, "a b"], other: Float[Tensor, "b c"]) -> Float[Tensor, "a c"]:
    return one @ other


def wrong() -> Float[Tensor, "a b"]:
    return torch.zeros(3)


def adding(number: int) -> Callable[[Float[Tensor, "a"]], Float[Tensor, "a"]]:
    def added(values: Float[Tensor, "a"], more: "Callable[[], int] | None" = None):
        return values + number

    return added


def countdown(number: int) -> int:
    def below(one: int) -> int:
        return 0 if one == 0 else 1 + countdown(one - 1)

    return below(number)


@dataclass
class One:
    values: Float[Tensor, "a"]

    @property
    def doubled(self) -> Float[Tensor, "a b"]:
        return self.values

    @staticmethod
    def made(values: Float[Tensor, "a"]) -> "One":
        return One(values)


@dataclass
class Two:
    values: Float[Tensor, "a b"]
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that is imported as those of attlas are."""
    (tmp_path / "some.py").write_text(MODULE)
    monkeypatch.setattr("attlas.__path__", [str(tmp_path)])
    begin_test(first=10)
    try:
        yield importlib.import_module("attlas.some")
    finally:
        sys.modules.pop("attlas.some", None)


def refused(call: Callable[[], object]) -> bool:
    """Whether a call is refused for its shapes, and with no checking it is not."""
    try:
        call()
    except TypeCheckError:
        config.update("jaxtyping_disable", True)
        call()
        config.update("jaxtyping_disable", False)
        return True
    return False


def test_arguments_and_results_of_wrong_shapes_are_refused(module: Any) -> None:
    assert module.product(torch.ones(2, 3), torch.ones(3, 4)).shape == (2, 4)
    with pytest.raises(TypeCheckError, match=r"parameters of attlas\.some\.product"):
        module.product(torch.ones(2, 3), torch.ones(4, 4))
    assert refused(module.wrong)


def test_each_function_that_is_made_within_another_is_checked_and_is_itself(module: Any) -> None:
    one, ten = module.adding(1), module.adding(10)
    values = torch.zeros(2)
    assert one(values).tolist() == [1, 1]
    assert ten(values).tolist() == [10, 10]
    assert one(values).tolist() == [1, 1]
    for added in (one, ten, module.adding(5)):
        assert refused(lambda added=added: added(torch.zeros(2, 2)))
    assert one(values).tolist() == [1, 1]  # nothing is left of the calls that were refused


def test_a_function_may_call_itself_through_one_that_it_makes(module: Any) -> None:
    assert module.countdown(7) == 7


def test_methods_and_the_fields_of_each_dataclass_are_checked(module: Any) -> None:
    vector, matrix = torch.zeros(2), torch.zeros(2, 2)
    one, two = module.One.made(vector), module.Two(matrix)
    assert (one.values is vector, two.values is matrix) == (True, True)
    assert refused(lambda: one.doubled)
    assert refused(lambda: module.One.made(matrix))
    assert refused(lambda: module.One(matrix))
    assert refused(lambda: module.Two(vector))


def test_the_first_calls_of_a_function_in_a_test_are_checked_and_no_later_ones(module: Any) -> None:
    vector = torch.zeros(2)
    begin_test(first=3)
    for _ in range(3):
        assert refused(lambda: module.One(vector).doubled)
    assert module.One(vector).doubled is vector
    assert refused(module.wrong)
    begin_test()
    assert refused(lambda: module.One(vector).doubled)


def test_of_many_calls_some_later_ones_are_checked_too(module: Any) -> None:
    def is_checked() -> bool:
        try:
            module.wrong()
        except TypeCheckError:
            return True
        return False

    begin_test(first=2, later=frozenset({4, 7}))
    checked = [is_checked() for _ in range(9)]
    assert checked == [number in (1, 2, 4, 7) for number in range(1, 10)]
