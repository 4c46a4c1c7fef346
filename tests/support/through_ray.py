"""Two workers of Ray Data translate a file; run as a script by tests/inference/test_ray.py.

`python through_ray.py TEXT SEED` prints one JSON object: the rows as Ray gives them back, from how
many processes, and what became of an error of ours in one of them.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.data import ActorPoolStrategy, DataContext, Dataset, read_text
from ray.exceptions import RayTaskError

from attlas.data import Vocabularies, Words
from attlas.decoding import DecodingConfig
from attlas.inference import ColumnTranslator, Translator

WORKERS = 2


class Opened:
    """The translator of the tests beside this file, made where it is called."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self) -> Translator:
        from table_model import LookingTable  # it lies beside this script, and here alone

        vocabularies = Vocabularies(Words(list("abcdefgh")), Words(["x", "y"]))
        config = DecodingConfig(max_len_a=1.0, max_len_b=5)
        return Translator.of(LookingTable(self.seed), vocabularies, config)


class Signing(ColumnTranslator):
    """It also says which process it is, and does not take the work of one that comes up later."""

    def __init__(self, opened: Opened, source: str, target: str, meeting: Path) -> None:
        super().__init__(opened, source, target)
        self.meeting = meeting

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        found = super().__call__(batch)
        (self.meeting / str(os.getpid())).touch()
        while len(list(self.meeting.iterdir())) < WORKERS:
            time.sleep(0.05)
        return {**found, "process": np.full(len(found[self.target]), os.getpid())}


def translated(texts: Dataset, seed: int, source: str, meeting: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = texts.map_batches(
        Signing,
        fn_constructor_args=(Opened(seed), source, "translation", meeting),
        batch_size=4,
        compute=ActorPoolStrategy(size=WORKERS, max_tasks_in_flight_per_actor=1),
        num_cpus=1,
    ).take_all()
    return found


def main(path: Path, seed: int) -> None:
    # Two to translate, the others to read: without one Ray would wait for ever.
    workers = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}}
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env=workers)
    DataContext.get_current().execution_options.preserve_order = True
    texts = read_text(str(path), drop_empty_lines=False).repartition(6)
    meeting = path.with_name("meeting")
    meeting.mkdir()
    rows = translated(texts, seed, "text", meeting)
    try:
        translated(texts, seed, "words", meeting)
        mistake = ""
    except RayTaskError as error:
        mistake = str(error)
    processes = {row["process"] for row in rows}
    print(
        json.dumps(
            {
                "rows": [[row["text"], row["translation"]] for row in rows],
                "processes": len(processes - {os.getpid()}),
                "mistake": mistake,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
