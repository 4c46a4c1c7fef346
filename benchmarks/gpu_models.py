"""Training and translating on a GPU, beside hand-written loops: parts of `gpu.py`.

Every contender of `training` makes the same updates, of the same batches of the corpus that comes
with attlas: embeddings and a Transformer of 3 + 3 layers of width 256. `translation` has random
weights, so every sentence gets the same number of tokens from each contender.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attlas._hardware import tf32_products
from attlas.data import Batch
from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from attlas.layers import SinusoidalPositions
from attlas.models import TransformerConfig, build
from attlas.training import Recipe, read_recipe
from attlas.training.cuda_graphs import BatchShapes, GraphLearner
from attlas.training.epoch_loop import UNREAD
from attlas.training.learner import Learner, PendingUpdate
from attlas.training.tasks import task_of

Update = Callable[[Batch], None]

WIDTHS = (16, 24, 32, 48, 64, 96, 128)
"""To which the loop with CUDA graphs pads: one graph for each."""


def sizes(*, dry: bool) -> dict[str, Any]:
    """The sizes of the model."""
    if dry:
        return {"embed_dim": 16, "num_heads": 2, "ffn_dim": 16} | _layers(1)
    return {"embed_dim": 256, "num_heads": 4, "ffn_dim": 1024} | _layers(3)


def _layers(count: int) -> dict[str, int]:
    return {"encoder_layers": count, "decoder_layers": count}


def recipe_of(tokens: int, autocast: str, device: torch.device, *, dry: bool) -> Recipe:
    """The training of attlas."""
    model = sizes(dry=dry) | {"kind": "transformer", "dropout": 0.1, "norm": "pre"}
    return Recipe.read(
        {
            "data": read_recipe("demo").data.model_dump(),
            "vocabulary": {"kind": "bpe", "size": 500 if dry else 8000, "shared": True},
            "batching": {"max_tokens": tokens, "max_length": WIDTHS[-1] - 2},
            "model": model | {"tie_source": True},
            "training": {
                "max_epochs": 1, "label_smoothing": 0.1, "autocast": autocast,
                "device": device.type,
            },
        },
        "the benchmark",
    )  # fmt: skip


class Layer(nn.Module):
    """A layer of a Transformer, normed first, around PyTorch's fused attention."""

    def __init__(self, width: int, num_heads: int, ffn_dim: int, *, crosses: bool) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.first, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.own, self.own_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, ffn_dim), nn.ReLU(), nn.Linear(ffn_dim, width)
        )
        self.dropout = nn.Dropout(0.1)
        if crosses:
            self.middle = nn.LayerNorm(width)
            self.ask, self.read = nn.Linear(width, width), nn.Linear(width, 2 * width)
            self.cross_out = nn.Linear(width, width)

    def _attend(
        self, vectors: Sequence[Tensor], mask: Tensor | None, *, causal: bool = False
    ) -> Tensor:
        heads = (each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for each in vectors)
        context = F.scaled_dot_product_attention(*heads, attn_mask=mask, is_causal=causal)
        return context.transpose(1, 2).flatten(2)

    def forward(
        self, hidden: Tensor, mask: Tensor | None, memory: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Without a mask it sees what is before; `memory`: what it looks across at, and its mask.

        A mask of the target is not needed: its padding is at the end.
        """
        own = self.own(self.first(hidden)).chunk(3, -1)
        hidden = hidden + self.dropout(self.own_out(self._attend(own, mask, causal=mask is None)))
        if memory is not None:
            vectors = self.ask(self.middle(hidden)), *self.read(memory[0]).chunk(2, -1)
            hidden = hidden + self.dropout(self.cross_out(self._attend(vectors, memory[1])))
        return hidden + self.dropout(self.feed_forward(self.last(hidden)))


class Plain(nn.Module):
    """A Transformer as somebody writes it by hand who wants it fast."""

    def __init__(self, size: int, *, dry: bool) -> None:
        super().__init__()
        given = sizes(dry=dry)
        self.width = given["embed_dim"]
        self.embedding = nn.Embedding(size, self.width, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=self.width**-0.5)
        self.positions = SinusoidalPositions(self.width)
        self.dropout = nn.Dropout(0.1)
        layer = self.width, given["num_heads"], given["ffn_dim"]
        self.encoder, self.decoder = (
            nn.ModuleList(
                Layer(*layer, crosses=side == "decoder") for _ in range(given[f"{side}_layers"])
            )
            for side in ("encoder", "decoder")
        )
        self.norms = nn.ModuleList(nn.LayerNorm(self.width) for _ in range(2))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits of each token of the target but the first."""
        memory, hidden = (
            self.dropout(self.positions(self.embedding(ids) * self.width**0.5))
            for ids in (source, target[:, :-1])
        )
        mask = (source != 0)[:, None, None, :]
        for layer in self.encoder:
            memory = layer(memory, mask)
        memory = self.norms[0](memory)
        for layer in self.decoder:
            hidden = layer(hidden, None, (memory, mask))
        return F.linear(self.norms[1](hidden), self.embedding.weight)


class Loop:
    """A loop written by hand, which waits for no number of the device."""

    def __init__(self, model: nn.Module, device: torch.device, autocast: str) -> None:
        self.model, self.device = model.to(device).train(), device
        self.autocast = autocast
        on_cuda = device.type == "cuda"
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), 1e-4, fused=True, capturable=on_cuda
        )

    def step(self, source: Tensor, target: Tensor) -> None:
        """One update."""
        self.optimizer.zero_grad(set_to_none=False)
        half = torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)
        with half if self.autocast == "bf16" else nullcontext():
            logits = self.model(source, target)
        loss = F.cross_entropy(
            logits.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=0,
            label_smoothing=0.1,
        )  # fmt: skip
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def update(self, batch: Batch) -> None:
        """One update of a batch that lies on the host."""
        self.step(
            batch.source.to(self.device, non_blocking=True),
            batch.target.to(self.device, non_blocking=True),
        )


