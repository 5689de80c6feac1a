"""Made-up data: transactions with rings of fraud that are born, sleep, change, and merge.

Everything is a function of its arguments and ``seed`` alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.checks import check_integer
from glp_rapids.datasets.fraud_rings import (
    between,
    check_range,
    check_start,
    draw_without_replacement,
    ordinary_rows,
    ring_rows,
    table,
)

SPARE = 4  # merchants that a ring can change to
BORN_BEFORE = 0.6  # of all days, so that every ring has time to do something


class _Episode(NamedTuple):
    """A few days in which a ring trades."""

    ring: int
    opening: float
    length: float
    members_of: tuple[int, ...]  # the rings, as they were born, whose accounts take part
    changes: int  # how many merchants the ring has left for others


def drifting_transactions(
    rows: int = 1_000_000,
    *,
    accounts: int = 100_000,
    merchants: int = 10_000,
    days: int = 90,
    rings: int = 40,
    ring_accounts: tuple[int, int] = (12, 30),
    ring_merchants: tuple[int, int] = (3, 6),
    ring_trades: tuple[int, int] = (8, 16),
    burst_days: tuple[int, int] = (3, 6),
    sleep_days: tuple[int, int] = (4, 15),
    merging: float = 0.2,
    towns: int = 300,
    start: str = "2026-01-01",
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a table of transactions in which rings of fraud come, sleep, change and merge.

    Honest trades are those of `transactions`. A ring is born on some day and trades in episodes of
    ``burst_days``, with ``sleep_days`` between them in which its members only live their ordinary
    life. After each sleep it has left one of its merchants for another. Some rings end when, after
    a sleep, their accounts trade with those of another ring, at its merchants.

    Parameters
    ----------
    rows, accounts, merchants, days, rings, ring_accounts, ring_merchants, towns, start, seed
        As in `transactions`; a ring has that many merchants at a time.
    ring_trades
        Smallest and largest number of extra purchases of an account in an episode.
    burst_days, sleep_days
        The shortest and the longest episode, and pause between two, in days.
    merging
        Share of the rings that end in another one, in [0, 0.5].

    Returns
    -------
    frame : pandas.DataFrame
        ``transaction`` (int64, from 0 in the order of time), ``source`` and ``destination``
        (int64), ``amount`` (float64, whole cents), ``time`` (datetime64[s]), in the order of time.
    truth : pandas.DataFrame
        A row for each time that somebody takes part: ``vertex``, ``ring``, ``opening`` and
        ``ending`` (datetime64[s]) of the episode, sorted by ring, opening, vertex.

    Raises
    ------
    ValueError
        A number is too small, a range is empty, ``merging`` is outside [0, 0.5], or the rings need
        more than half of the accounts, merchants or rows.

    Notes
    -----
    Cost: O(rows log rows) time; about a second for a million rows.

    Examples
    --------
    >>> from glp_rapids.datasets import drifting_transactions
    >>> frame, truth = drifting_transactions(9_000, accounts=500, merchants=90, rings=2, towns=4)
    >>> list(truth.columns), truth["ring"].nunique()
    (['vertex', 'ring', 'opening', 'ending'], 2)
    """
    numbers = {"rows": rows, "accounts": accounts, "merchants": merchants, "days": days}
    for name, value in {**numbers, "towns": towns}.items():
        check_integer(name, value, 1)
    check_integer("rings", rings, 0)
    ranges = {
        "ring_accounts": ring_accounts, "ring_merchants": ring_merchants,
        "ring_trades": ring_trades, "burst_days": burst_days, "sleep_days": sleep_days,
    }  # fmt: skip
    check_integer("seed", seed, 0)
    for name, ends in ranges.items():
        check_range(name, ends)
    check_start(start, days)
    if not 0 <= merging <= 0.5:
        raise ValueError(f"merging must be in [0, 0.5], not {merging}")
    rng = np.random.default_rng(seed)
    account_count = between(rng, ring_accounts, rings)
    merchant_count = between(rng, ring_merchants, rings)
    account = draw_without_replacement(rng, accounts, account_count, "accounts")
    merchant = accounts + draw_without_replacement(
        rng, merchants, merchant_count + SPARE, "merchants"
    )
    groups = np.split(account, np.cumsum(account_count)[:-1])
    shops = np.split(merchant, np.cumsum(merchant_count + SPARE)[:-1])
    episodes = _episodes(rng, rings, days, burst_days, sleep_days, merging)
    buyers, places = [], []
    for episode in episodes:
        buyers.append(np.concatenate([groups[ring] for ring in episode.members_of]))
        shift = episode.changes + np.arange(merchant_count[episode.ring])
        places.append(shops[episode.ring][shift % len(shops[episode.ring])])
    sizes, shop_sizes = ([len(part) for part in parts] for parts in (buyers, places))
    payer, payee, which = ring_rows(
        rng, _joined(buyers), np.array(sizes, np.int64), _joined(places),
        np.array(shop_sizes, np.int64), ring_trades,
    )  # fmt: skip
    if 2 * which.size > rows:
        raise ValueError(
            f"the rings make {which.size} transactions, more than half of rows={rows}; "
            "lower rings, ring_trades or days, or raise rows"
        )
    source, destination = ordinary_rows(rng, rows - which.size, accounts, merchants, towns)
    opening = np.array([episode.opening for episode in episodes])
    length = np.array([episode.length for episode in episodes])
    time = np.concatenate(
        [
            rng.random(rows - which.size) * days,
            opening[which] + rng.random(which.size) * length[which],
        ]
    )
    source, destination = np.concatenate([source, payer]), np.concatenate([destination, payee])
    frame, name = table(rng, source, destination, time, start, accounts + merchants)
    frame.insert(0, "transaction", np.arange(rows))
    members = [np.concatenate(pair) for pair in zip(buyers, places, strict=True)]
    count = np.array([len(part) for part in members], np.int64)
    times = {"opening": opening, "ending": opening + length}
    truth = pd.DataFrame(
        {
            "vertex": name[_joined(members)],
            "ring": np.repeat(np.array([episode.ring for episode in episodes], np.int64), count),
            **{
                title: np.datetime64(start, "s")
                + np.repeat((day * 86_400).astype(np.int64), count).astype("timedelta64[s]")
                for title, day in times.items()
            },
        }
    )
    return frame, truth.sort_values(["ring", "opening", "vertex"], ignore_index=True)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _episodes(
    rng: np.random.Generator, rings: int, days: int, burst: tuple[int, int],
    sleep: tuple[int, int], merging: float,
) -> list[_Episode]:  # fmt: skip
    """Draw when each ring trades, and which rings end in which."""
    timetable = []
    for ring in range(rings):
        opening, changes = rng.random() * BORN_BEFORE * days, 0
        mine: list[_Episode] = []
        while True:
            length = rng.uniform(*burst)
            if mine and opening + length > days:
                break
            length = min(length, days - opening)
            mine.append(_Episode(ring, opening, length, (ring,), changes))
            opening += length + rng.uniform(*sleep)
            changes += 1
        timetable.append(mine)
    order = rng.permutation(rings)
    for pair in range(int(merging * rings)):
        host, guest = order[2 * pair], order[2 * pair + 1]
        # what the guest does until its host has begun anew, having slept, is its own
        meeting = timetable[guest][0].opening + timetable[guest][0].length
        later = [episode for episode in timetable[host][1:] if episode.opening > meeting]
        if later:
            begin = later[0].opening
            kept = [one for one in timetable[guest] if one.opening + one.length <= begin]
            timetable[guest] = kept
            timetable[host] = [
                one if one.opening < begin else one._replace(members_of=(int(host), int(guest)))
                for one in timetable[host]
            ]
    return [episode for mine in timetable for episode in mine]
