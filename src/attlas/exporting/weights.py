"""The weights as they are: one safetensors file, for any model."""

from pathlib import Path

import safetensors.torch

from attlas.exporting.remarks import OF_LABELS
from attlas.exporting.subject import ClassifierSubject, Subject
from attlas.runs import CONFIG

WEIGHTS = "model.safetensors"


def write_weights(subject: Subject, folder: Path) -> list[str]:
    """`model.safetensors` (the state dict of `models.build`, or of `models.build_classifier`), the
    recipe and the vocabularies, of a classifier its labels too.

    Gives back what a reader of the folder has to know, in whole sentences.
    """
    # A copy of each: safetensors refuses tensors that share memory, as tied weights do.
    tensors = {
        n: t.detach().cpu().clone().contiguous() for n, t in subject.model.state_dict().items()
    }
    (folder / WEIGHTS).write_bytes(safetensors.torch.save(tensors, {"format": "pt"}))
    (folder / CONFIG).write_bytes((subject.run.path / CONFIG).read_bytes())
    subject.vocabularies.save(folder)
    return _OF_CLASSIFIER if isinstance(subject, ClassifierSubject) else _OF_TRANSLATOR


_OF_TRANSLATOR = [
    f"{WEIGHTS} holds the state dict of the model that attlas.models.build makes of the table "
    f"[model] of {CONFIG} and the sizes of the vocabularies.",
    "The ids 0 to 3 are padding, unknown, begin and end; a source ends with end, a target "
    "begins with begin.",
]
_OF_CLASSIFIER = [
    f"{WEIGHTS} holds the state dict of the model that attlas.models.build_classifier makes of the "
    f"table [model] of {CONFIG}, the size of the vocabulary and the number of labels.",
    *OF_LABELS,
]
