"""Matrices in .npz files: any that SciPy saved is read, whatever is damaged is refused."""

import lzma
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from mapped_files import OURS, SUBJECTS, matrix_of, through_npz

from glp_rapids import as_graph
from glp_rapids.device import is_mapped
from glp_rapids.ingest.npz import open_npz

FORMATS = ("csr", "csc", "coo", "bsr", "dia")


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("compressed", [False, True])
def test_any_matrix_that_scipy_saved(form, compressed, make, tmp_path):
    rng = np.random.default_rng(2)
    matrix = make((rng.random((9, 9)) < 0.3) * rng.integers(1, 9, (9, 9))).asformat(form)
    sp.save_npz(tmp_path / "m.npz", matrix, compressed=compressed)
    found = open_npz(tmp_path / "m.npz")
    assert type(found) is type(matrix)
    assert found.dtype == matrix.dtype
    assert (found.toarray() == matrix.toarray()).all()
    assert is_mapped(found.data) == (form in ("csr", "csc") and not compressed)
    for directed in (False, True):
        one, other = (as_graph(m, directed=directed, device="cpu") for m in (found, matrix))
        for name in OURS:
            assert getattr(one, name).tolist() == getattr(other, name).tolist()


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_path_of_a_matrix_is_that_matrix(name, tmp_path):
    plain = as_graph(**SUBJECTS[name](), device="cpu")
    through_npz(matrix_of(plain), tmp_path)
    expected = as_graph(matrix_of(plain), directed=plain.directed, device="cpu")
    for path in (tmp_path / "matrix.npz", str(tmp_path / "matrix.npz")):
        graph = as_graph(path, directed=plain.directed, device="cpu")
        assert is_mapped(graph.indices)
        assert graph.directed == plain.directed
        for array in OURS:
            mine, its = getattr(graph, array), getattr(expected, array)
            assert (mine is None and its is None) or mine.tobytes() == its.tobytes()
    with pytest.raises(ValueError, match=r"weight.*a sparse matrix"):
        as_graph(tmp_path / "matrix.npz", weight="eur", device="cpu")


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (4, 4)])
def test_empty_matrices_in_files(shape, tmp_path):
    sp.save_npz(tmp_path / "m.npz", sp.csr_array(shape), compressed=False)
    graph = as_graph(open_npz(str(tmp_path / "m.npz")), device="cpu")
    assert (graph.number_of_vertices, graph.number_of_edges) == (shape[0], 0)


def write_members(path, *, compression=zipfile.ZIP_STORED, **members):
    """An archive of members, each the bytes of a file or an array."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, value in members.items():
            with archive.open(f"{name}.npy", "w") as stream:
                if isinstance(value, bytes):
                    stream.write(value)
                else:
                    np.lib.format.write_array(stream, np.asarray(value), allow_pickle=True)


GOOD = {
    "format": np.array(b"csr"), "shape": np.array([2, 2]), "data": np.ones(2),
    "indices": np.array([1, 0], np.int32), "indptr": np.array([0, 1, 2], np.int32),
}  # fmt: skip


def declared(shape, dtype="<i8", content=b""):
    """A file of an array whose header says what shape it has."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


ENTRIES = {
    "format": np.array(b"coo"), "shape": np.array([2, 2]), "data": np.ones(2),
    "row": np.array([1, 0]), "col": np.array([0, 1]),
}  # fmt: skip
BAD = {
    "huge shape": (GOOD | {"shape": declared("(1000000000000,)")}, "1000000000000,.* 0 bytes"),
    "huge format": (GOOD | {"format": declared("(2**40,)")}, "Cannot parse|malformed"),
    "huge array": (GOOD | {"data": declared("(1000000000000,)")}, "1000000000000,.* 0 bytes"),
    "huge entries": (ENTRIES | {"row": declared("(1000000000000,)")}, "1000000000000,.* 0 bytes"),
    "negative size": (
        ENTRIES | {"row": declared("(-1, -1)", "|i1", b"x")},
        r"\(-1, -1\) in 1 byte",
    ),
    "beyond numbers": (GOOD | {"shape": np.array([2**64 - 1] * 2, np.uint64)}, "lengths"),
    "beyond shapes": (ENTRIES | {"shape": np.array([2**64 - 1] * 2, np.uint64)}, "cannot be read"),
    "no format": (GOOD | {"format": None}, "no format"),
    "another archive": ({"indptr": GOOD["indptr"]}, r"no format and no shape, only \['indptr'\]"),
    "unknown format": (GOOD | {"format": np.array(b"xyz")}, "xyz"),
    "no indices": (GOOD | {"indices": None}, "indices"),
    "objects": (GOOD | {"indices": np.array([1, None])}, "object"),
    "no array": (GOOD | {"indices": b"nothing of the kind" * 9}, "magic"),
    "two dimensions": (GOOD | {"indices": np.array([[1, 0]])}, r"shape \(1, 2\)"),
    "three sides": (GOOD | {"shape": np.array([2, 2, 2])}, r"shape is \[2, 2, 2\]"),
    "negative": (GOOD | {"shape": np.array([-2, 2])}, r"shape is \[-2, 2\]"),
    "other shape": (GOOD | {"shape": np.array([3, 3])}, r"lengths .* shape \[3, 3\]"),
    "other length": (GOOD | {"data": np.ones(3)}, "lengths"),
    "long format": (GOOD | {"format": np.array(b"x" * 5000)}, "format.npy takes"),
}


