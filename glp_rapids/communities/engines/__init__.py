"""What moves vertices, refines communities and contracts a level: an engine a device."""

from __future__ import annotations

from glp_rapids.communities.engines.cpu import CpuEngine

# A graph on a device that is not here is computed on the host.
ENGINES = {"cpu": CpuEngine}
