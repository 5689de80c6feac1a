"""Made-up data: transactions with planted rings of fraud.

Everything is vectorised, and a function of its arguments and ``seed`` alone.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import check_integer, is_number, shown

SECONDS_PER_DAY = 86_400
LAST = 253_402_300_799  # seconds from 1970 to the end of the year 9999
CIRCLE = 10  # mean number of accounts that send money to one another


def transactions(
    rows: int = 1_000_000,
    *,
    accounts: int = 100_000,
    merchants: int = 10_000,
    days: int = 30,
    rings: int = 40,
    ring_accounts: tuple[int, int] = (12, 30),
    ring_merchants: tuple[int, int] = (3, 6),
    ring_trades: tuple[int, int] = (10, 24),
    burst_days: int = 5,
    towns: int = 300,
    start: str = "2026-01-01",
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a table of transactions in which rings of accounts and merchants are planted.

    Ordinary life: accounts differ in activity and merchants in popularity by power laws, so that
    a few merchants are hubs. An account lives in a town and has three favourite merchants there:
    half of its transactions go to them, so honest pairs repeat and towns are communities. A
    fifth are transfers within its circle of about ten friends, so there are honest dense groups.
    The rest goes to any merchant by popularity.

    Rings, after the collusion of Taobao: each member was drawn from the ordinary population and
    goes on with its ordinary life; within ``burst_days`` days every account of the ring
    makes some extra purchases at the ring's merchants, and one in four at its other accounts.

    Parameters
    ----------
    rows
        Number of transactions, those of the rings included.
    accounts, merchants
        How many there are. Ids are 0 .. accounts + merchants - 1, drawn at random, so that an id
        tells neither the kind nor the ring.
    days, start
        The transactions fall in ``days`` days from ``start`` on.
    rings
        Number of rings; no vertex is in two.
    ring_accounts, ring_merchants, ring_trades
        Smallest and largest number of accounts and merchants in a ring, and of extra purchases of
        each of its accounts.
    burst_days
        A ring trades within this many days; when they begin is random.
    towns
        Number of towns, of unequal size.
    seed
        The same arguments and seed give the same table.

    Returns
    -------
    frame : pandas.DataFrame
        ``source`` and ``destination`` (int64), ``amount`` (float64, whole cents), ``time``
        (datetime64[s]), in the order of time.
    truth : pandas.DataFrame
        ``vertex`` (int64) and ``ring`` (int64): one row per member of a ring, sorted by both.

    Raises
    ------
    ValueError
        If a number is too small, a range is empty, ``start`` is no date, or the rings need more
        than half of the accounts, merchants or rows.

    Notes
    -----
    Cost: O(rows log rows) time; about a second for a million rows. The kind of fraud is the
    ring of C. Ye et al., GPU-Accelerated Graph Label Propagation for Real-Time Fraud Detection,
    SIGMOD 2021, section 1.

    Examples
    --------
    >>> from glp_rapids.datasets import transactions
    >>> frame, truth = transactions(5_000, accounts=500, merchants=60, rings=2, towns=4)
    >>> list(frame.columns), len(frame), truth["ring"].nunique()
    (['source', 'destination', 'amount', 'time'], 5000, 2)
    """
    numbers = {"rows": rows, "accounts": accounts, "merchants": merchants, "days": days}
    for name, value in {**numbers, "burst_days": burst_days, "towns": towns}.items():
        check_integer(name, value, 1)
    check_integer("rings", rings, 0)
    check_integer("seed", seed, 0)
    ranges = {"ring_accounts": ring_accounts, "ring_merchants": ring_merchants}
    for name, ends in {**ranges, "ring_trades": ring_trades}.items():
        check_range(name, ends)
    check_start(start, days)
    rng = np.random.default_rng(seed)
    account_count = between(rng, ring_accounts, rings)
    merchant_count = between(rng, ring_merchants, rings)
    ring_account = draw_without_replacement(rng, accounts, account_count, "accounts")
    ring_merchant = accounts + draw_without_replacement(
        rng, merchants, merchant_count, "merchants"
    )
    payer, payee, ring = ring_rows(
        rng, ring_account, account_count, ring_merchant, merchant_count, ring_trades
    )
    planted = len(ring)
    if 2 * planted > rows:
        raise ValueError(
            f"the rings make {planted} transactions, more than half of rows={rows}; "
            "lower rings or ring_trades, or raise rows"
        )
    source, destination = ordinary_rows(rng, rows - planted, accounts, merchants, towns)
    burst = min(burst_days, days)
    opening = rng.random(rings) * (days - burst)
    time = np.concatenate(
        [rng.random(rows - planted) * days, opening[ring] + rng.random(planted) * burst]
    )
    source, destination = np.concatenate([source, payer]), np.concatenate([destination, payee])
    frame, name = table(rng, source, destination, time, start, accounts + merchants)
    sizes = np.concatenate([account_count, merchant_count])
    truth = pd.DataFrame({"vertex": name[np.concatenate([ring_account, ring_merchant])],
                          "ring": np.repeat(np.tile(np.arange(rings), 2), sizes)})  # fmt: skip
    return frame, truth.sort_values(["ring", "vertex"], ignore_index=True)


