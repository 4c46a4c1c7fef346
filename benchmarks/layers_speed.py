"""How fast the layers are, and how much memory they take, beside how one would write them by hand.

python benchmarks/layers_speed.py --threads 1 2 --json layers.json
python benchmarks/layers_speed.py --quick                  under four minutes, and as rough as that

What is compared is in layers_suites.py, and how in cases.py.
"""

from cases import main
from layers_suites import SUITES

if __name__ == "__main__":
    main(__doc__, "layers", SUITES)