class EagerGraph:
    """In place of a CUDA graph, where there is no CUDA: it calls what it would replay."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.replay = work


def captured(work: Callable[[], None]) -> Any:
    """A CUDA graph of the work, after three calls that warm up."""
    if not torch.cuda.is_available():
        work()
        return EagerGraph(work)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


class GraphLoop(Loop):
    """The same loop as CUDA graphs, one for each padded width.

    Args:
        batches: All that it will see: a graph has as many rows as the largest of its width.
    """

    def __init__(
        self, model: nn.Module, device: torch.device, autocast: str, batches: Sequence[Batch]
    ) -> None:
        super().__init__(model, device, autocast)
        rows: dict[int, int] = {}
        for batch in batches:
            width = width_of(batch)
            rows[width] = max(rows.get(width, 0), len(batch.source))
        self.graphs = {width: self._graph(width, count) for width, count in rows.items()}

    def _graph(self, width: int, rows: int) -> tuple[Any, Tensor, Tensor]:
        source, target = (
            torch.zeros(rows, width, dtype=torch.long, device=self.device) for _ in range(2)
        )
        source[:, :5] = target[:, :5] = 7  # no text of padding alone
        return captured(lambda: self.step(source, target)), source, target

    def held(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What a batch is copied into."""
        return self.graphs[width_of(batch)][1:]

    def update(self, batch: Batch) -> None:
        """One update of a batch that lies on the host."""
        graph, *held = self.graphs[width_of(batch)]
        for tensor, given in zip(held, (batch.source, batch.target), strict=True):
            tensor.zero_()
            tensor[: given.shape[0], : given.shape[1]].copy_(given, non_blocking=True)
            tensor[given.shape[0] :, :1] = 7
        graph.replay()


def width_of(batch: Batch) -> int:
    """The padded width of a batch."""
    longest = max(batch.source.shape[1], batch.target.shape[1])
    return next(width for width in WIDTHS if width >= longest)


NUMBERS = {"float32": "none", "TF32": "none", "bfloat16": "bf16"}
"""In which products are computed, and the autocast of it."""

CASES = (
    (4096, "bfloat16"), (16384, "bfloat16"), (4096, "TF32"), (4096, "float32"),
    (65536, "bfloat16"), (16384, "TF32"), (65536, "TF32"), (16384, "float32"), (65536, "float32"),
)  # fmt: skip
"""Tokens of a batch and kind of numbers, those first for which there is a goal."""

