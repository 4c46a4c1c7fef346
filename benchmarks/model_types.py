"""Which of transformers' model types attlas reads exactly, which it refuses, and why.

python benchmarks/model_types.py                           every type, about half an hour
python benchmarks/model_types.py --types bert llama t5     some of them
python benchmarks/model_types.py --sample 40 --json types.json

Each type is built small, with random weights, from its default configuration. The same weights run
twice with eager attention: once as transformers runs them, keeping the maps that the model itself
returns (`output_attentions`, or else what its attention modules return), and once under
`attlas.observe`. Where transformers offers PyTorch's kernel, they run under `observe` with that as
well. A type runs in a process of its own, with a limit on time and memory.

| verdict | what it says |
|---|---|
| exact | each map that the model returns is in the trace, within 1e-5 |
| told | maps are missing from the trace, and an error or a warning says so |
| silent | a map is missing from the trace or differs, and nothing says so |
| read | attlas reads maps, and the model returns none to compare them with |
| none | the model returns no map, and attlas says that it found no attention |
| differs | transformers computes something else with its kernel, so there is nothing to compare |
| not run | the script could not build or call the model; the reason is given |
"""

import argparse
import copy
import inspect
import json
import multiprocessing
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel, PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

import attlas

ATOL = 1e-5
BYTES = 8 << 30  # of a process
PARAMETERS = 100_000_000  # of a model
BATCH, LENGTH = 2, 9
VERDICTS = ("exact", "told", "silent", "read", "none", "differs", "not run")

