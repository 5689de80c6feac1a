"""What nobody expects as columns, and all places where it can be put."""

import datetime
import decimal
import fractions
import math

import numpy as np
import pandas as pd
import pyarrow as pa
from hostile import EDGES, LABELS, PARTITION

import glp_rapids
from glp_rapids import metrics


def big(values, kind):
    """Give an array of the byte order that no machine here has."""
    return np.array(values).astype(f">{kind}")


def arrow(values, kind):
    """Give a pandas column of a type of Arrow."""
    return pd.Series(pa.array(values, kind), dtype=pd.ArrowDtype(kind))


def dictionary(values):
    """Give a pandas column of Arrow's dictionaries."""
    encoded = pa.array(values).dictionary_encode()
    return pd.Series(encoded, dtype=pd.ArrowDtype(encoded.type))


def object_series(*values):
    """Give a pandas column of objects as they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.Series(column, dtype=object)


TEXTS = ["a", "b", "c"]
DATES = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
DECIMALS = [decimal.Decimal(n) for n in (1, 2, 3)]
ONE_TO_THREE = [1, 2, 3]
# Three values each, of every type and form that somebody may bring.
COLUMNS = {
    **{f">{kind}": big(ONE_TO_THREE, kind) for kind in ("i2", "i4", "i8", "u8", "f4", "f8", "c8")},
    ">U1": big(TEXTS, "U1"),
    ">M8": big(np.array(DATES, dtype="M8[ns]"), "M8[ns]"),
    ">m8": big(np.array(ONE_TO_THREE, dtype="m8[s]"), "m8[s]"),
    "Series of >i8": pd.Series(big(ONE_TO_THREE, "i8")),
    "Series of >f8": pd.Series(big(ONE_TO_THREE, "f8")),
    "float16": np.array(ONE_TO_THREE, dtype=np.float16),
    "longdouble": np.array(ONE_TO_THREE, dtype=np.longdouble),
    "clongdouble": np.array(ONE_TO_THREE, dtype=np.clongdouble),
    "bool": np.array([True, False, True]),
    "S1": np.array([b"a", b"b", b"c"]),
    "StringDType": np.array(TEXTS, dtype=np.dtypes.StringDType()),
    "void": np.array([b"a", b"b", b"c"], dtype="V1"),
    "structured": np.array([(1, 2)] * 3, dtype="i8,i8"),
    "M8[Y] far": np.array(["2024", "90000", "-90000"], dtype="M8[Y]"),
    "M8[D]": np.array(DATES, dtype="M8[D]"),
    "M8 generic": np.array(["NaT"] * 3, dtype="M8"),
    "M8[as]": np.array([1, 2, 3], dtype="M8[as]"),
    "m8[Y]": np.array(ONE_TO_THREE, dtype="m8[Y]"),
    "strided": np.arange(1, 7)[::2],
    "2-d": np.ones((3, 2), dtype=np.int64),
    "3 x 1": np.ones((3, 1), dtype=np.int64),
    "0-d": np.array(1),
    "recarray": np.rec.array([(1, 2)] * 3, dtype="i8,i8"),
    "masked": np.ma.masked_array(ONE_TO_THREE, [False, True, False]),
    "masked floats": np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]),
    "masked texts": np.ma.masked_array(TEXTS, [False, True, False]),
    "masked without a mask": np.ma.masked_array(ONE_TO_THREE),
    "masked record": np.ma.masked_array(np.array([(1, 2)] * 3, dtype="i8,i8"), [(0, 1)] * 3),
    "object arrays": object_series(np.ones(1), np.ones(2), np.ones(3)),
    "object lists": object_series([1], [2], [1, 2]),
    "object dicts": object_series({}, {1: 1}, {}),
    "object tuples": object_series((1, 2), (3, 4), (1, 3)),
    "object unequal tuples": object_series((1,), (1, 2), ()),
    "object nested tuples": object_series((1, (2, 3)), (1, (2,)), (1, ())),
    "object mixed tuples": object_series((1, "a"), ("a", 1), (1, 2)),
    "object tuples with nan": object_series((1, math.nan), (1, 2), (2, math.nan)),
    "tuples with None": object_series((1, None), (1, 2), (2, 1)),
    "object surrogates": object_series("\ud800", "\udfff", "a"),
    "surrogates": ["\ud800", "\udfff", "a"],
    "NUL texts": ["a", "a\0", "a\0b"],
    "object bytes": object_series(b"a", b"b", b"\xff"),
    "object bytearrays": object_series(bytearray(b"a"), bytearray(b"b"), bytearray(b"c")),
    "object Decimals": object_series(*DECIMALS),
    "object sNaN": object_series(decimal.Decimal("sNaN"), *DECIMALS[1:]),
    "object Decimal infinity": object_series(decimal.Decimal("Infinity"), *DECIMALS[1:]),
    "object Fractions": object_series(*map(fractions.Fraction, ONE_TO_THREE)),
    "object huge integers": object_series(2**70, 1, 2),
    "object integers and floats": object_series(1, 2.0, 3),
    "object bool and int": object_series(True, 1, 2),
    "object numpy integers": object_series(np.int8(1), np.uint64(2), 3),
    "object NA": object_series(1, pd.NA, 2),
    "object NaT": object_series(pd.Timestamp(0), pd.NaT, pd.Timestamp(1)),
    "object dates and times": object_series(DATES[0], datetime.datetime(2024, 1, 1), DATES[1]),
    "object zones": object_series(
        pd.Timestamp("2024", tz="UTC"), pd.Timestamp("2024"), pd.Timestamp("2025")
    ),
    "object time": object_series(*(datetime.time(hour) for hour in ONE_TO_THREE)),
    "object types": object_series(int, str, float),
    "object objects": object_series(object(), object(), object()),
    "object None": object_series(None, None, None),
    "object complex": object_series(1j, 2j, 3j),
    "list of lists": [[1], [2], [1, 2]],
    "list of pairs": [[1, 2], [2, 3], [3, 1]],
    "list of unequal tuples": [(1,), (1, 2), ()],
    "list of mixed": [1, "a", None],
    "list of huge": [2**64, 1, 2],
    "list of 1e308": [1e308, 1e308, 1e308],
    "list of 5e-324": [5e-324, 1e308, 1.0],
    "list of 2**62": [2**62, 2**62, 2**62],
    "list of nan": [math.nan, 1.0, 2.0],
    "list of inf": [math.inf, 1.0, 2.0],
    "range": range(1, 4),
    "dict": {1: 1, 2: 2, 3: 3},
    "set": {1, 2, 3},
    "generator": (number for number in ONE_TO_THREE),
    "text": "abc",
    "bytes": b"abc",
    "MultiIndex": pd.MultiIndex.from_arrays([ONE_TO_THREE, TEXTS]),
    "IntervalIndex": pd.interval_range(0, 3),
    "PeriodIndex": pd.period_range("2024", periods=3, freq="D"),
    "Sparse": pd.arrays.SparseArray([1, 0, 3]),
    "Series of Sparse": pd.Series(pd.arrays.SparseArray([1, 0, 3])),
    "Sparse floats": pd.Series(pd.arrays.SparseArray([1.0, math.nan, 3.0])),
    "Float64": pd.array([1.0, 2.0, 3.0], dtype="Float64"),
    "boolean": pd.array([True, False, None], dtype="boolean"),
    "category with null": pd.Categorical([1, None, 2]),
    "category of tuples": pd.Series(pd.Categorical([(1, 2), (3, 4), (1, 2)])),
    "category of intervals": pd.Series(pd.cut([1, 2, 3], 3)),
    "category of floats": pd.Series(pd.Categorical([1.0, 2.0, 1.0])),
    "category of mixed": pd.Series(pd.Categorical([1, "a", 1])),
    "python strings": pd.array(TEXTS, dtype="string[python]"),
    "arrow dictionary": dictionary(TEXTS),
    "arrow dictionary of integers": dictionary(ONE_TO_THREE),
    "arrow string_view": arrow(TEXTS, pa.string_view()),
    "arrow large_string": arrow(TEXTS, pa.large_string()),
    "arrow binary": arrow(TEXTS, pa.binary()),
    "arrow binary_view": arrow(TEXTS, pa.binary_view()),
    "arrow decimal": arrow(DECIMALS, pa.decimal128(20, 2)),
    "arrow float16": arrow([1.0, 2.0, 3.0], pa.float16()),
    "arrow date": arrow(DATES, pa.date32()),
    "arrow time": arrow([datetime.time(1), datetime.time(2), datetime.time(3)], pa.time64("us")),
    "arrow zoned": arrow(list(pd.to_datetime(DATES)), pa.timestamp("us", "UTC")),
    "arrow duration": arrow(ONE_TO_THREE, pa.duration("s")),
    "arrow list": pd.Series([[1], [2], [3]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "arrow null": pd.Series([None] * 3, dtype=pd.ArrowDtype(pa.null())),
    "pa.dictionary": pa.array(TEXTS).dictionary_encode(),
    "pa.dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2]), pa.array(TEXTS, pa.string_view())
    ),
    "pa.dictionary with null": pa.array(["a", None, "b"]).dictionary_encode(),
    "pa.dictionary of decimals": pa.array(DECIMALS).dictionary_encode(),
    "pa.chunked dictionaries": pa.chunked_array(
        [pa.array(["a"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()]
    ),
    "pa.string_view": pa.array(TEXTS, pa.string_view()),
    "pa.binary_view": pa.array([b"a", b"b", b"c"], pa.binary_view()),
    "pa.binary(1)": pa.array([b"a", b"b", b"c"], pa.binary(1)),
    "pa.decimal128": pa.array(DECIMALS, pa.decimal128(20, 2)),
    "pa.decimal256": pa.array(DECIMALS, pa.decimal256(70, 2)),
    "pa.float16": pa.array([1.0, 2.0, 3.0], pa.float16()),
    "pa.date64": pa.array(DATES, pa.date64()),
    "pa.time32": pa.array([1, 2, 3], pa.time32("s")),
    "pa.duration": pa.array(ONE_TO_THREE, pa.duration("ns")),
    "pa.interval": pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    "pa.timestamp far": pa.array([2**62, 1, 2], pa.timestamp("s")),
    "pa.null": pa.nulls(3),
    "pa.bool": pa.array([True, False, True]),
    "pa.list": pa.array([[1], [2], [3]]),
    "pa.struct": pa.array([{"a": 1}] * 3),
    "pa.map": pa.array([[(1, 2)]] * 3, pa.map_(pa.int8(), pa.int8())),
    "pa.run ends": pa.RunEndEncodedArray.from_arrays([1, 3], [7, 8]),
    "pa.uuid": pa.array([bytes([n] * 16) for n in ONE_TO_THREE], pa.uuid()),
    "pa.integers with null": pa.array([1, None, 2]),
    "pa.scalar": pa.scalar(1),
}
# Columns that say which values they hold, and shall be taken for them.
SAME_AS = {
    **{f">{kind}": ONE_TO_THREE for kind in ("i2", "i4", "i8", "u8")},
    ">U1": TEXTS,
    ">M8": pd.to_datetime(DATES).tolist(),
    "Series of >i8": ONE_TO_THREE,
    "strided": [1, 3, 5],
    "masked without a mask": ONE_TO_THREE,
    "arrow dictionary": TEXTS,
    "arrow dictionary of integers": ONE_TO_THREE,
    "arrow string_view": TEXTS,
    "pa.dictionary": TEXTS,
    "pa.dictionary of views": TEXTS,
    "pa.chunked dictionaries": ["a", "c", "b"],
    "pa.string_view": TEXTS,
    "pa.binary_view": [b"a", b"b", b"c"],
    "arrow decimal": DECIMALS,
    "pa.decimal128": DECIMALS,
}


class Stated(glp_rapids.Program):
    """Have state as it is given."""

    def __init__(self, **state):
        self.state = state

    def initial_state(self, graph):
        return self.state


def as_table(column):
    """Make a frame of three columns that are all the same, of Arrow if the column is."""
    columns = dict.fromkeys(("src", "dst", "w"), column)
    is_arrow = isinstance(column, pa.Array | pa.ChunkedArray)
    return pa.table(columns) if is_arrow else pd.DataFrame(columns)


def graph_of(*columns, **further):
    return glp_rapids.as_graph(*columns, device="cpu", **further)


def own_seeds(column):
    return glp_rapids.seeded_label_propagation(graph_of((column, column)), column, device="cpu")


# Where a column goes, and what an error must name.
ROLES = {
    "ids": (lambda column: graph_of((column, column)), "source"),
    "ids of a frame": (lambda column: graph_of(as_table(column)), "source"),
    "vertices": (lambda column: graph_of(EDGES, vertices=column), "vertices"),
    "weights": (lambda column: graph_of(([1, 2, 3], [2, 3, 1], column)), "weight"),
    "ego_networks": (
        lambda column: glp_rapids.ego_networks(EDGES, column, device="cpu"),
        "vertices",
    ),
    "seeds": (
        lambda column: glp_rapids.seeded_label_propagation(EDGES, column, device="cpu"),
        "seeds",
    ),
    "seeds of their own graph": (own_seeds, "seeds", "source"),
    "labels of seeds": (
        lambda column: glp_rapids.seeded_label_propagation(
            EDGES, dict(zip([1, 2, 3], column, strict=True)), device="cpu"
        ),
        "seeds",
    ),
    "labels of seeds in a frame": (
        lambda column: glp_rapids.seeded_label_propagation(
            EDGES, pd.DataFrame({"vertex": [1, 2, 3], "label": column}), device="cpu"
        ),
        "seeds",
    ),
    "labels": (lambda column: glp_rapids.nmi(column, LABELS), "a"),
    "partition": (
        lambda column: glp_rapids.ari(PARTITION.assign(partition=column), PARTITION),
        "a",
    ),
    "vertices of a partition": (
        lambda column: glp_rapids.nmi(*[PARTITION.assign(vertex=column)] * 2),
        "a",
    ),
    "vertices of one partition": (
        lambda column: glp_rapids.nmi(PARTITION, PARTITION.assign(vertex=column)),
        "b",
    ),
    "cover": (
        lambda column: metrics.cover_f1(PARTITION.assign(partition=column), PARTITION),
        "a",
    ),
    "vertices of a cover": (
        lambda column: metrics.cover_f1(*[PARTITION.assign(vertex=column)] * 2),
        "a",
    ),
    "modularity": (
        lambda column: glp_rapids.modularity(
            EDGES, PARTITION.assign(partition=column), device="cpu"
        ),
        "partition",
    ),
    "coverage": (
        lambda column: glp_rapids.coverage(EDGES, PARTITION.assign(vertex=column), device="cpu"),
        "partition",
    ),
    "first labels": (
        lambda column: glp_rapids.propagate(EDGES, Stated(labels=column), device="cpu"),
        "labels",
    ),
    "order": (lambda column: glp_rapids.compress(EDGES, order=column, device="cpu"), "order"),
    "gammas": (
        lambda column: glp_rapids.layered_label_propagation(
            EDGES, gammas=column, max_iter=1, device="cpu"
        ),
        "gammas",
    ),
}
# Roles that go through a frame, which pandas itself may not make of a column.
FRAMED = [name for name in ROLES if "frame" in name or "partition" in name or "cover" in name]
FRAMED += ["modularity", "coverage"]
