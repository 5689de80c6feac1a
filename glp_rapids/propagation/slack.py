"""How many neighbours of a vertex may change before its winner can: what skipping rests on.

Each vertex has a slack, which every change of a neighbour makes smaller by one; below 0 the vertex
is active. Where votes are summed as they come, an evaluation sets it to how many changes the margin
between the best label and the second can bear: each takes one vote from the best at the most, and
gives one to another. The second has at most what the best has not, of all votes there may be.
"""

from __future__ import annotations

import numpy as np

MOST_SLACK = 1 << 30  # so that no degree makes 32 bits overflow


def slack_of(votes, degree, largest_vote):
    """Return the slack of a vertex whose winner has so many votes of so many neighbours.

    ``largest_vote``: what one neighbour has at the most.
    """
    margin = np.int64(2) * votes - degree * largest_vote - np.int64(1)
    if margin < np.int64(2) * largest_vote:
        return np.int32(0)
    return np.int32(min(margin // (np.int64(2) * largest_vote), np.int64(MOST_SLACK)))
