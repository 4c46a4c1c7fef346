"""The weights of a model of attlas, under the names that JoeyNMT has for them."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

NAMES = (
    ("target_embedding", "trg_embed.lut"),
    ("decoder.recurrence.", "decoder."),
    ("decoder.attention.q_proj", "decoder.attention.query_layer"),
    ("decoder.attention.k_proj", "decoder.attention.key_layer"),
    ("decoder.attention.score_proj", "decoder.attention.energy_layer"),
    ("decoder.concat_proj", "decoder.att_vector_layer"),
    ("decoder.bridge.matrices.0", "decoder.bridge_layer"),
    ("output.bias", "decoder.output_layer.bias"),
    ("feed_forward.inner", "feed_forward.pwff_layer.0"),
    ("feed_forward.outer", "feed_forward.pwff_layer.3"),
    ("around_feed_forward.norm", "feed_forward.layer_norm"),
    ("around_cross_attention.norm", "dec_layer_norm"),
    ("cross_attention", "src_trg_att"),
    ("q_proj", "q_layer"),
    ("k_proj", "k_layer"),
    ("v_proj", "v_layer"),
    ("out_proj", "output_layer"),
)
SIDES = {
    "encoder.": (("around_self_attention.norm", "layer_norm"), ("self_attention", "src_src_att")),
    "decoder.": (("around_self_attention.norm", "x_layer_norm"), ("self_attention", "trg_trg_att")),
}


def put_into(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a model of JoeyNMT the weights of one of attlas that is wired alike.

    Its vector of attention has the state before the context, its bridge reads both directions of
    the encoder, and its specials begin with the unknown one and padding, in this order. An output
    layer without a bias gets one.
    """
    found = {_renamed(name): weight for name, weight in weights.items()}
    found["trg_embed.lut.weight"] = _swapped(found["trg_embed.lut.weight"])
    found["decoder.output_layer.bias"] = _swapped(found["decoder.output_layer.bias"])
    for tied in ("src_embed.lut.weight", "decoder.output_layer.weight"):
        found[tied] = found["trg_embed.lut.weight"]
    both, bridge = "decoder.att_vector_layer", "decoder.bridge_layer.weight"
    if bridge in found:
        context, state = found[f"{both}.weight"].chunk(2, dim=1)
        found[f"{both}.weight"] = torch.cat([state, context], dim=1)
        found[f"{both}.bias"] = torch.zeros(len(state))
        found[bridge] = torch.cat([torch.zeros_like(found[bridge]), found[bridge]], dim=1)
    output = model.get_submodule("decoder.output_layer")
    output.bias = nn.Parameter(found["decoder.output_layer.bias"])
    known = model.state_dict()
    model.load_state_dict({name: known[name] for name in known if name.endswith(".pe")} | found)


def _renamed(name: str) -> str:
    for side, pairs in SIDES.items():
        for ours, theirs in pairs if name.startswith(side) else ():
            name = name.replace(ours, theirs)
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    return name


def _swapped(rows: Tensor) -> Tensor:
    """Padding, unknown, … → unknown, padding, …"""
    return torch.cat([rows[1:2], rows[:1], rows[2:]])
