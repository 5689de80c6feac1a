"""Transfers between accounts, as windows take them."""

import numpy as np
import pandas as pd


def table(rows):
    frame = pd.DataFrame(rows, columns=["source", "destination", "amount", "time"])
    return frame.astype({"amount": "float64", "time": "float64"})


def batch(times, first=0, **columns):
    """Between one account and the next, from the first on."""
    ids = np.arange(len(times)) + first
    frame = {"source": ids, "destination": ids + 1, "amount": 1.0, "time": times}
    return pd.DataFrame({**frame, **columns})