DEFAULT_CASES = ((4096, "bfloat16"), (16384, "bfloat16"), (4096, "float32"), (65536, "bfloat16"))
"""Those of a run that asks for none.

On an H100 attlas made 106,000 target tokens a second of 4,096 in float32, the tutorial's loop
202,000, and that loop as CUDA graphs 312,000. So a turn of 160,000 tokens takes four contenders
about 3 s, and four turns 12 s. To this the captures come, and in bfloat16 a first turn at 10,000
tokens a second, as cuDNN plans each new shape: up to 35 s a case, so four fit into their part.
"""

DRY_CASES = tuple((256, numbers) for numbers in NUMBERS)


def case_name(case: tuple[int, str]) -> str:
    """Of a case of training."""
    return f"{case[0]:,} tokens, {case[1]}"


def named_cases(
    names: Sequence[str] | None, refuse: Callable[[str], Any]
) -> Sequence[tuple[int, str]]:
    """The cases of these names; None = those of a run that asks for none."""
    if names is None:
        return DEFAULT_CASES
    if names == ["all"]:
        return CASES
    by_name = {case_name(case): case for case in CASES}
    for name in names:
        if name not in by_name:
            refuse(f"expected a case of training, 'all' or one of {list(by_name)}, got {name!r}")
    return [by_name[name] for name in names]


def training(machine: Any, cases: Sequence[tuple[int, str]] = DEFAULT_CASES) -> dict[str, Any]:
    """Seconds of the same updates by attlas, by attlas with CUDA graphs and by two loops, and
    target tokens a second.
    """
    dry = machine.device.type == "cpu"
    found: dict[str, Any] = {}
    first = recipe_of(256, "none", machine.device, dry=dry)
    splits = first.data.load()
    read = splits, task_of(first).vocabularies_of(first, splits)
    if not dry and (unasked := [case_name(case) for case in CASES if case not in cases]):
        found["not asked for: --parts training --cases"] = unasked
    for tokens, numbers in machine.cases(DRY_CASES if dry else cases, found):
        with tf32_products(numbers == "TF32"):
            found[case_name((tokens, numbers))] = _compared(
                machine, read, tokens, NUMBERS[numbers], dry=dry
            )
    return found


