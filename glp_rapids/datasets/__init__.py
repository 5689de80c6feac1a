"""Data to try things on: made up, of any size, and published graphs by name."""

from glp_rapids.datasets.drifting_rings import drifting_transactions
from glp_rapids.datasets.fraud_rings import blacklist, transactions
from glp_rapids.datasets.named import NAMES, data_folder, ground_truth, load
from glp_rapids.datasets.social_network import social
from glp_rapids.datasets.synthetic import kronecker, rmat, road_grid
from glp_rapids.datasets.web_crawl import web_like

__all__ = [
    "NAMES",
    "blacklist",
    "data_folder",
    "drifting_transactions",
    "ground_truth",
    "kronecker",
    "load",
    "rmat",
    "road_grid",
    "social",
    "transactions",
    "web_like",
]
