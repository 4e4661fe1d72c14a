#!/usr/bin/env bash
# mpich 5.0.2 (mpi4py 4.1.2): Allreduce with MAX or MIN gives each rank another number where one
# rank sends NaN.
#
# Expected: NaN may win or lose, but all ranks hold the same number afterwards: that is what
# Allreduce is for. Open MPI 5.0.10 holds one number everywhere for this input.
#
# Seen: with 4 ranks that send 1, 2, 3 and 4, one of them NaN instead, one rank holds NaN and
# three hold 4, or the ranks hold three different numbers. Each rank keeps the number that came
# from its side of a comparison. A loop that stops on a reduced loss stops on some ranks only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet mpi4py==4.1.2 mpich==5.0.2 numpy==2.4.6
cd "$folder"
cat > reduce.py <<'PYTHON'
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
for name in ("MAX", "MIN"):
    for rank_of_nan in range(world.size):
        number = np.array([np.nan if world.rank == rank_of_nan else world.rank + 1.0])
        result = np.empty(1)
        world.Allreduce(number, result, op=getattr(MPI, name))
        results = world.gather(result[0].item())
        if world.rank == 0:
            print(name, "with NaN on rank", rank_of_nan, "gives", results)
            assert len(set(map(str, results))) > 1
PYTHON
env/bin/mpiexec -n 4 env/bin/python reduce.py
