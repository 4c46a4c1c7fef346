"""What it costs to observe a model, and to ask what its maps say.

python benchmarks/observe_speed.py --threads 2 --json observe.json
python benchmarks/observe_speed.py --quick

What is compared is in observe_models.py, observe_generation.py and observe_maps.py, and how in
cases.py.
"""

from cases import main
from observe_generation import GENERATIONS
from observe_maps import MAPS
from observe_models import MODELS

if __name__ == "__main__":
    main(__doc__, "observe", MODELS | GENERATIONS | MAPS)
