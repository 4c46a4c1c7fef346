import pytest

from attlas._text import count_noun
from attlas.data.corpus import FilterReport


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 batches"), (1, "1 batch"), (2, "2 batches"), (1000, "1,000 batches")],
)
def test_one_is_reported_from_many(number, text):
    assert count_noun(number, "batch", "batches") == text


def test_a_report_of_one_pair_speaks_of_one_pair():
    assert str(FilterReport("toy", 1, 1)) == "toy: 1 of 1 pair kept"
    assert str(FilterReport("toy", 2, 1)) == "toy: 1 of 2 pairs kept"
