# bash scripts/renaming/all.sh CHECKOUT   with the environment of the tests on PATH, from a copy of this folder outside CHECKOUT
set -e
here=$(cd "$(dirname "$0")" && pwd)
cd "$1" && export PYTHONPATH=$PWD/src
python "$here/1.py" .; ruff check --fix -q . || true; ruff format -q .
for n in 2 3; do
  python "$here/rename.py" "$here/$n.json" .; python "$here/$n.py" .
  ruff check --fix -q . || true; ruff format -q .
done
python "$here/reflow.py" .; ruff format -q .; python scripts/settings.py; ruff check .; mypy