def blacklist(truth: pd.DataFrame, fraction: float = 0.2, seed: int = 0) -> pd.Series:
    """Draw the ring members that are known already: what a blacklist would hold.

    Parameters
    ----------
    truth
        Frame with a column ``vertex``, as `transactions` returns it; each counts once.
    fraction
        Share of the members, of all rings together, in (0, 1]; at least one is drawn.
    seed
        The same arguments and seed give the same list.

    Returns
    -------
    pandas.Series
        The ids, sorted, named ``vertex``.

    Raises
    ------
    ValueError
        If ``fraction`` is outside (0, 1], or ``truth`` is empty or has no column ``vertex``.
    TypeError
        If ``truth`` is no frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.datasets import blacklist
    >>> len(blacklist(pd.DataFrame({"vertex": range(10), "ring": 0}), 0.2))
    2
    """
    if not is_number(fraction) or not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1], not {shown(fraction)}")
    check_integer("seed", seed, 0)
    if not isinstance(truth, pd.DataFrame):
        raise TypeError(f"truth must be a pandas frame, not {shown(truth)}")
    if "vertex" not in truth.columns:
        raise ValueError(f"truth has no column 'vertex', only {list(truth.columns)}")
    if not len(truth):
        raise ValueError("truth is empty: there is no ring member to draw")
    members = truth["vertex"].drop_duplicates()
    known = max(1, round(fraction * len(members)))
    drawn = np.random.default_rng(seed).permutation(len(members))[:known]
    return members.iloc[drawn].sort_values(ignore_index=True)


def check_range(name: str, ends: Any) -> None:
    """Raise unless something is a smallest and a largest number, from 1 on."""
    try:
        low, high = ends
        fits = bool(1 <= low <= high)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            f"{name} must be (smallest, largest) with 1 <= smallest <= largest, not {shown(ends)}"
        )


def check_start(start: Any, days: int) -> None:
    """Raise unless something is a date from which so many days can be counted."""
    zoned = False
    with contextlib.suppress(TypeError, ValueError):  # of what is no date
        zoned = not is_number(start) and pd.Timestamp(start).tz is not None
    if zoned:
        raise ValueError(f"start must be a date without a time zone, not {shown(start)}")
    try:
        first = np.datetime64("NaT" if is_number(start) else start, "s")
    except (TypeError, ValueError):
        first = np.datetime64("NaT")
    if np.isnat(first):
        raise ValueError(f"start must be a date, as '2026-01-01', not {shown(start)}")
    if int(first.astype(np.int64)) + days * SECONDS_PER_DAY > LAST:
        raise ValueError(f"days must end before the year 10000, {days:,} from {start} do not")


def table(
    rng: np.random.Generator, source: np.ndarray, destination: np.ndarray, days: np.ndarray,
    start: str, population: int,
) -> tuple[pd.DataFrame, np.ndarray]:  # fmt: skip
    """Give trades amounts and their parties names, and sort them by time; return the names too."""
    amount = np.round(np.exp(3.3 + 0.9 * rng.standard_normal(source.size)), 2) + 0.01
    second = (days * SECONDS_PER_DAY).astype(np.int64)
    order = np.argsort(second, kind="stable")
    name = rng.permutation(population)
    frame = pd.DataFrame(
        {
            "source": name[source][order],
            "destination": name[destination][order],
            "amount": np.round(amount[order], 2),
            "time": np.datetime64(start, "s") + second[order].astype("timedelta64[s]"),
        }
    )
    return frame, name


def between(rng: np.random.Generator, limits: tuple[int, int], number: int) -> np.ndarray:
    """Draw integers from the smallest to the largest, both included."""
    return rng.integers(limits[0], limits[1], number, endpoint=True)


