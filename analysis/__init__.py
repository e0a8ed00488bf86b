"""Offline analysis of LLM serving benchmarks: results folder -> findings (`analysis.pipeline`)."""

import os

# Before numpy is loaded: threads would add up sums in another order, so in other last digits, on a
# machine with more of them; and small matrices take longer with them where others want the cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
