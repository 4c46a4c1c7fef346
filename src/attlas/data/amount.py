"""How many of something, in words."""


def amount(number: int, one: str, many: str = "") -> str:
    """ "1 pair", "2 pairs", "1,000 batches"; `many` where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
