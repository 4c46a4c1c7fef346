"""What the heads of a real, trained model look at."""

from collections.abc import Iterator
from typing import Any

import torch

import attlas
from attlas.lab.data import language_model, pieces_of_stories
from attlas.lab.experiment import (
    AttentionExample,
    Claim,
    Context,
    Experiment,
    Measurement,
    Plot,
    Published,
    Source,
)
from attlas.lab.sources import chapter_4
from attlas.lab.verdict import AtLeast, Difference

FIRST, OWN = (
    "mean weight on the first token",
    "mean weight on itself",
)
SINKS = "share of heads with more than 0.3 on the first token"
LOCAL = "largest mean weight on the previous token of any head"
EVEN = "even share of the first token"


def stories(context: Context) -> Iterator[Measurement]:
    """stories260K reads what it writes itself, by sampling, and what is drawn at random."""
    model = language_model("stories260K")
    torch.manual_seed(context.seed)
    begin = model.config.bos_token_id
    length = context.settings["length"]
    start = torch.full((context.settings["texts"], 1), begin)
    written = model.generate(
        start, do_sample=True, max_new_tokens=length - 1, min_new_tokens=length - 1, top_k=0
    )
    random = torch.randint(3, model.config.vocab_size, written.shape)
    random[:, 0] = begin
    for name, ids in (("its own text", written), ("random tokens", random)):
        for size in context.settings["lengths"]:
            with torch.no_grad(), attlas.observe(model) as trace:
                model(ids[:, :size])
            summaries = [
                attention_map.summary("first_weight", "previous_weight", "self_weight")
                for attention_map in trace.values()
            ]

            def stacked(statistic: str, found: list[Any] = summaries) -> torch.Tensor:
                # The first query sees one key only; it is left out.
                rows = [getattr(summary, statistic)[..., 1:] for summary in found]
                return torch.cat([row.mean((0, 2)) for row in rows])  # by head

            first = stacked("first_weight")
            condition = {"text": name, "length": size}
            yield Measurement(FIRST, first.mean().item(), condition)
            yield Measurement(SINKS, (first > 0.3).double().mean().item(), condition)
            yield Measurement(LOCAL, stacked("previous_weight").max().item(), condition)
            yield Measurement(OWN, stacked("self_weight").max().item(), condition)
            even = torch.tensor([1 / (i + 1) for i in range(1, size)]).mean().item()
            yield Measurement(EVEN, even, condition)


def sink_examples(context: Context) -> Iterator[AttentionExample]:
    """A text that the model writes itself."""
    model = language_model("stories260K")
    torch.manual_seed(context.seed)
    start = torch.full((1, 1), model.config.bos_token_id)
    ids = model.generate(start, do_sample=True, max_new_tokens=63, min_new_tokens=63, top_k=0)
    with torch.no_grad(), attlas.observe(model) as trace:
        model(ids)
    trace.label(pieces_of_stories(ids))
    first = {layer: trace[layer].weights()[..., 1:, 0].mean((0, 2)) for layer in trace}
    layer = max(first, key=lambda name: first[name].max().item())
    caption = "stories260K on a text that it wrote: the head that looks most at the first token."
    yield AttentionExample("own-text", caption, trace, layer, int(first[layer].argmax()))


_GU = Source("Gu et al., 2024", "section 2, ε = 0.3 and 64 tokens", read=False)
EXPERIMENTS = (
    Experiment(
        name="sinks",
        title="The first token as a sink",
        method="stories260K, a trained Llama of five layers with eight heads, reads texts that it "
        "writes itself and texts of random tokens. The weight on the first token is a mean over "
        "all queries but the first.",
        measure=stories,
        examples=sink_examples,
        settings={
            "quick": {"texts": 8, "length": 128, "lengths": (32, 64, 128)},
            "full": {"texts": 32, "length": 256, "lengths": (32, 64, 128, 256)},
        },
        seeds={"quick": 3, "full": 5},
        deterministic=(EVEN,),
        claims=(
            Claim(
                "Some heads put more than 0.3 on the first token, whatever it says.",
                _GU,
                AtLeast(SINKS, 0.1, {"text": "its own text", "length": 64}),
                "Fewer than one head in ten.",
                (Published("ε of a sink", 0.3, _GU, measured=False),),
            ),
            Claim(
                "The sink needs no content: it is there on random tokens, too.",
                _GU,
                AtLeast(SINKS, 0.1, {"text": "random tokens", "length": 64}),
                "Fewer than one head in ten.",
            ),
            Claim(
                "The first token's share does not fall with the length.",
                _GU,
                Difference(
                    FIRST,
                    {"text": "its own text", "length": 128},
                    {"text": "its own text", "length": 32},
                    -0.02,
                ),
                "A share that is 2 points lower at 128 tokens than at 32.",
            ),
            Claim(
                "Trained models have local heads, which look at the word before.",
                chapter_4("4.6.4"),
                AtLeast(LOCAL, 0.5, {"text": "its own text", "length": 64}),
                "No head with half of its weight on the previous token.",
            ),
        ),
        plots=(Plot(FIRST, "length", "text"), Plot(SINKS, "length", "text")),
        needs=("stories260K",),
    ),
)