def _compared(
    machine: Any, read: tuple[Any, Any], tokens: int, autocast: str, *, dry: bool
) -> dict[str, Any]:
    """One size of batches in one kind of numbers; `read`: the data, and its vocabularies."""
    recipe = recipe_of(tokens, autocast, machine.device, dry=dry)
    task = task_of(recipe)(recipe, *read)
    made = task.batches(recipe.seed)
    every = [made.batch(rows) for rows in made.epoch(1)]
    # As many as make some seconds of a loop whose kernels plan every new shape.
    batches = every[: 2 if dry else max(2, 160_000 // tokens)]
    size = len(task.vocabularies.source)
    given = (recipe.training, recipe.seed, machine.device, task.loss)
    learner = Learner(task.build(), *given)
    replayed = GraphLearner(task.build(), *given, BatchShapes(recipe.batching))
    loop = Loop(Plain(size, dry=dry), machine.device, autocast)
    graphs = GraphLoop(Plain(size, dry=dry), machine.device, autocast, batches)
    compared: dict[str, Any] = machine.compare(
        3,
        **{
            "attlas": partial(_learned, learner, count(1), batches),
            "attlas, CUDA graphs": partial(_learned, replayed, count(1), batches),
            "loop": partial(_all, loop.update, batches),
            "loop, CUDA graphs": partial(_all, graphs.update, batches),
        },
    )
    target_tokens = sum(batch.tokens for batch in batches)
    compared["tokens a second"] = {
        name: target_tokens / seconds for name, seconds in compared["median"].items()
    }
    compared["positions a token"] = {
        "attlas": _positions(batches) / target_tokens,
        "attlas, CUDA graphs": _positions(list(map(replayed.shapes.pad, batches))) / target_tokens,
        "loop, CUDA graphs": sum(
            held[0].numel() for held in map(graphs.held, batches)
        ) / target_tokens,
    }  # fmt: skip
    return compared


def _positions(batches: Sequence[Batch]) -> int:
    """What a decoder reads, padding included."""
    return sum(batch.decoder_input.numel() for batch in batches)


def _learned(learner: Learner[Any, Any], numbers: Iterator[int], batches: Sequence[Batch]) -> None:
    """Updates of these batches, whose results are asked for as a training does."""
    pending: list[PendingUpdate] = []
    for batch in batches:
        pending.append(learner.submit([[batch]], next(numbers)))
        if len(pending) > UNREAD:
            pending.pop(0).result()
    for update in pending:
        update.result()


def _all(update: Update, batches: Sequence[Batch]) -> None:
    for batch in batches:
        update(batch)


def translation(machine: Any) -> dict[str, Any]:
    """Seconds of the same number of tokens by attlas, by attlas with CUDA graphs and by Hugging
    Face's `generate`: goal, five times as fast.

    The first turn, which captures the graphs, is timed on its own.
    """
    from transformers import MarianConfig, MarianMTModel

    dry = machine.device.type == "cpu"
    if dry:  # steps that are called in place of the graphs
        for module in ("attlas.decoding.decode", "attlas.inference.translator"):
            import_module(module).check_static = lambda model, device: model
    recipe = recipe_of(256, "none", machine.device, dry=dry)
    kind = task_of(recipe)
    splits = recipe.data.load()
    vocabularies = kind.vocabularies_of(recipe, splits)
    texts = [pair.source for pair in splits.test.pairs[: 4 if dry else 1000]]
    length = 3 if dry else 24
    size, given = len(vocabularies.source), sizes(dry=dry)
    torch.manual_seed(0)
    model = build(TransformerConfig(**given, tie_source=True), size).to(machine.device)
    peer = MarianMTModel(
        MarianConfig(
            vocab_size=size, d_model=given["embed_dim"], encoder_layers=given["encoder_layers"],
            decoder_layers=given["decoder_layers"], encoder_attention_heads=given["num_heads"],
            decoder_attention_heads=given["num_heads"], encoder_ffn_dim=given["ffn_dim"],
            decoder_ffn_dim=given["ffn_dim"], pad_token_id=0, eos_token_id=3,
            decoder_start_token_id=2, forced_eos_token_id=None,
        )
    ).to(machine.device).eval()  # fmt: skip
    ids = sorted((vocabularies.source.encode(text) for text in texts), key=len)
    groups = [ids[start : start + 250] for start in range(0, len(ids), 250)]
    found: dict[str, Any] = {}
    for beams in machine.cases((1, 5), found):
        search: dict[str, Any] = {"method": "greedy"}
        if beams > 1:
            search = {"method": "beam", "num_beams": beams}
        config = DecodingConfig(**search, min_length=length, max_len_a=0.0, max_len_b=length)
        translator = Translator.of(model, vocabularies, config)
        graphs = config.model_copy(update={"cuda_graphs": True})
        replayed = Translator.of(model, vocabularies, graphs)

        def by_peer(beams: int = beams) -> None:
            for group in groups:
                padded = nn.utils.rnn.pad_sequence(list(map(torch.tensor, group)), batch_first=True)
                padded = padded.to(machine.device)
                peer.generate(
                    input_ids=padded, attention_mask=(padded != 0).long(), num_beams=beams,
                    min_new_tokens=length, max_new_tokens=length, do_sample=False,
                )  # fmt: skip

        first = machine.seconds(partial(replayed, texts))
        same = [
            ours.text == theirs.text
            for ours, theirs in zip(replayed(texts), translator(texts), strict=True)
        ]
        found["greedy" if beams == 1 else f"beam {beams}"] = machine.compare(
            3,
            attlas=partial(translator, texts),
            **{
                "attlas, CUDA graphs": partial(replayed, texts),
                "Hugging Face": by_peer,
            },
        ) | {
            "seconds of the first call with CUDA graphs": first,
            "texts that are the same with CUDA graphs": sum(same) / len(same),
        }
    return found
