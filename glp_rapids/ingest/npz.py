"""Sparse matrices in ``.npz`` files, as ``scipy.sparse.save_npz`` writes them, mapped into memory.

Such a file is a zip archive of ``.npy`` files. With ``compressed=False`` their bytes stand in it as
they are, so an array is where the header of its member ends.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from glp_rapids.common.mapping import mapped_bytes
from glp_rapids.device import LackOfMemory

MAPPED = ("csr", "csc")
ARRAYS = ("data", "indices", "indptr")
LOADED = {*ARRAYS, "row", "col", "coords", "offsets", "_is_array"}
LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, then the lengths of the name and the extras
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def open_npz(path: str | os.PathLike[str]) -> Any:
    """Open a file of ``scipy.sparse.save_npz`` as a sparse matrix whose arrays are mapped.

    Parameters
    ----------
    path : str or path
        The file. Written with ``compressed=False`` and in format "csr" or "csc" it is mapped;
        others, which is slower and takes the memory of the whole matrix, are loaded.

    Returns
    -------
    SciPy sparse array or matrix
        As it was saved. Mapped arrays are read when they are looked at, and can be dropped from
        memory at any time; what is written to them stays in this process. The file must then stay
        as it is. Its entries are not looked at here: `as_graph` checks what it takes.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is truncated or damaged, or not a sparse matrix of SciPy. Of mapped arrays the checksums
        are not computed: a bit that flipped may leave another matrix.
    ImportError
        SciPy is missing.
    MemoryError
        It is one to be loaded, and does not fit.
    """
    path = Path(path)
    if not path.is_file():
        problem = "is no file" if path.exists() else "there is no such file"
        raise FileNotFoundError(f"{path}: {problem}")
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, that it would be faster from a newer Python
        try:
            return _opened(file)
        except MemoryError as error:
            raise LackOfMemory(f"{path}: there is too little memory for it ({error})") from error
        except ImportError as error:
            raise ImportError(f"{path} is a matrix of SciPy: pip install scipy") from error
        # of damaged bytes zip, zlib, lzma, NumPy and SciPy raise whatever they run into
        except Exception as error:
            problem = f"{path} cannot be read as a sparse matrix of SciPy"
            raise ValueError(f"{problem}: {error}") from error


def _opened(file: BinaryIO) -> Any:
    with zipfile.ZipFile(file) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if missing := {"format", "shape"} - members.keys():
            raise ValueError(
                f"it has no {' and no '.join(sorted(missing))}, only {sorted(members)[:9]}; "
                "write it with scipy.sparse.save_npz(path, matrix, compressed=False)"
            )
        kind = _small(archive, members["format"]).item()
        kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
        stored = all(
            name in members and members[name].compress_type == zipfile.ZIP_STORED for name in ARRAYS
        )
        if kind in MAPPED and stored:
            return _mapped(file, archive, members, kind)
        for name in members.keys() & LOADED:
            with archive.open(members[name]) as stream:
                _read_header(stream, members[name])
    import scipy.sparse

    file.seek(0)
    return scipy.sparse.load_npz(file)


def _mapped(file, archive, members, kind):
    import scipy.sparse

    shape = _small(archive, members["shape"])
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise ValueError(f"its shape is {shape.tolist()}, not two numbers of rows and columns")
    content = mapped_bytes(file)
    arrays = {name: _array(file, content, members[name]) for name in ARRAYS}
    lengths = {name: array.size for name, array in arrays.items()}
    along = int(shape[0 if kind == "csr" else 1])
    if lengths["indptr"] != along + 1 or lengths["indices"] != lengths["data"]:
        raise ValueError(f"its arrays are of the lengths {lengths}, its shape {shape.tolist()}")
    is_array = "_is_array" in members and bool(_small(archive, members["_is_array"]))
    make = getattr(scipy.sparse, f"{kind}_{'array' if is_array else 'matrix'}")
    matrix = make(tuple(shape.tolist()), dtype=arrays["data"].dtype)
    # its constructor would copy indices of another width than the indptr
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


def _small(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.file_size > 1 << 12:
        raise ValueError(f"its {member.filename} takes {member.file_size:,} bytes")
    with archive.open(member) as stream:
        _read_header(stream, member)
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _read_header(
    stream: BinaryIO, member: zipfile.ZipInfo, begin: int = 0
) -> tuple[tuple[int, ...], np.dtype]:
    """Read the shape and the dtype of an array that fills a member, which begins there."""
    shape, _, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
    size = member.file_size - (stream.tell() - begin)
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(
            f"its {member.filename} holds {dtype} of the shape {shape} in {size:,} bytes; it must "
            "be numbers that fill them"
        )
    return shape, dtype


def _array(file: BinaryIO, content: np.ndarray, member: zipfile.ZipInfo) -> np.ndarray:
    """View an array where it stands in the file."""
    file.seek(member.header_offset)
    signature, name, extras = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    begin = member.header_offset + LOCAL_HEADER.size + name + extras
    end = begin + member.file_size
    if signature != b"PK\x03\x04" or end > content.size:
        raise ValueError(f"its {member.filename} is not where it should be; the file is damaged")
    file.seek(begin)
    shape, dtype = _read_header(file, member, begin)
    if len(shape) != 1:
        raise ValueError(f"its {member.filename} has the shape {shape}, not one dimension")
    return content[file.tell() : end].view(dtype)
