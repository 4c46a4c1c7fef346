"""Which source token each target token looked at most."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

Link = tuple[int, int]  # (source, target), counted from 0


def links_of(
    weights: Float[Tensor, "queries slots"], targets: int, sources: int
) -> tuple[Link, ...]:
    """(argmax_i a_ti, t) for each of the first `targets` queries t, over the first `sources` slots.

    END is left out on both sides by these counts: it is no part of a text, and much attention that
    means "nowhere" goes there. A token that looked at nothing else has no link. In the order of the
    target; equal weights: the first source token.
    """
    if not targets or not sources:
        return ()
    weights = weights[:targets, :sources]
    found = zip(weights.argmax(dim=1).tolist(), weights.amax(dim=1).tolist(), strict=True)
    return tuple((source, target) for target, (source, most) in enumerate(found) if most > 0)


def word_links(
    links: Sequence[Link],
    source_words: Sequence[Sequence[int]],
    target_words: Sequence[Sequence[int]],
) -> tuple[Link, ...]:
    """Two words are linked where any of their tokens are; sorted, each link once.

    `source_words[i]` are the words of source token i, likewise for the target.
    """
    return tuple(
        sorted(
            {
                (source, target)
                for i, j in links
                for source in source_words[i]
                for target in target_words[j]
            }
        )
    )


def pharaoh(links: Sequence[Link]) -> str:
    """ "0-0 1-2 …": the links in the Pharaoh format, counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in links)
