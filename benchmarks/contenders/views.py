"""What a peer makes of attention maps: one HTML file for each of its views.

python contenders/views.py PEER FOLDER    reads FOLDER/maps.npy (layers, heads, rows, keys) and
                                          FOLDER/tokens.json; writes FOLDER/VIEW.html

Runs in the environment of the peer.
"""

import json
import sys
from pathlib import Path

import numpy as np


def bertviz(maps, tokens):
    """Its view of one layer, and its view of all."""
    import torch
    from bertviz import head_view, model_view

    layers = [torch.from_numpy(layer)[None] for layer in maps]
    for view in (head_view, model_view):
        yield view.__name__, view(layers, tokens, html_action="return").data


def circuitsvis(maps, tokens):
    """Its view of heads, with all of them."""
    import circuitsvis.attention as attention

    # All heads in one view; its own file of script, as it writes where there is no network.
    flat = maps.reshape(-1, *maps.shape[2:])
    names = [f"L{number // maps.shape[1]}H{number % maps.shape[1]}" for number in range(len(flat))]
    made = attention.attention_heads(
        attention=flat, tokens=tokens, attention_head_names=names, mask_upper_tri=False
    )
    yield "attention_heads", made.local_src


def inspectus(maps, tokens):
    """Its chart of attention, as it would be shown in a notebook."""
    import inspectus as package
    import IPython.display

    # Its script stops at a token with two number signs ("Invalid Definition").
    tokens = [token.replace("##", "") for token in tokens]
    parts = []
    IPython.display.display = lambda shown: parts.append(shown.data)
    package.attention(maps, tokens)
    yield "attention", "\n".join(parts)


def main():
    """Write what the peer makes of the maps."""
    peer, folder = sys.argv[1], Path(sys.argv[2])
    maps = np.load(folder / "maps.npy")
    tokens = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
    for name, html in {"bertviz": bertviz, "circuitsvis": circuitsvis, "inspectus": inspectus}[
        peer
    ](maps, tokens):
        page = f'<!DOCTYPE html>\n<meta charset="utf-8">\n<body>\n{html}\n</body>\n'
        (folder / f"{name}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
