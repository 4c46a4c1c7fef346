"""How many target tokens a second a training takes in, beside its peers.

Every contender trains in its own way, with its own loop, model, loss, optimiser and batching, on
the same subword pieces, and is asked for blocks of some seconds in turn. Real target tokens count,
END included: padding does not, whoever made it.
"""

from contest import Contender, contest, parser
from measurement import write


def attlas(name: str, model: str) -> Contender:
    """Ours, as `attlas train` does it."""
    return Contender(name, "attlas_command_training", model)


def joeynmt(model: str) -> Contender:
    """JoeyNMT."""
    return Contender("JoeyNMT", "joeynmt_training", model, "joeynmt", "joeynmt")


def opennmt(name: str, model: str) -> Contender:
    """OpenNMT-py."""
    return Contender(name, "opennmt_training", model, "opennmt", "OpenNMT-py")


def fairseq(model: str) -> Contender:
    """fairseq."""
    return Contender("fairseq", "fairseq_training", model, "fairseq", "fairseq-fixed")


# The first of each is what the others are compared with.
MODELS: dict[str, tuple[str, list[Contender]]] = {
    "transformer": (
        "Transformer",
        [
            attlas("attlas", "transformer"),
            attlas("attlas, bfloat16", "transformer:bf16"),
            Contender("attlas, glibc's defaults", "attlas_training", "transformer"),
            Contender("hand loop, nn.Transformer", "torch_training", "transformer", None, "torch"),
            Contender(
                "hand loop, HF Marian", "marian_training", "transformer", None, "transformers"
            ),
            fairseq("transformer"),
            opennmt("OpenNMT-py", "transformer"),
            joeynmt("transformer"),
        ],
    ),
    "additive": (
        "RNN, additive",
        [
            attlas("attlas", "additive"),
            attlas("attlas, bfloat16", "additive:bf16"),
            attlas("attlas, Bahdanau's wiring", "bahdanau"),
            opennmt("OpenNMT-py", "additive"),
            joeynmt("additive"),
        ],
    ),
    "luong": (
        "RNN, Luong",
        [
            attlas("attlas", "luong"),
            attlas("attlas, bfloat16", "luong:bf16"),
            attlas("attlas, no input feeding", "luong-free"),
            attlas("attlas, no input feeding, bfloat16", "luong-free:bf16"),
            fairseq("luong"),
            opennmt("OpenNMT-py", "luong"),
            opennmt("OpenNMT-py, no input feeding", "luong-free"),
            joeynmt("luong"),
        ],
    ),
}


def main() -> None:
    """Measure, print, and write JSON where asked to."""
    requested = parser(__doc__)
    requested.add_argument("--model", choices=MODELS, nargs="+", default=list(MODELS))
    others = {one.name for _, contenders in MODELS.values() for one in contenders[1:]}
    requested.add_argument(
        "--without", choices=sorted(others), nargs="+", default=[], metavar="CONTENDER",
        help="leave out (no first one, with whom the others are compared)",
    )  # fmt: skip
    options = requested.parse_args()
    found = []
    for threads in options.threads:
        for model in options.model:
            title, every = MODELS[model]
            contenders = [one for one in every if one.name not in options.without]
            one = contest("training", title, "target tokens/s", contenders, threads, options)
            found.append(one)
            write(found, options.json)  # what comes later may fail


if __name__ == "__main__":
    main()
