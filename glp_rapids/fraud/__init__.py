"""From transactions and a blacklist to suspicious clusters: a window, clusters, scores."""

from glp_rapids.fraud.clusters import cluster_members, find_clusters, suspicious_clusters
from glp_rapids.fraud.cross_fitting import features
from glp_rapids.fraud.evaluation import Evaluation, evaluate
from glp_rapids.fraud.explanation import explain
from glp_rapids.fraud.monitor import Monitor
from glp_rapids.fraud.monitor_frames import Tick
from glp_rapids.fraud.scores import account_scores
from glp_rapids.fraud.window import Change, SlidingWindow

__all__ = [
    "Change",
    "Evaluation",
    "Monitor",
    "SlidingWindow",
    "Tick",
    "account_scores",
    "cluster_members",
    "evaluate",
    "explain",
    "features",
    "find_clusters",
    "suspicious_clusters",
]
