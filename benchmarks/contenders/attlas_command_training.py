"""attlas as `attlas train` does it: freed memory is kept, and then `train(recipe, folder)`."""

from attlas._hardware import disable_malloc_trim

disable_malloc_trim()

import attlas_training  # noqa: E402, F401
