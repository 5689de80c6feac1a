"""Transfers between accounts, as windows take them."""

import pandas as pd


def table(rows):
    frame = pd.DataFrame(rows, columns=["source", "destination", "amount", "time"])
    return frame.astype({"amount": "float64", "time": "float64"})
