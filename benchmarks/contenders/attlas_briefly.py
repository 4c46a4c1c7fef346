"""attlas trains a model for a while, so that it writes sentences, and leaves its weights to others.

One that is trained already is left as it is.
"""

import options

settings, _ = options.read()

import torch  # noqa: E402
from attlas_models import briefly  # noqa: E402

from attlas.runs import Run  # noqa: E402
from attlas.training import train  # noqa: E402

recipe = briefly(settings.model, settings.corpus, settings.threads, settings.updates)
train(recipe, settings.run)
torch.save(dict(Run(settings.run).store.read("best").model), settings.run / options.WEIGHTS)
