"""Sparse matrices in ``.npz`` files, as ``scipy.sparse.save_npz`` writes them, mapped into memory.

Such a file is a zip archive of ``.npy`` files. With ``compressed=False`` their bytes stand in it as
they are, so an array is where the header of its member ends.
"""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from glp_rapids.common.mapping import mapped_bytes

MAPPED = ("csr", "csc")
ARRAYS = ("data", "indices", "indptr")
LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, then the lengths of the name and the extras
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
PROBLEMS = (
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, EOFError,
    AttributeError, LookupError, TypeError, ValueError, NotImplementedError, RuntimeError,
)  # fmt: skip


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
        It is truncated or damaged, or not a sparse matrix of SciPy.
    """
    path = Path(path)
    if not path.is_file():
        problem = "is no file" if path.exists() else "there is no such file"
        raise FileNotFoundError(f"{path}: {problem}")
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {
                member.filename.removesuffix(".npy"): member for member in archive.infolist()
            }
            missing = {"format", "shape"} - members.keys()
            if missing:
                raise ValueError(
                    f"it has no {' and no '.join(sorted(missing))}, only {sorted(members)[:9]}; "
                    "write it with scipy.sparse.save_npz(path, matrix, compressed=False)"
                )
            kind = _small(archive, members["format"]).item()
            kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
            stored = all(
                name in members and members[name].compress_type == zipfile.ZIP_STORED
                for name in ARRAYS
            )
            if kind in MAPPED and stored:
                return _mapped(file, archive, members, kind)
        import scipy.sparse

        return scipy.sparse.load_npz(path)
    except PROBLEMS as error:
        raise ValueError(f"{path} cannot be read as a sparse matrix of SciPy: {error}") from error


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
        return np.lib.format.read_array(stream, allow_pickle=False)


def _array(file: BinaryIO, content: np.ndarray, member: zipfile.ZipInfo) -> np.ndarray:
    """View an array where it stands in the file."""
    file.seek(member.header_offset)
    signature, name, extras = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    begin = member.header_offset + LOCAL_HEADER.size + name + extras
    end = begin + member.file_size
    if signature != b"PK\x03\x04" or end > content.size:
        raise ValueError(f"its {member.filename} is not where it should be; the file is damaged")
    file.seek(begin)
    shape, _, dtype = HEADERS[np.lib.format.read_magic(file)](file)
    data = file.tell()
    if dtype.hasobject or len(shape) != 1 or data + math.prod(shape) * dtype.itemsize != end:
        raise ValueError(
            f"its {member.filename} holds {dtype} of the shape {shape} in {end - begin:,} bytes; "
            "it must be one row of numbers that fills them"
        )
    return content[data:end].view(dtype)
