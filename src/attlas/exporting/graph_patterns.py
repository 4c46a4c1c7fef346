"""Where attention may look, as nodes of a graph."""

from attlas.exporting.graph_numbers import GraphNumbers
from attlas.exporting.subject import unfit
from attlas.patterns import Pattern
from attlas.patterns.compositions import Both, Either
from attlas.patterns.shapes import Causal, Everywhere, Landmarks, Scattered, Strided, Window


def allowed(n: GraphNumbers, pattern: Pattern, query: str, slot: str) -> str:
    """`pattern(query, slot)` of positions that are broadcast to each other, as bools.

    Errors: `AttlasError` for a pattern that is none of attlas's.
    """
    match pattern:
        case Everywhere():
            return n.of("Equal", n.of("Sub", query, query), n.of("Sub", slot, slot))
        case Causal():
            return n.of("LessOrEqual", slot, query)
        case Window(radius):
            return n.of("LessOrEqual", n.of("Abs", n.of("Sub", query, slot)), radius)
        case Strided(stride):
            return n.of("Equal", n.of("Mod", n.of("Sub", query, slot), stride), 0)
        case Landmarks(marks):
            return n.of("Or", n.among(query, marks), n.among(slot, marks))
        case Scattered(share, seed):
            drawn = n.of("Less", _mixed(n, query, slot, seed), int(share * 2**32))
            return n.of("Or", drawn, n.of("Equal", query, slot))
        case Both(left, right):
            return n.of("And", allowed(n, left, query, slot), allowed(n, right, query, slot))
        case Either(left, right):
            return n.of("Or", allowed(n, left, query, slot), allowed(n, right, query, slot))
        case _:
            raise unfit("ONNX", "a pattern of attlas.patterns", str(pattern))


def _mixed(n: GraphNumbers, query: str, slot: str, seed: int) -> str:
    """The hash of `Scattered`: mod 2³² keeps 32 bits, div 2¹⁶ shifts by 16."""
    of_pair = n.of("Add", n.of("Mul", query, 73_856_093), n.of("Mul", slot, 19_349_663))
    mixed = n.of("Add", of_pair, seed * 83_492_791)
    for multiplier in (0x45D9F3B, 0x119DE1F3):
        mixed = n.of("Mod", mixed, 2**32)
        mixed = n.of("BitwiseXor", mixed, n.of("Div", mixed, 2**16))
        mixed = n.of("Mod", n.of("Mul", mixed, multiplier), 2**32)
    return n.of("BitwiseXor", mixed, n.of("Div", mixed, 2**16))
