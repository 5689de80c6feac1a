"""The rule of floors: a room imports only lower ones, wherever in a file it does so."""

import ast
from pathlib import Path

import pytest

import glp_rapids

PACKAGE = Path(__file__).parents[1] / "glp_rapids"

# From the ground up; rooms of one floor do not import one another.
FLOORS = (
    ("device",),
    ("common",),
    ("jit", "frames"),
    ("graph",),
    ("compressed", "multigpu", "outofcore"),
    ("ingest",),
    ("propagation", "cohesion", "traversal"),
    ("diversity", "metrics"),
    ("communities",),
    ("compression", "dask", "datasets", "fraud", "networkx", "plot"),
    ("bench",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree):
    """The modules of ours that a file imports: at the top, in functions, under TYPE_CHECKING."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "glp_rapids":
            # a public name is in the room where its home is
            homes = (glp_rapids._HOMES.get(alias.name, alias.name) for alias in node.names)
            yield from (f"glp_rapids.{home}" for home in homes if home != "__version__")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("room", FLOOR)
def test_a_room_imports_only_lower_floors(room):
    higher = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in FILES
        if room_of(path) == room
        for name in imported(ast.parse(path.read_text()))
        if name.startswith("glp_rapids.")
        and (other := name.split(".")[1]) != room
        and FLOOR[other] >= FLOOR[room]
    ]
    assert not higher, "\n".join(higher)


def test_every_room_has_a_floor():
    assert {room_of(path) for path in FILES} <= set(FLOOR)
    loose = [path.name for path in PACKAGE.glob("*.py")]
    assert len(loose) <= 5, loose


def test_no_file_is_longer_than_400_lines():
    long = [str(path) for path in FILES if len(path.read_text().splitlines()) > 400]
    assert not long, long
