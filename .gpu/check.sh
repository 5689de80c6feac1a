#!/usr/bin/env bash
# Correctness of levels done together (branch small). At most 80 s with the compiled kernels of .gpu/shipped
# (.work/small_ship.py made them); without these go_down compiles for about a minute first.
set -u
mkdir -p glp_rapids/jit/shipped; cp -n .gpu/shipped/*.xz glp_rapids/jit/shipped/ 2>/dev/null; ls glp_rapids/jit/shipped | wc -l
python=${PYTHON:-python}; export NUMBA_NUM_THREADS=2
t0=$(date +%s); o=$(mktemp -d); now() { echo "$1 rc $2 after $(( $(date +%s)-t0 )) s"; }
# a kernel that hangs burns everyone's lease: one small run first, alone
timeout 60 $python -c "
import numpy as np, time; t = time.time()
from glp_rapids import multilevel_label_propagation as m
e = tuple(np.random.default_rng(1).integers(0, 300, (2, 2000)))
a, b = m(e, device='cpu'), m(e, device='gpu')
print('first run', round(time.time() - t, 1), 's', (a['partition'].values == (b.to_pandas() if hasattr(b, 'to_pandas') else b)['partition'].values).all())
"; now first $?
san() { timeout $3 compute-sanitizer --tool $1 --report-api-errors no --kernel-name kernel_substring=locals $python tests/sanitize_multilevel.py $2 > $o/$1_${2// /_}.txt 2>&1; now "$1 $2" $?; }
(san memcheck "counts together" 70)& (san memcheck "weights together" 70)& (san racecheck "counts together refined" 75)& (san racecheck "weights together plain" 75)&
(san memcheck "weights apart" 70)&
(timeout -s INT 75 $python -m pytest -q -m gpu -n 4 --dist worksteal -p no:cacheprovider -p no:benchmark tests/test_multilevel.py tests/test_contract.py > $o/pytest.txt 2>&1; now pytest $?)&
(timeout 70 $python .gpu/agree.py com-dblp w:email-Enron > $o/real1.txt 2>&1; now real1 $?)&
(timeout 70 $python .gpu/agree.py football cnr-2000 wiki-Vote w:wiki-Vote road-luxembourg > $o/real2.txt 2>&1; now real2 $?)&
(timeout 70 $python .gpu/agree.py kron-16-16 w:ca-CondMat facebook_combined web-100000 lfr-10000-mu0.3 > $o/real3.txt 2>&1; now real3 $?)&
wait
for f in $o/*.txt; do echo "== $(basename $f)"; grep -E "DIFFERENT|Error|ERROR|hazard|passed|failed" $f | tail -6; grep -c "CPU=GPU\|same as on a CPU" $f; done
