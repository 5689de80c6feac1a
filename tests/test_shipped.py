"""Kernels that come with the package: found, kept, and damaged ones noticed."""

import pickle
import subprocess
import sys
import tomllib
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import glp_rapids
from glp_rapids.cli import ship as shipping

numba_cuda = pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")

from glp_rapids.jit import cuda as cuda_target  # noqa: E402
from glp_rapids.jit import ship, shipped_kernels  # noqa: E402
from glp_rapids.jit.shipped_kernels import HEADER, Texts, name_of  # noqa: E402

ROOT = Path(__file__).parents[1]
H100 = 9, 0, "a"
GPUS = (
    *((8, minor, "") for minor in (0, 6, 7, 8, 9)),
    H100,
    *((*capability, "a") for capability in ((10, 0), (10, 3), (11, 0), (12, 0), (12, 1))),
)


@pytest.fixture(scope="module")
def classic():
    """What a call launches: two small kernels, and a large one."""
    return shipping.launches(shipping.KERNELS["classic"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("IN_GIT", "FOLDER"):
        monkeypatch.setattr(shipped_kernels, name, tmp_path / "shipped")
    return tmp_path / "shipped"


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that takes whatever it is given; give the list of what that was."""
    from numba.cuda import codegen, dispatcher

    def chosen(library, capability=None):
        return capability or H100

    def get_cufunc(library):
        # As on a GPU; what a test put in the place of code is not loaded.
        taken.append(library.get_cubin().code)
        if b"refused" in taken[-1]:
            raise RuntimeError("no kernel image is available")
        return SimpleNamespace(module=SimpleNamespace(initialized=True))

    taken = []
    device = SimpleNamespace(compute_capability=H100[:2])
    monkeypatch.setattr(codegen.CUDACodeLibrary, "_ensure_cc", chosen)
    monkeypatch.setattr(codegen.CUDACodeLibrary, "get_cufunc", get_cufunc)
    monkeypatch.setattr(codegen.JITCUDACodegen, "magic_tuple", lambda self: ())
    monkeypatch.setattr(cuda_target.cuda, "get_current_device", lambda: device)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    return taken


def fresh(launched):
    """Give the same kernel anew, as another process has it."""
    recipe = launched.kernel.recipe
    return cuda_target.kernel(recipe.function, recipe.digest, recipe.program, **recipe.options)


@pytest.fixture(scope="module")
def numbas(classic):
    """The small kernel as Numba compiles it: itself, its texts, its machine code."""
    made = ship.compiled(classic[1].kernel, classic[1].signature)
    library = made._codelibrary
    texts = {one: library.get_asm_strs(one)[0] for one in GPUS}
    code = {one: bytes(library.get_cubin(one).code) for one in GPUS}
    library._ptx_cache, library._cubin_cache = {}, {}
    return SimpleNamespace(kernel=made, texts=texts, code=code)


@pytest.fixture
def once(numbas, monkeypatch):
    """Ship what was compiled: Numba counts functions, and would give another a name of its own."""
    numbas.kernel._codelibrary._cubin_cache = {}
    numbas.kernel._codelibrary._ptx_cache = {one: [text] for one, text in numbas.texts.items()}
    monkeypatch.setattr(ship, "compiled", lambda kernel, signature: numbas.kernel)
    return numbas


def names(launched):
    return [name_of(one.kernel.recipe, one.signature) for one in launched]


def skip_where_git_has_nothing():
    if not shipped_kernels.IN_GIT.is_dir():
        pytest.skip(f"git has no kernels of {shipped_kernels.IN_GIT.name}")


def load(launched):
    return shipped_kernels.load(launched.kernel.recipe, launched.signature, None)


def test_what_is_shipped_is_what_numba_would_compile(classic, folder, gpu, once):
    small = classic[1]
    (text,) = ship.ship(small.kernel, small.signature)
    made, found = once.kernel, load(small)
    for one in GPUS:
        (code,) = found._codelibrary.get_asm_strs(one)
        assert HEADER.sub("", code) == HEADER.sub("", once.texts[one])
        assert f".target sm_{''.join(map(str, one))}\n" in code
        # of an older version of PTX, which makes no difference
        assert code != once.texts[one]
        assert found._codelibrary.get_cubin(one).code == once.code[one]
    for name in ("cooperative", "entry_name", "debug", "lineinfo", "extensions"):
        assert getattr(found, name) == getattr(made, name), name
    assert tuple(found.argument_types) == tuple(made.argument_types)
    # what was there is not made anew
    before = text.stat().st_mtime_ns
    assert ship.ship(small.kernel, small.signature) == [text]
    assert text.stat().st_mtime_ns == before


def test_a_kernel_is_loaded_and_kept(classic, folder, gpu, once, monkeypatch, tmp_path):
    from numba.core import config
    from numba.cuda import dispatcher

    small = classic[1]
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    text, code = ship.ship(small.kernel, small.signature, (H100,))
    assert code.name == f"{text.name.removesuffix('.ptx.xz')}.sm_90a.xz"

    def refuse(*arguments, **options):
        raise AssertionError("compiled")

    monkeypatch.setattr(dispatcher._Kernel, "__init__", refuse)
    fresh(small).compile(small.signature)
    linked = once.code[H100]
    assert gpu == [linked]
    # Another process finds it in its cache, whatever became of the package's folder; a further
    # GPU of its has code of its own.
    text.unlink()
    code.unlink()
    again = fresh(small).compile(small.signature)
    library = again._codelibrary
    assert bytes(library.get_cubin().code) == linked
    assert ".target sm_80\n" in library.get_asm_strs((8, 0, ""))[0]
    other = next(iter(tmp_path.rglob("*.nbc")))
    other.unlink()
    with pytest.raises(AssertionError, match="compiled"):
        fresh(small).compile(small.signature)


def test_machine_code_that_a_driver_refuses_is_assembled_anew(classic, folder, gpu):
    small = classic[1]
    _, code = ship.ship(small.kernel, small.signature, (H100,))
    ship._write(code, b"refused")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = load(small)
    assert gpu[0] == b"refused"
    assert bytes(found._codelibrary.get_cubin().code) == bytes(gpu[1]) != b"refused"


@pytest.mark.parametrize("damage", [b"", b"garbage" * 100, None])
@pytest.mark.parametrize("kind", ["text", "code"])
def test_a_damaged_file_is_a_warning(classic, folder, gpu, kind, damage):
    small = classic[1]
    text, code = ship.ship(small.kernel, small.signature, (H100,))
    path = text if kind == "text" else code
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage is None else damage)
    with pytest.warns(RuntimeWarning, match="came with glp_rapids and cannot be used"):
        found = load(small)
    # without its text a kernel is compiled, without code its text is assembled
    assert (found is None) == (kind == "text")


def test_an_assembler_that_refuses_a_text_is_a_warning(classic, folder, gpu, monkeypatch):
    small = classic[1]
    ship.ship(small.kernel, small.signature)
    monkeypatch.setattr(shipped_kernels, "VERSIONS", {(8, 0): "99.0"})
    with pytest.warns(RuntimeWarning, match="the first call takes some seconds longer"):
        assert load(small) is None


def test_nothing_is_said_of_a_gpu_of_no_family(classic, folder, gpu, once, monkeypatch):
    from numba.cuda import codegen

    small = classic[1]
    ship.ship(small.kernel, small.signature)
    volta = 7, 0, ""
    monkeypatch.setattr(
        codegen.CUDACodeLibrary, "_ensure_cc", lambda library, one=None: one or volta
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(small) is None
    assert gpu == []


def test_nothing_is_said_where_nothing_was_shipped(classic, folder, gpu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(classic[1]) is None
        folder.mkdir()
        assert load(classic[1]) is None


# ---------------------------------------------------------------- texts and files


def test_a_text_is_of_the_nearest_family():
    texts = Texts({(8, 0): "old\n.version 0\n.target 0\n", (10, 0): "new\n.version 0\n.target 0\n"})
    assert texts.get((7, 5, "")) is None
    assert texts.get((8, 9, "")) == ["old\n.version 8.0\n.target sm_89\n"]
    assert texts.get((9, 0, "a")) == ["old\n.version 8.0\n.target sm_90a\n"]
    assert texts.get((12, 0, "a")) == ["new\n.version 8.8\n.target sm_120a\n"]
    assert texts.get((11, 0)) == ["new\n.version 9.0\n.target sm_110\n"]
    assert pickle.loads(pickle.dumps(texts)).get((8, 0, "")) == texts.get((8, 0, ""))


def test_a_family_has_one_text_or_is_refused():
    from numba.cuda import codegen

    def library(other):
        texts = {one: f"{'x' if one == other else 'y'}\n.version 9\n.target {one}\n"
                 for members in ship.MEMBERS.values() for one in members}  # fmt: skip
        library = codegen.CUDACodeLibrary._rebuild(
            None, "name", "name", [], {one: [text] for one, text in texts.items()}, {}, {}, None,
            {}, False, False, False, False,
        )  # fmt: skip
        return SimpleNamespace(_codelibrary=library, entry_name="name")

    assert set(ship.texts_of(library(None))) == set(shipped_kernels.FAMILIES)
    with pytest.raises(ValueError, match="differs within the family"):
        ship.texts_of(library(H100))


def test_what_cannot_be_made_again_is_refused(classic, folder, once):
    small = classic[1]
    once.kernel._codelibrary._max_registers = 32
    try:
        with pytest.raises(ValueError, match="more than what is kept of it"):
            ship.ship(small.kernel, small.signature)
    finally:
        once.kernel._codelibrary._max_registers = None
    assert not folder.exists()


@pytest.mark.exhaustive
def test_the_large_kernel_that_git_has_is_loaded(classic, gpu):
    skip_where_git_has_nothing()
    large = classic[-1]
    name = name_of(large.kernel.recipe, large.signature)
    text, code = (shipped_kernels.IN_GIT / f"{name}.{form}.xz" for form in ("ptx", "sm_90a"))
    assert text.stat().st_size < 200_000
    assert code.stat().st_size < 100_000
    found = load(large)
    assert found.cooperative
    library = found._codelibrary
    library._cubin_cache.clear()  # another assembler may make other code of the same text
    assert bytes(library.get_cubin().code).startswith(b"\x7fELF")


def test_some_are_shipped_and_what_is_stale_is_removed(classic, folder, monkeypatch):
    folder.mkdir()
    (folder / "propagate.0.ptx.xz").touch()
    (folder / "propagate.0.sm_90a.xz").touch()
    other = folder / f"{names(classic)[-1]}.ptx.xz"  # of the table, though not asked for now
    other.touch()
    monkeypatch.setitem(shipping.KERNELS, "classic", shipping.Shipped(shipping._classic, None))
    launches = shipping.launches
    monkeypatch.setattr(
        shipping, "launches", lambda shipped: launches(shipped)[: 2 if shipped is small else 3]
    )
    small, said = shipping.Shipped(shipping._classic, np.int64), []
    paths = shipping.ship_all({"small": small}, said.append)
    assert sorted([*paths, other]) == sorted(folder.iterdir())
    assert len(paths) == 2
    assert said[0].startswith("small")
    assert said[1:] == ["removed 2 files of older sources"]


def test_what_git_has_is_of_its_sources():
    # A failure: run `python -m glp_rapids.cli.ship`, and commit what it wrote.
    skip_where_git_has_nothing()
    expected = {
        f"{name}.{form}.xz"
        for title, shipped in shipping.KERNELS.items() if shipped.in_git
        for (names,) in [shipping.current_names({title: shipped}).values()]
        for name in names
        for form in ("ptx", *map(shipped_kernels.machine, shipped.machines))
    }  # fmt: skip
    assert {path.name for path in shipped_kernels.IN_GIT.iterdir()} == expected


def test_code_and_text_are_of_one_time(classic, folder):
    small = classic[1]
    text, old = ship.ship(small.kernel, small.signature, (H100,))
    before = text.read_bytes()
    new = ship.ship(small.kernel, small.signature, (GPUS[0],))
    assert text.read_bytes() != before
    assert not old.exists()
    assert sorted(new) == sorted(folder.iterdir())


def test_unknown_kernels_are_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ship", "classic", "louvain"])
    with pytest.raises(SystemExit):
        shipping.main()
    assert "not 'louvain'" in capsys.readouterr().err


def test_wheel_and_sdist_take_what_git_ignores():
    assert "/glp_rapids/jit/shipped/" in (ROOT / ".gitignore").read_text().splitlines()
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for target in ("wheel", "sdist"):
        (pattern,) = targets["targets"][target]["artifacts"]
        example = Path("glp_rapids/jit/shipped/propagate.0.sm_90a.xz")
        assert example.match(pattern)


def test_a_wheel_holds_them(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling, which builds wheels, is not installed")
    copy = tmp_path / "copy"
    shipped = copy / "glp_rapids" / "jit" / "shipped"
    shipped.mkdir(parents=True)
    for name in ("pyproject.toml", ".gitignore", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    (copy / "glp_rapids" / "__init__.py").touch()
    (shipped / "propagate.0.ptx.xz").touch()
    (shipped / "propagate.0.ptx.xz.tmp").touch()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    assert [name for name in held if "shipped" in name] == [
        "glp_rapids/jit/shipped/propagate.0.ptx.xz"
    ]


@pytest.mark.gpu
def test_labels_are_the_same_with_what_was_shipped(folder, monkeypatch, tmp_path):
    """All three ways to a kernel: compiled, assembled from a text, loaded as machine code."""
    from numba.core import config
    from numba.cuda import dispatcher

    from glp_rapids.jit import launch, parallel_for
    from glp_rapids.propagation.engines import gpu as engine

    ends = np.random.default_rng(0).integers(0, 3_000, (2, 40_000))
    major, minor = cuda_target.cuda.get_current_device().compute_capability
    machine = major, minor, "a" if major >= 9 else ""
    launched, compiled = {}, []
    of_launch, of_numba = launch._loaded, dispatcher._Kernel.__init__

    def loaded(kernel, kinds, arguments):
        signature = tuple(map(kernel.typeof_pyval, cuda_target.bound(arguments)))
        launched[name_of(kernel.recipe, signature)] = kernel, signature
        return of_launch(kernel, kinds, arguments)

    def counted(self, *arguments, **options):
        compiled.append(self)
        of_numba(self, *arguments, **options)

    monkeypatch.setattr(launch, "_loaded", loaded)
    monkeypatch.setattr(dispatcher._Kernel, "__init__", counted)

    def run(way):
        engine._built.clear()
        parallel_for._kernel.cache_clear()
        monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / way))
        graph = glp_rapids.as_graph(tuple(ends), device="gpu")
        return glp_rapids.label_propagation(graph, max_iter=5)["partition"].to_numpy()

    expected = run("compiled")
    assert len(compiled) == len(launched) == 3
    wanted = list(launched.values())
    for machines, way in (((), "text"), ((machine,), "code")):
        for kernel, signature in wanted:
            ship.ship(kernel, signature, machines)
        compiled.clear()
        np.testing.assert_array_equal(run(way), expected)
        assert not compiled
