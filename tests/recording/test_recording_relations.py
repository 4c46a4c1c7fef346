"""Who looks at what, where the names of what a module is given do not say it."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.recording import observe


class Looking(nn.Module):
    """One head over what it is given, which is made anew by a linear map each."""

    def __init__(self) -> None:
        super().__init__()
        self.of_query, self.of_key = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, context):
        asked, keys = self.of_query(x).unsqueeze(1), self.of_key(context).unsqueeze(1)
        return F.scaled_dot_product_attention(asked, keys, keys)


def test_a_text_that_looks_at_one_of_another_length_looks_across():
    model = Looking()
    with observe(model) as trace:
        model(torch.randn(2, 2, 8), torch.randn(2, 9, 8))
    assert trace.relation("") == "cross"
    assert trace[""].first == 0  # the queries are no newest positions of these slots


def test_the_end_of_a_text_that_looks_at_all_of_it_does_not():
    model, text = Looking(), torch.randn(2, 9, 8)
    with observe(model) as trace:
        model(text[:, -2:], text)
    assert trace.relation("") is None


def test_two_texts_of_one_length_are_not_told_apart():
    model = Looking()
    with observe(model) as trace:
        model(torch.randn(2, 9, 8), torch.randn(2, 9, 8))
    assert trace.relation("") is None


@pytest.mark.parametrize("name", ["encoder_decoder_attention", "is_cross_attention"])
@pytest.mark.parametrize("across", [True, False])
def test_a_module_may_say_it_itself(name, across):
    model = Looking()
    setattr(model, name, across)
    with observe(model) as trace:
        model(torch.randn(2, 9, 8), torch.randn(2, 9, 8))
    assert trace.relation("") == ("cross" if across else "self")