@pytest.mark.parametrize(("members", "message"), BAD.values(), ids=BAD)
def test_other_archives_are_refused(members, message, tmp_path):
    path = tmp_path / "m.npz"
    write_members(path, **{name: value for name, value in members.items() if value is not None})
    with pytest.raises(ValueError, match=message) as error:
        open_npz(path)
    assert str(path) in str(error.value)


def test_archives_of_python_2(tmp_path):
    path, members = tmp_path / "m.npz", GOOD | {"shape": declared("(2L,)", "<i8", bytes(16))}
    write_members(path, **members)
    with pytest.raises(ValueError, match="lengths"):
        open_npz(path)
    shape = np.array([2, 2], "<i8").tobytes()
    for good in (GOOD, ENTRIES):
        write_members(path, **good | {"shape": declared("(2L,)", "<i8", shape)})
        assert open_npz(path).toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("damage", ["a byte", "the end"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_members_that_are_compressed(compression, damage, tmp_path):
    path = tmp_path / "m.npz"
    write_members(path, compression=compression, **ENTRIES)
    assert open_npz(path).toarray().tolist() == [[0, 1], [1, 0]]
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        places = [member.header_offset for member in archive.infolist()]
    for begin in places:
        content = bytearray(whole)
        for at in range(begin + 30 + 10, begin + 30 + 60) if damage == "a byte" else [begin + 26]:
            content[at] ^= 0xFF
        path.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as a sparse matrix") as error:
            open_npz(path)
        assert str(path) in str(error.value)


@pytest.mark.parametrize("error", [OSError(22, "Invalid argument"), lzma.LZMAError("corrupt")])
def test_whatever_a_damaged_member_raises_names_the_file(error, monkeypatch, tmp_path):
    path = tmp_path / "m.npz"
    write_members(path, **GOOD)

    def fail(*_):
        raise error

    monkeypatch.setattr(zipfile.ZipFile, "open", fail)
    with pytest.raises(ValueError, match=f"cannot be read.*{error}".replace("[", r"\[")) as found:
        open_npz(path)
    assert str(path) in str(found.value)


def test_lack_of_memory_is_no_damage(monkeypatch, tmp_path):
    path = tmp_path / "m.npz"
    write_members(path, **ENTRIES)

    def lack(*_, **__):
        raise MemoryError("of 7 bytes")

    monkeypatch.setattr(sp, "load_npz", lack)
    with pytest.raises(MemoryError, match=r"m.npz: there is too little memory .*of 7 bytes"):
        open_npz(path)


def test_files_that_are_no_archives(tmp_path):
    path = tmp_path / "m.npz"
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        open_npz(path)
    with pytest.raises(FileNotFoundError, match="is no file"):
        open_npz(tmp_path)
    for content in (b"", b"PK\x03\x04", b"nothing" * 99):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as a sparse matrix of SciPy"):
            open_npz(path)


@pytest.mark.filterwarnings("ignore:graph. the matrix differs from its transpose by less")
def test_cut_and_changed_files_are_refused_or_are_matrices(tmp_path):
    plain = as_graph(**SUBJECTS["weighted"](), device="cpu")
    sp.save_npz(tmp_path / "m.npz", matrix_of(plain), compressed=False)
    whole = np.frombuffer((tmp_path / "m.npz").read_bytes(), np.uint8)
    rng, path, outcomes = np.random.default_rng(8), tmp_path / "changed.npz", set()
    for case in range(600):
        content = whole.copy()
        if case % 3 == 0:
            content = content[: rng.integers(content.size)]
        else:
            places = rng.integers(content.size, size=1 if case % 3 == 1 else 4)
            content[places] ^= rng.integers(1, 256, places.size).astype(np.uint8)
        path.write_bytes(content.tobytes())
        try:
            graph = as_graph(open_npz(path), device="cpu")
        except (ValueError, TypeError) as error:
            outcomes.add(type(error))
            continue
        outcomes.add(None)
        assert case % 3, "it was cut off"
        n, indices = graph.number_of_vertices, graph.indices
        assert graph.indptr[-1] == indices.size
        assert ((indices >= 0) & (indices < n)).all()
    assert {None, ValueError} <= outcomes
