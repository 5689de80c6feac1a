"""Where results may be written: over no input, and not where the next run would read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from glp_rapids.common import atomic_file
from glp_rapids.frames import files


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path]) -> None:
    """See that what is to be written can be, and that nothing is written over what is needed."""
    taken = {name: path for name, path in inputs.items() if path.exists()}
    for name, path in outputs.items():
        if path is None:
            continue
        if str(path) in files.STDOUT:
            raise ValueError(f"{name} {path}: is not a file that can be replaced; name one")
        atomic_file.check(path)
        for other, before in taken.items():
            if _same_file(path, before):
                raise ValueError(f"{path}: {name} is the file of {other} as well; name another")
        for other, before in inputs.items():
            if before.is_dir() and is_read_of(before.resolve(), path.parent.resolve() / path.name):
                raise ValueError(
                    f"{path}: {name} is in the folder of {other}, and would be read with it the "
                    "next time; write it elsewhere, or under a name that begins with _"
                )
        taken[name] = path


def is_read_of(folder: Path, path: Path) -> bool:
    """Tell whether a path in a folder, or elsewhere, is one of its Parquet files by its name."""
    if path.suffix.lower() not in files.PARQUET or not path.is_relative_to(folder):
        return False
    return not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