def draw_without_replacement(
    rng: np.random.Generator, population: int, counts: np.ndarray, name: str
) -> np.ndarray:
    """Draw the members of all rings, at most half of the population."""
    needed = int(counts.sum())
    if 2 * needed > population:
        raise ValueError(
            f"the rings need {needed} of the {population} {name}; lower rings or ring_{name}, "
            f"or raise {name}"
        )
    return rng.permutation(population)[:needed]


def ring_rows(
    rng: np.random.Generator,
    account: np.ndarray,
    account_count: np.ndarray,
    merchant: np.ndarray,
    merchant_count: np.ndarray,
    ring_trades: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the trades inside rings; return source, destination and ring of each."""
    rings = len(account_count)
    ring_of_account = np.repeat(np.arange(rings), account_count)
    buyer = np.repeat(np.arange(len(account)), between(rng, ring_trades, len(account)))
    ring = ring_of_account[buyer]
    first_account = np.cumsum(account_count) - account_count
    first_merchant = np.cumsum(merchant_count) - merchant_count
    shop = first_merchant[ring] + (rng.random(len(ring)) * merchant_count[ring]).astype(np.int64)
    # A shift of 1 .. count - 1 within the ring never meets the buyer again.
    shift = 1 + (rng.random(len(ring)) * (account_count[ring] - 1)).astype(np.int64)
    place = (buyer - first_account[ring] + shift) % account_count[ring]
    to_account = (rng.random(len(ring)) < 0.25) & (account_count[ring] > 1)
    destination = np.where(to_account, account[first_account[ring] + place], merchant[shop])
    return account[buyer], destination, ring


def ordinary_rows(
    rng: np.random.Generator, rows: int, accounts: int, merchants: int, towns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the honest trades of everybody."""
    # Sizes of the towns fall as 1 / rank; both kinds of vertex are placed by them.
    town_share = np.cumsum(1.0 / np.arange(1, towns + 1))
    town_share /= town_share[-1]
    town = np.searchsorted(town_share, rng.random(accounts))
    shop_town = np.searchsorted(town_share, rng.random(merchants))
    popularity = (1.0 - rng.random(merchants)) ** -0.8
    popularity = np.minimum(popularity, 0.02 * popularity.sum())
    # Shops sorted by town: one cumulative sum serves every town and, whole, the entire country.
    by_town = np.argsort(shop_town, kind="stable")
    cumulated = np.concatenate([[0.0], np.cumsum(popularity[by_town])])
    edge = np.searchsorted(shop_town[by_town], np.arange(towns + 1))
    low, high = cumulated[edge[:-1]], cumulated[edge[1:]]
    empty = low == high
    low[empty], high[empty] = 0.0, cumulated[-1]
    throw = low[town, None] + rng.random((accounts, 3)) * (high - low)[town, None]
    favourite = by_town[np.minimum(np.searchsorted(cumulated, throw, "right") - 1, merchants - 1)]
    activity = np.cumsum((1.0 - rng.random(accounts)) ** -0.55)
    source = np.searchsorted(activity, rng.random(rows) * activity[-1], "right")
    source = np.minimum(source, accounts - 1)
    anywhere = np.searchsorted(cumulated, rng.random(rows) * cumulated[-1], "right") - 1
    shop = by_town[np.minimum(anywhere, merchants - 1)]
    choice = rng.random(rows)
    local = choice < 0.5
    shop[local] = favourite[source[local], (choice[local] * 6).astype(np.int64)]
    destination = accounts + shop
    # A circle is a run of accounts in the order of town, so that friends are neighbours.
    by_home = np.argsort(town, kind="stable")
    circle = np.cumsum(rng.random(accounts) < 1 / CIRCLE)
    first = np.searchsorted(circle, np.arange(circle[-1] + 2))
    place = np.empty(accounts, np.int64)
    place[by_home] = np.arange(accounts)
    transfer = np.flatnonzero(choice >= 0.8)
    home = place[source[transfer]]
    size = (first[circle + 1] - first[circle])[home]
    transfer, home, size = transfer[size > 1], home[size > 1], size[size > 1]
    shift = 1 + (rng.random(len(home)) * (size - 1)).astype(np.int64)
    opening = first[circle[home]]
    destination[transfer] = by_home[opening + (home - opening + shift) % size]
    return source, destination
