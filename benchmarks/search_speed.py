"""How many sentences a second a model translates, from text to text, beside JoeyNMT.

The same weights for both: attlas trains each model for some minutes (once; the run is kept in
.corpus), and JoeyNMT is given what came out, so that both write the same translations and end where
the model ends. 512 lines, all of them in every block, in batches of 64 sentences: attlas sorts them
by length first, as `attlas translate` does; JoeyNMT takes them as they come, and sorts each batch.
At most 1.5 n tokens for a line of n (JoeyNMT: for the longest of a batch; attlas: one more). Length
penalty 1.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import corpus
from agreement import OURS, agreeing
from contest import CORPUS, HERE, Contender, contest, parser
from measurement import write

sys.path.append(str(HERE / "contenders"))

from attlas_models import briefly

MODELS = {
    "transformer": "Transformer",
    "additive": "RNN, additive",
    "luong-gru": "RNN, Luong with GRU",  # JoeyNMT starts an LSTM in another way
}
TRAINER = HERE / "contenders" / "attlas_briefly.py"


def main() -> None:
    """Measure, print, and write JSON where asked to."""
    requested = parser(__doc__)
    requested.add_argument("--model", choices=MODELS, nargs="+", default=list(MODELS))
    requested.add_argument("--num-beams", type=int, nargs="+", default=[1, 5], help="1 = greedy")
    requested.add_argument("--updates", type=int, default=1000, help="of each model's training")
    options = requested.parse_args()
    made = corpus.made(tuple(options.data), CORPUS)
    runs = {model: trained(model, made, options.updates) for model in options.model}
    found = []
    for threads in options.threads:
        for model in options.model:
            for num_beams in options.num_beams:
                contenders = [
                    Contender(OURS, "attlas_search", model),
                    Contender("JoeyNMT", "joeynmt_search", model, "joeynmt", "joeynmt"),
                ]
                answers = {one.name: runs[model] / f"{one.name}.json" for one in contenders}
                for path in answers.values():
                    path.unlink(missing_ok=True)
                title = f"{MODELS[model]}, {'greedy' if num_beams == 1 else f'beam {num_beams}'}"
                more = ["--num-beams", str(num_beams), "--run", str(runs[model])]
                one = contest("search", title, "sentences/s", contenders, threads, options, more)
                found.append(one | agreeing(written(answers), OURS))
                write(found, options.json)  # what comes later may fail


def trained(model: str, made: Path, updates: int) -> Path:
    """The run of this model on this corpus, trained where there is none yet."""
    threads = os.cpu_count() or 1
    tables = briefly(model, made, threads, updates).tables()
    facts = json.dumps(tables) + (made / "made.json").read_text(encoding="utf-8")
    run = made / f"{model}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    print(f"training {MODELS[model]} for a while, unless {run} is", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, str(TRAINER), "--corpus", str(made), "--model", model,
            "--folder", folder, "--run", str(run), "--threads", str(threads),
            "--seconds", "0", "--updates", str(updates),
        ]  # fmt: skip
        subprocess.run(command, check=True)
    return run


def written(answers: Mapping[str, Path]) -> dict[str, list[str]]:
    """The translations of each contender that wrote some."""
    return {
        name: json.loads(path.read_text("utf-8"))
        for name, path in answers.items()
        if path.is_file()
    }


if __name__ == "__main__":
    main()
