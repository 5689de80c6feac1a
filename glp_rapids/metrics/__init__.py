"""How good a partition is, and how alike two are."""

from glp_rapids.metrics.agreement import ari, cover_f1, nmi
from glp_rapids.metrics.quality import coverage, cpm, modularity

__all__ = ["ari", "cover_f1", "coverage", "cpm", "modularity", "nmi"]
