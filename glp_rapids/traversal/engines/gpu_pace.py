"""How a GPU searches: what was chosen by measurement on an H200, in one place.

Modules look a number up here when they launch, so that a test can try others.
"""

from __future__ import annotations

LEVELS_A_LAUNCH = 1 << 16  # then Python has a look at signals
# Of a breadth-first search, see `gpu_bfs.Pace`; MOST_CHUNK is that of shortest paths, too.
HOPS, CHUNK, MOST_CHUNK = 64, 8, 64
PULL = 8, 16  # alpha, beta
PENALTY = 16  # levels
# Of shortest paths, see `gpu_sssp.Pace`.
NEAR_HOPS, NEAR_CHUNK, LIGHT = 32, 8, 4
# Median weights, divided by the square of the entries of a vertex that has some: how far the limit
# of near vertices goes up.
STEP = 112.0
SAMPLE = 1 << 12  # weights
MOST_TARGETS = 1 << 10  # that every block looks at; with more of them nothing ends early
PULL_TOGETHER = 8  # alpha of searches from many vertices, see `gpu_together.Pace`
