"""Seeds: every draw of a training is a function of (seed, purpose, number) alone."""

import hashlib


def seed_of(seed: int, purpose: str, number: int = 0) -> int:
    """A seed of 63 bits for one purpose at one update: nearby inputs give unrelated seeds.

    Nothing random is carried from update to update, so a resumed run draws what an undisturbed
    one draws.
    """
    digest = hashlib.sha256(f"{seed} {purpose} {number}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
