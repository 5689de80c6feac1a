"""How NetworkX finds the backend, what that loads, and NetworkX's own tests with it."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import exhaustive
from networkx_graphs import entry_points

import glp_rapids
from glp_rapids.networkx.backend import ONE_OF_SEVERAL, BackendInterface
from glp_rapids.networkx.info import info


def test_installed_entry_points_lead_to_the_backend():
    try:
        importlib.metadata.distribution("glp-rapids")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("glp-rapids is not installed here, so it has no entry points")
    for group, thing in (("networkx.backends", BackendInterface), ("networkx.backend_info", info)):
        (found,) = importlib.metadata.entry_points(group=group, name="glp_rapids")
        assert found.load() is thing


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables for a process in which the package counts as installed."""
    place = tmp_path_factory.mktemp("installed")
    metadata = place / f"glp_rapids-{glp_rapids.__version__}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: glp-rapids\nVersion: {glp_rapids.__version__}\n"
    )
    lines = []
    for group, names in entry_points().items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    package = Path(glp_rapids.__file__).parents[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NETWORKX_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([str(place), str(package)])}


@pytest.mark.parametrize(
    ("mode", "lacks"),
    [
        # NetworkX marks the tests of what a backend lacks, such as is_partition
        ({"NETWORKX_TEST_BACKEND": "glp_rapids"}, True),
        *exhaustive(
            ({"NETWORKX_BACKEND_PRIORITY": "glp_rapids"}, False),
            ({"NETWORKX_TEST_BACKEND": "glp_rapids", "NETWORKX_FALLBACK_TO_NX": "1"}, False),
        ),
    ],
)
def test_the_tests_of_networkx_pass(mode, lacks, environment, tmp_path):
    folder = "networkx.algorithms.community.tests"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rx", "--pyargs"),
            *(f"{folder}.test_label_propagation", f"{folder}.test_quality"),
        ],
        env={**environment, **mode, "NETWORKX_WARNINGS_TO_IGNORE": "cache"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lacking = [line for line in done.stdout.splitlines() if line.startswith("XFAIL")]
    assert bool(lacking) == lacks
    assert all("not implemented by glp_rapids" in line for line in lacking)
    assert not [
        line for line in lacking if any(f"'{name}'" in line for name in info()["functions"])
    ]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= PASS


PARTS = (
    "shortest_paths.tests.test_generic",
    "shortest_paths.tests.test_unweighted",
    "shortest_paths.tests.test_weighted",
    "traversal.tests.test_bfs",
    "components.tests.test_connected",
    "components.tests.test_weakly_connected",
    "centrality.tests.test_betweenness_centrality",
    "community.tests.test_louvain",
    "community.tests.test_leiden",
)
# of the first two files, with NetworkX 3.6; 3.7 has more
PASS = 25


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "mode",
    [
        {"NETWORKX_TEST_BACKEND": "glp_rapids", "NETWORKX_FALLBACK_TO_NX": "1"},
        # Some tests change weights behind the back of what NetworkX keeps of converted graphs; and
        # marks are set only where the tests are told of the backend.
        {"NETWORKX_BACKEND_PRIORITY": "glp_rapids", "NETWORKX_CACHE_CONVERTED_GRAPHS": ""},
    ],
    ids=["all", "first"],
)
def test_the_tests_of_networkx_for_searches_pass(mode, environment, tmp_path):
    priority = "NETWORKX_BACKEND_PRIORITY" in mode
    wanting = [name for names in ONE_OF_SEVERAL.values() for name in names]
    left_out = ["-k", " and ".join(f"not {name}" for name in wanting)] if priority else []
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rx", *left_out),
            "--pyargs", *(f"networkx.algorithms.{part}" for part in PARTS),
        ],
        env={**environment, **mode, "NETWORKX_WARNINGS_TO_IGNORE": "cache"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lacking = [line for line in done.stdout.splitlines() if line.startswith("XFAIL")]
    # three of Louvain's with any version
    assert (len(lacking) >= 3) != priority, done.stdout
    assert all(any(f"::{name}" in line for name in wanting) for line in lacking), done.stdout


def test_import_of_networkx_stays_light(environment, tmp_path):
    script = """
import json, sys, networkx
before = [*sys.modules]
assert "glp_rapids" in networkx.utils.backends.backend_info
found = [*networkx.community.label_propagation_communities(networkx.path_graph(3))]
print(json.dumps([before, [*sys.modules], [sorted(nodes) for nodes in found]]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "NETWORKX_BACKEND_PRIORITY": "glp_rapids"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    before, after, found = json.loads(done.stdout)
    assert "glp_rapids.networkx.info" in before
    assert not {"numpy", "numba", "pandas", "glp_rapids.networkx.backend"} & set(before)
    assert "glp_rapids.networkx.backend" in after
    assert found == [[0, 1, 2]]
