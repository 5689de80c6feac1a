"""Partitions of a dask frame for the workers of a run: as many each, where they lie already."""

from __future__ import annotations

from typing import Any


def dealt_if_dask(table: Any, workers: list[str], client: Any) -> list[list]:
    """Return what each worker has of a table; all is the first one's, if it is not of dask."""
    if hasattr(table, "to_delayed"):
        return dealt(table, workers, client)
    return [[] if table is None or rank else [table] for rank in range(len(workers))]


def dealt(table: Any, workers: list[str], client: Any) -> list[list]:
    """Have workers compute partitions, as many each; return the futures of each worker."""
    import dask

    parts, places = table.to_delayed(), places_of(table, client)
    ranks = shares([places.get(number) for number in range(len(parts))], workers)
    given = []
    for part, rank in zip(parts, ranks, strict=True):
        with dask.annotate(workers=[workers[rank]], allow_other_workers=False):
            given.append(dask.delayed(_itself)(part))
    futures = client.compute(given)
    return [
        [future for future, other in zip(futures, ranks, strict=True) if other == rank]
        for rank in range(len(workers))
    ]


def places_of(table: Any, client: Any) -> dict[int, str]:
    """Return where partitions lie that are there already, by their numbers."""
    from distributed import futures_of

    futures = futures_of(table)
    keys = [future.key for future in futures]
    if len(keys) != table.npartitions or not all(isinstance(key, tuple) for key in keys):
        return {}
    return {key[-1]: there[0] for key, there in client.who_has(futures).items() if there}


def shares(places: list[str | None], workers: list[str]) -> list[int]:
    """Return a rank for each partition: that of the worker where it lies, if that has not many.

    None has more than one more than any other.
    """
    rank_of = {worker: rank for rank, worker in enumerate(workers)}
    least, more = divmod(len(places), len(workers))
    taken, ranks = [0] * len(workers), [-1] * len(places)
    for number, place in enumerate(places):
        rank = rank_of.get(place, -1)
        if rank >= 0 and taken[rank] < least + (more > 0):
            more -= taken[rank] == least
            taken[rank] += 1
            ranks[number] = rank
    for number in [number for number, rank in enumerate(ranks) if rank < 0]:
        ranks[number] = taken.index(min(taken))
        taken[ranks[number]] += 1
    return ranks


def _itself(part: Any) -> Any:
    return part