# Names that configurations give to their sizes, and sizes that go together.
LAYERS = (
    *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers"),
    *("decoder_layers", "num_encoder_layers", "num_decoder_layers", "depth", "text_layers"),
)
SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim"), 32),
    **dict.fromkeys(("embedding_size", "word_embed_proj_dim", "projection_dim"), 32),
    **dict.fromkeys(
        ("num_attention_heads", "num_heads", "n_head", "n_heads", "num_query_heads"), 4
    ),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_dim"), 8),
    **dict.fromkeys(
        (
            *("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim"),
            *("mlp_dim", "n_inner", "moe_intermediate_size", "shared_expert_intermediate_size"),
        ),
        48,
    ),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "n_shared_experts"), 2),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"), 8),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank", "o_lora_rank", "qk_head_dim"), 16),
    "vocab_size": 120,
    "sliding_window": 4,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one model type with one implementation of attention."""

    type: str
    implementation: str
    verdict: str
    expected: int = 0  # maps that the model returned
    found: int = 0  # of these in the trace
    attention_maps: int = 0  # calls in the trace
    reason: str = ""


def small(config: PretrainedConfig, widths: bool) -> PretrainedConfig:
    """The same configuration with few layers; with `widths`, narrow as well."""
    return type(config).from_dict(_small(config.to_dict(), widths))


def _small(settings: dict[str, Any], widths: bool) -> dict[str, Any]:
    kinds = settings.get("layer_types")
    unique = list(dict.fromkeys(kinds))[:4] if isinstance(kinds, list) else []
    count = max(2, len(unique))
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found[name] = _small(value, widths)
        elif name in LAYERS and isinstance(value, int):
            found[name] = count
        elif name == "layer_types" and unique:
            found[name] = [unique[place % len(unique)] for place in range(count)]
        elif name == "mlp_layer_types" and isinstance(value, list):
            found[name] = [*value[:1], *value[-1:]] * (count // 2) + value[-1:] * (count % 2)
        elif name in ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"):
            found[name] = None if value is None or isinstance(value, list) else min(value, 2)
        elif name == "vocab_size" and isinstance(value, int):
            found[name] = min(value, SIZES[name])
        elif widths and name in SIZES and isinstance(value, int) and value > SIZES[name]:
            found[name] = SIZES[name]
        else:
            found[name] = value
    if widths and "kv_lora_rank" in settings:  # latent attention shares no keys
        found["num_key_value_heads"] = found.get("num_attention_heads")
    return found


def configurations(name: str) -> Iterator[PretrainedConfig]:
    """From the smallest that may work to the default itself."""
    for widths in (True, False):
        with suppress(Exception):
            yield small(CONFIG_MAPPING[name](), widths)
    with suppress(Exception):
        yield CONFIG_MAPPING[name]()


def built(config: PretrainedConfig, implementation: str | None) -> nn.Module:
    """The model with random weights, the same for every implementation."""
    torch.manual_seed(0)
    if sum(_estimated(config)) > PARAMETERS:
        raise MemoryError(f"more than {PARAMETERS:,} parameters")
    named = {} if implementation is None else {"attn_implementation": implementation}
    config = copy.deepcopy(config)  # the model notes its kernel there
    model: nn.Module = AutoModel.from_config(config, dtype=torch.float32, **named)
    return model.eval()


def _estimated(config: PretrainedConfig) -> Iterator[int]:
    with torch.device("meta"):
        model = AutoModel.from_config(copy.deepcopy(config))
        yield from (parameter.numel() for parameter in model.parameters())


def setting(config: Any, *names: str) -> Any:
    """The first of these settings that a configuration, or one that it holds, has."""
    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    for value in vars(config).values():
        if isinstance(value, PretrainedConfig):
            found = setting(value, *names)
            if found is not None:
                return found
    return None


def inputs(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """What the model may read: texts, pictures, sounds, by the name of its main input.

    Those that are likelier come first; the script takes the first that the model accepts.
    """
    config = model.config
    torch.manual_seed(1)
    parameters = inspect.signature(model.forward).parameters
    vocabulary = setting(config, "vocab_size") or 100
    size = setting(config, "image_size", "input_size") or 224
    height, width = size[:2] if isinstance(size, list | tuple) else (size, size)
    channels = setting(config, "num_channels", "in_channels", "in_chans") or 3
    frames = setting(config, "num_frames") or 4
    bins = setting(config, "num_mel_bins", "feature_size", "n_mels") or 80
    length = 2 * (setting(config, "max_source_positions") or 50)
    text = torch.randint(3, vocabulary, (BATCH, LENGTH))
    picture = torch.randn(BATCH, channels, height, width)
    sound = torch.randn(BATCH, 4000)
    ways: dict[str, list[Tensor]] = {
        "input_ids": [text],
        "pixel_values": [picture, torch.randn(BATCH, frames, channels, height, width)],
        "pixel_values_videos": [torch.randn(BATCH, frames, channels, height, width)],
        "input_features": [torch.randn(BATCH, bins, length), torch.randn(BATCH, length, bins)],
        "input_values": [
            *(sound, sound[:, None], torch.randn(BATCH, bins, length)),
            torch.randn(BATCH, setting(config, "max_length") or length, bins),
        ],
        "inputs_embeds": [torch.randn(BATCH, LENGTH, setting(config, "hidden_size") or 32)],
        "hidden_states": [torch.randn(BATCH, LENGTH, setting(config, "hidden_size") or 32)],
    }
    more: dict[str, Tensor] = {}
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in parameters:
        more["decoder_input_ids"] = torch.randint(3, vocabulary, (BATCH, 5))
    main = model.main_input_name
    for given in ways.get(main, []):
        yield {main: given, **more}
    both = [name for name in ways if name in parameters and name != "inputs_embeds"]
    if len(both) > 1:
        yield {**{name: ways[name][0] for name in both}, **more}
        yield {**{name: ways[name][-1] for name in both}, **more}
    masks = [name for name in parameters if name.endswith("_mask") and name[:-5] in ways]
    if masks and main in ways:
        whole = {name: torch.ones(ways[main][0].shape[::2], dtype=torch.long) for name in masks}
        yield {main: ways[main][0], **whole, **more}


def returned(model: nn.Module, given: dict[str, Tensor]) -> list[Tensor]:
    """The maps of an eager model: its own outputs, or else those of its attention modules."""
    heard: list[Tensor] = []

    def keep(module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(output, tuple) and "att" in type(module).__name__.lower():
            heard.extend(one for one in output[1:] if _is_map(one))

    handles = [module.register_forward_hook(keep) for module in model.modules()]
    try:
        torch.manual_seed(2)
        output = model(**given, output_attentions=True)
    except TypeError:
        heard.clear()
        torch.manual_seed(2)
        output = model(**given)
    finally:
        for handle in handles:
            handle.remove()
    named = output.items() if isinstance(output, dict) else ()
    maps = [
        one
        for name, value in named
        if "attention" in name and isinstance(value, tuple | list)
        for one in value
        if _is_map(one)
    ]
    return maps or _distinct(heard)


def _is_map(value: Any) -> bool:
    """Rows of weights: four axes, none below 0, each row with a sum of 1 or, hidden whole, 0."""
    if not isinstance(value, Tensor) or value.ndim != 4 or not value.is_floating_point():
        return False
    sums = value.sum(-1)
    one = ((sums - 1).abs() < 1e-4) | (sums == 0)
    return value.numel() > 0 and bool((value >= 0).all()) and bool(one.all())


def _distinct(maps: list[Tensor]) -> list[Tensor]:
    """Each tensor once, though a module and the one that holds it both return it."""
    return list({one.data_ptr(): one for one in maps}.values())


def in_trace(trace: attlas.Trace, expected: list[Tensor]) -> int:
    """How many of these maps are among the readings, each reading serving once."""
    left = [attention_map for layer in trace for attention_map in trace.calls(layer)]
    found = 0
    for wanted in expected:
        for attention_map in left:
            if tuple(attention_map.shape) != tuple(wanted.shape):
                continue
            ours = attention_map.weights()
            if wanted.shape[1] > 1 and wanted.stride(1) == 0:  # the mean of its heads, repeated
                ours = ours.mean(1, keepdim=True).expand_as(ours)
            blind = ours.sum(-1, keepdim=True) == 0  # sees nothing; eager models give what is left
            if torch.allclose(ours.masked_fill(blind, 0), wanted.masked_fill(blind, 0), 0, ATOL):
                left.remove(attention_map)
                found += 1
                break
    return found


def judged(
    name: str, kind: str, expected: list[Tensor], model: nn.Module, given: dict[str, Tensor]
) -> Finding:
    """Observe the model and compare."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            torch.manual_seed(2)  # some models draw what they read
            with torch.no_grad(), attlas.observe(model) as trace:
                model(**given)
        except attlas.AttlasError as error:
            verdict = "told" if expected else "none"
            return Finding(name, kind, verdict, len(expected), reason=str(error))
    notes = [str(one.message) for one in caught if "attlas" in str(one.message)]
    attention_maps = sum(len(trace.calls(layer)) for layer in trace)
    found = in_trace(trace, expected)
    if not expected:
        return Finding(name, kind, "read", attention_maps=attention_maps, reason="; ".join(notes))
    verdict = "exact" if found == len(expected) else "told" if notes else "silent"
    reason = "; ".join(notes)
    if verdict == "silent":
        shapes = {str(tuple(one.shape)) for one in expected}
        ours = {str(tuple(r.shape)) for layer in trace for r in trace.calls(layer)}
        reason = f"returned {', '.join(sorted(shapes))}; read {', '.join(sorted(ours))}"
    return Finding(name, kind, verdict, len(expected), found, attention_maps, reason)


