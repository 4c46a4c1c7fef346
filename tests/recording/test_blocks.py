"""What is heard within a block of `observe`, and when it ends."""

import pytest
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from attlas.recording import observe
from support.written_attention import QUERIES, Calling, vectors


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_backward_pass_computes_again_is_not_heard_again(reentrant):
    def written(query, key, value):
        return checkpoint(
            F.scaled_dot_product_attention, query, key, value, use_reentrant=reentrant
        )

    model = Calling(written)
    query, key, value = vectors(1, 2, QUERIES, 4).requires_grad_().unbind()
    with observe(model) as trace:
        model(query, key, value).sum().backward()
    assert len(trace.calls("")) == 1


def test_blocks_of_two_generators_may_end_in_the_order_in_which_they_began():
    query, key, value = vectors(1, 2, QUERIES, 4)
    model = Calling(F.scaled_dot_product_attention)

    def looking():
        with observe(model) as trace:
            yield trace
            model(query, key, value)
            yield trace

    one, other = looking(), looking()
    next(one), next(other)
    assert len(next(one).calls("")) == 1
    one.close()
    assert len(next(other).calls("")) == 2
    other.close()
    with observe(model) as trace:
        model(query, key, value)
    assert len(trace.calls("")) == 1
