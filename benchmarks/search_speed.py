"""How many sentences a second a search writes, beside JoeyNMT's.

640 sentences in batches of 64, as each contender sorts them; for every sentence exactly 16 tokens
are written, END being forbidden till then, so that models which nobody has trained will do, and
nobody gains by being brief. From ids to ids.
"""

from contest import Contender, contest, parser, write

MODELS = {"transformer": "Transformer", "additive": "RNN, additive", "luong": "RNN, Luong"}


def main() -> None:
    """Measure, print, and write JSON where asked to."""
    asked = parser(__doc__)
    asked.add_argument("--model", choices=MODELS, nargs="+", default=list(MODELS))
    asked.add_argument("--beam", type=int, nargs="+", default=[1, 5], help="1 = greedy")
    options = asked.parse_args()
    found = []
    for threads in options.threads:
        for model in options.model:
            for beam in options.beam:
                contenders = [
                    Contender("attlas", "attlas_search", model),
                    Contender("JoeyNMT", "joeynmt_search", model, "joeynmt", "joeynmt"),
                ]
                title = f"{MODELS[model]}, {'greedy' if beam == 1 else f'beam {beam}'}"
                more = ["--beam", str(beam)]
                one = contest("search", title, "sentences/s", contenders, threads, options, more)
                found.append(one)
    write(found, options.json)


if __name__ == "__main__":
    main()
