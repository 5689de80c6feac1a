#!/usr/bin/env bash
# Milliseconds before and after, whole calls and levels; alone on the GPU, at most 30 s. After check.sh (kernels are
# compiled then, or in .gpu/shipped). 20 times with larger kron: pass graphs as arguments.
set -u
mkdir -p glp_rapids/jit/shipped; cp -n .gpu/shipped/*.xz glp_rapids/jit/shipped/ 2>/dev/null
python=${PYTHON:-python}
timeout 30 $python .gpu/time.py ${*:-com-dblp web kron-22-16}
