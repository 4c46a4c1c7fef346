"""attlas as `attlas train` does it: freed memory is kept, and then `train(recipe, folder)`."""

from attlas._hardware import keep_freed_memory

keep_freed_memory()

import attlas_training  # noqa: E402, F401