def findings(name: str) -> list[Finding]:
    """Of one model type, with eager attention and with the kernel that it chooses itself."""
    reasons: list[str] = []
    for config in configurations(name):
        try:
            eager = built(config, "eager")
            given, expected = accepted(eager)
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}")
            continue
        made = [judged(name, "eager", expected, eager, given)]
        with suppress(ValueError):  # transformers has no other kernel for this type
            other = built(config, "sdpa")
            other.load_state_dict(eager.state_dict())
            found = judged(name, "sdpa", expected, other, given)
            if found.verdict == "silent" and not same_outputs(eager, other, given):
                found = replace(found, verdict="differs")
            made.append(found)
        return made
    return [Finding(name, "eager", "not run", reason=reasons[0] if reasons else "no configuration")]


def same_outputs(one: nn.Module, other: nn.Module, given: dict[str, Tensor]) -> bool:
    """Returns True where both models give the same for these inputs."""
    outputs: list[Tensor] = []
    for model in (one, other):
        torch.manual_seed(2)
        with torch.no_grad():
            output = model(**given)
        values = output.values() if isinstance(output, dict) else output
        outputs.append(next(value for value in values if isinstance(value, Tensor)))
    return torch.allclose(*outputs, atol=1e-3)


def accepted(model: nn.Module) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The first inputs that the model accepts, and the maps that it returns for them."""
    errors: list[Exception] = []
    for given in inputs(model):
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return given, returned(model, given)
        except Exception as error:
            errors.append(error)
    raise errors[0] if errors else LookupError(f"no inputs for {model.main_input_name}")


def _serve(name: str, sender: Any) -> None:
    limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, limit))
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    try:
        sender.send(findings(name))
    except BaseException:
        reason = traceback.format_exc().strip().splitlines()[-1]
        sender.send([Finding(name, "eager", "not run", reason=reason)])


def within(name: str, seconds: float) -> list[Finding]:
    """The findings of a type, made in a forked process that ends after so many seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(name, sender), daemon=True)
    process.start()
    sender.close()
    try:
        if receiver.poll(seconds):
            made: list[Finding] = receiver.recv()
            return made
        why = f"longer than {seconds:.0f} s"
    except EOFError:
        why = "the process ended, perhaps for want of memory"
    finally:
        process.kill()
        process.join()
    return [Finding(name, "eager", "not run", reason=why)]


