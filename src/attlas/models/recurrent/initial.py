"""Where training starts."""

import torch
from torch import nn

from attlas.models.output import Output


def initialise(model: nn.Module) -> None:
    """Draw every parameter of `model` from torch's generator.

    Embeddings: N(0, 1/width), so that a token's vector has norm 1 and a tied output starts with
    small logits. Matrices: uniform with the variance 2 / (in + out) (Glorot & Bengio, 2010), those
    of a recurrent layer gate by gate. Recurrent matrices: orthogonal for each gate (Saxe et al.,
    2014), so that a state keeps its length over many steps. Biases: 0, but 1 for the forget gate
    of an LSTM (Gers et al., 2000; Jozefowicz et al., 2015).
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        elif isinstance(module, nn.Linear | Output):
            if module.weight is not None:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.GRU | nn.LSTM):
            _recurrent(module)


@torch.no_grad()
def _recurrent(rnn: nn.GRU | nn.LSTM) -> None:
    gates = 4 if isinstance(rnn, nn.LSTM) else 3
    for name, parameter in rnn.named_parameters():
        for number, gate in enumerate(parameter.chunk(gates)):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(gate)
            else:  # the gates of an LSTM are input, forget, cell, output; its two biases add up
                forget = gates == 4 and number == 1 and name.startswith("bias_ih")
                nn.init.constant_(gate, 1.0 if forget else 0.0)
