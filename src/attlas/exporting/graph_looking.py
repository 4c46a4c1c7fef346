"""Self-attention that looks where a pattern lets it, as nodes of a graph."""

from attlas.exporting.graph import Graph
from attlas.exporting.graph_heads import Heads, attended
from attlas.exporting.graph_numbers import GraphNumbers
from attlas.exporting.graph_patterns import allowed
from attlas.patterns import Pattern

_SMALLEST_BLOCK = 32  # queries, as in `banded_attention`


class GraphLooking:
    """softmax(q kᵀ) v over the slots that the pattern lets a query see and that are real (batch,
    slots); a query that sees nothing reads zeros. There are as many queries as slots.

    Where the pattern has a bound, blocks of B queries meet strips of slots, as `banded_attention`
    cuts them: time and memory grow with length × window, else with length². Every size is found in
    the graph, because the length is free.
    """

    def __init__(self, graph: Graph, pattern: Pattern, real: str) -> None:
        self.graph, self.pattern, self.real = graph, pattern, real
        self.n = GraphNumbers(graph)
        self.count = self.n.size(real, 1)
        self.marks = tuple(sorted(pattern.bound.marks))

    def read(self, asked: str, kept: Heads) -> str:
        """Of queries (batch, heads, slots, width) the contexts, in the same shape."""
        bound = self.pattern.bound
        if bound.back is None or bound.ahead is None:
            return self._of_all(asked, kept, self.n.up_to(self.count))
        context = self._of_blocks(asked, kept, bound.back, bound.ahead)
        return self._with_marks(context, asked, kept) if self.marks else context

    def _of_all(self, asked: str, kept: Heads, places: str) -> str:
        """What queries at these places (queries,) read of all slots."""
        n = self.n
        query, slot = n.apart(places, 1), n.apart(n.up_to(self.count), 0)
        seen = n.of("And", allowed(n, self.pattern, query, slot), n.apart(self.real, 1, 2))
        return attended(self.graph, asked, kept, seen)

    def _of_blocks(self, asked: str, kept: Heads, back: int, ahead: int) -> str:
        """What all queries read of the strips and the marks."""
        graph, n = self.graph, self.n
        last = n.of("Sub", self.count, 1)
        before, behind = n.of("Min", last, back), n.of("Min", last, ahead)
        span = n.of("Add", before, behind)
        block = n.of("Min", self.count, n.of("Max", span, _SMALLEST_BLOCK))
        starts = n.apart(n.up_to(self.count, step=block), 1)
        query = n.of("Add", starts, n.apart(n.up_to(block), 0))  # (blocks, B)
        around = n.up_to(n.of("Add", block, behind), n.of("Neg", before))
        slot, exists = self._with_mark_slots(n.of("Add", starts, n.apart(around, 0)))
        place = n.of("Max", n.of("Min", slot, last), 0)  # what does not exist is hidden
        seen = allowed(n, self.pattern, n.apart(query, 2), n.apart(slot, 1))
        seen = n.of("And", seen, n.apart(exists, 1))
        real = graph.node("Gather", self.real, place, axis=1)
        context = attended(
            graph,
            graph.node("Gather", asked, n.of("Min", query, last), axis=2),
            Heads(*(graph.node("Gather", one, place, axis=2) for one in (kept.keys, kept.values))),
            n.of("And", seen, n.apart(real, 1, 3)),
            axes=5,  # (batch, heads, blocks, queries or slots, width)
        )
        outer, width = (
            graph.node("Shape", asked, start=start, end=end) for start, end in ((0, 2), (3, 4))
        )
        shape = graph.node("Concat", outer, graph.integers(-1), width, axis=0)
        joined = graph.node("Reshape", context, shape)
        stop = n.apart(self.count, 0)
        return graph.node("Slice", joined, graph.integers(0), stop, graph.integers(2))

    def _with_mark_slots(self, strips: str) -> tuple[str, str]:
        """Each block's slots (blocks, slots), the marks behind its strip; and which of them exist
        and are not there twice.
        """
        graph, n = self.graph, self.n
        inside = n.of("And", n.of("GreaterOrEqual", strips, 0), n.of("Less", strips, self.count))
        if not self.marks:
            return strips, inside
        inside = n.of("And", inside, n.of("Not", n.among(strips, self.marks)))
        blocks = graph.node("Shape", strips, start=0, end=1)
        shape = graph.node("Concat", blocks, graph.integers(len(self.marks)), axis=0)
        marks = graph.node("Expand", graph.integers(*self.marks), shape)
        exists = n.of("Less", marks, self.count)
        return (
            graph.node("Concat", strips, marks, axis=1),
            graph.node("Concat", inside, exists, axis=1),
        )

    def _with_marks(self, context: str, asked: str, kept: Heads) -> str:
        """The context with what the queries at the marks read, which may see everything."""
        graph, n = self.graph, self.n
        places = n.of("Min", graph.integers(*self.marks), n.of("Sub", self.count, 1))
        rows = graph.node("Gather", asked, places, axis=2)
        both = graph.node("Concat", context, self._of_all(rows, kept, places), axis=2)
        slots = n.up_to(self.count)
        behind = n.of("Add", self.count, n.place(slots, self.marks))
        chosen = n.of("Where", n.among(slots, self.marks), behind, slots)
        return graph.node("Gather", both, chosen, axis=2)