def types() -> list[str]:
    """Every model type that transformers builds by `AutoModel`."""
    return sorted(set(CONFIG_MAPPING_NAMES) & set(MODEL_MAPPING_NAMES))


def summary(made: list[Finding]) -> str:
    """A table of verdicts, and the reasons of what is neither exact nor without attention."""
    counts = Counter((one.implementation == "eager", one.verdict) for one in made)
    lines = ["| attention | " + " | ".join(VERDICTS) + " |", "|---" * (len(VERDICTS) + 1) + "|"]
    for eager, kind in ((True, "eager"), (False, "sdpa")):
        row = (str(counts[eager, verdict]) for verdict in VERDICTS)
        lines.append(f"| {kind} | " + " | ".join(row) + " |")
    for verdict in ("silent", "told", "not run"):
        lines.append("")
        for one in made:
            if one.verdict == verdict:
                of = f"{one.found} of {one.expected}" if one.expected else ""
                reason = " ".join(one.reason.split())[:160]
                lines.append(f"{verdict}: {one.type} ({one.implementation}) {of} {reason}")
    return "\n".join(lines)


def main() -> None:
    """Try, compare, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", nargs="+", help="these alone")
    parser.add_argument("--sample", type=int, help="so many, drawn with seed 0")
    parser.add_argument("--seconds", type=float, default=60, help="the limit of a type")
    parser.add_argument("--json", type=Path, help="where the findings are written")
    options = parser.parse_args()
    names = options.types or types()
    if options.sample is not None:
        names = sorted(random.Random(0).sample(names, min(options.sample, len(names))))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    made: list[Finding] = []
    for name in names:
        started = time.perf_counter()
        ones = within(name, options.seconds)
        made += ones
        reported = ", ".join(f"{one.implementation} {one.verdict}" for one in ones)
        print(f"{name}: {reported} ({time.perf_counter() - started:.1f} s)", file=sys.stderr)
        if options.json:
            facts = {
                "transformers": transformers.__version__,
                "torch": torch.__version__,
                "findings": [asdict(one) for one in made],
            }
            options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(summary(made))


if __name__ == "__main__":
    main()
