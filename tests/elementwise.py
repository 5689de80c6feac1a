"""CuPy's elementwise kernels without a GPU: a C++ compiler builds their text, NumPy has the arrays.

One thread does it all, in random order: what comes out must not depend on who is first. Whether two
threads get into each other's way is for compute-sanitizer.
"""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

C_TYPES = {
    np.dtype(name): c_type
    for name, c_type in {
        "int8": "signed char", "uint8": "unsigned char", "int16": "short",
        "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int",
        "int64": "long long", "uint64": "unsigned long long", "bool": "bool",
    }.items()
}  # fmt: skip

TEXT = """
#include <cstddef>
#define __device__
template <class T> T atomicAdd(T* word, T more) {{ T was = *word; *word += more; return was; }}
template <class T> T atomicOr(T* word, T bits) {{ T was = *word; *word |= bits; return was; }}
template <class T> T atomicMin(T* word, T other) {{
    T was = *word; if (other < was) *word = other; return was;
}}
template <class T> T atomicCAS(T* word, T expected, T other) {{
    T was = *word; if (was == expected) *word = other; return was;
}}
{typedefs}
{preamble}
extern "C" void run(ptrdiff_t threads, const ptrdiff_t* order, {parameters}) {{
    for (ptrdiff_t thread = 0; thread < threads; ++thread) {{
        ptrdiff_t i = order[thread];
        {elements}
        {operation};
    }}
}}
"""


class ElementwiseKernel:
    """What is used of `cupy.ElementwiseKernel`; scalars take the type of their parameter."""

    def __init__(self, inputs, outputs, operation, name, preamble=""):
        split = [[one.split() for one in text.split(",")] for text in (inputs, outputs)]
        self.parameters, self.number_of_inputs = split[0] + split[1], len(split[0])
        self.operation, self.name, self.preamble = operation, name, preamble
        self.built, self.random = {}, np.random.default_rng(1)

    def __call__(self, *arguments, size=None):
        types = self.types_of(arguments)
        threads = size
        if size is None:
            threads = next(one.size for one, (*raw, _, _) in self.named(arguments)
                           if isinstance(one, np.ndarray) and not raw)  # fmt: skip
        if len(arguments) < len(self.parameters):
            arguments = (*arguments, np.empty(threads, types[self.parameters[-1][-2]]))
        passed = []
        for argument, (*raw, type_name, name) in self.named(arguments):
            if isinstance(argument, np.ndarray):
                assert argument.dtype == types[type_name], (self.name, name)
                assert raw or argument.shape == (threads,), (self.name, name)
                is_read = not raw and len(passed) < self.number_of_inputs
                passed.append(np.ascontiguousarray(argument) if is_read else argument)
                assert passed[-1].flags.c_contiguous, (self.name, name)
            else:
                passed.append(np.array([argument]).astype(types[type_name]))
                assert passed[-1][0] == argument, (self.name, name)
        order = self.random.permutation(threads).astype(np.intp)
        is_array = tuple(isinstance(argument, np.ndarray) for argument in arguments)
        function = self.function(tuple(sorted(types.items())), is_array)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (order, *passed))
        function(ctypes.c_ssize_t(threads), *pointers)
        return arguments[-1]

    def named(self, arguments):
        return zip(arguments, self.parameters, strict=False)  # an output may be left out

    def types_of(self, arguments):
        types = {}
        for argument, (*_, type_name, _) in self.named(arguments):
            if isinstance(argument, np.ndarray) and len(type_name) == 1:
                assert types.setdefault(type_name, argument.dtype) == argument.dtype, self.name
        for *_, type_name, _ in self.parameters:
            if len(type_name) > 1:
                types[type_name] = np.dtype(type_name)
        return types

    def function(self, types, is_array):
        if (types, is_array) not in self.built:
            self.built[types, is_array] = built(self.text(dict(types), is_array), self.name)
        return self.built[types, is_array]

    def text(self, types, is_array):
        parameters, elements = [], []
        for place, (*raw, type_name, name) in enumerate(self.parameters):
            const = "const " * (place < self.number_of_inputs)
            c_type = const + C_TYPES[types[type_name]]
            parameters.append(f"{c_type}* {name if raw else 'of_' + name}")
            index = "i" if is_array[place] else "0"
            elements += [] if raw else [f"{c_type}& {name} = of_{name}[{index}];"]
        letters = {name: dtype for name, dtype in types.items() if len(name) == 1}
        return TEXT.format(
            typedefs="\n".join(f"typedef {C_TYPES[letters[one]]} {one};" for one in letters),
            preamble=self.preamble, parameters=", ".join(parameters),
            elements="\n".join(elements), operation=self.operation,
        )  # fmt: skip


@functools.cache
def built(text, name):
    path = Cupy.folder / f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    how = ["-w", "-shared", "-fPIC", "-x", "c++", "-"]
    subprocess.run(["g++", "-o", path, *how], input=text.encode(), check=True)
    return ctypes.CDLL(str(path)).run


class Cupy(ModuleType):
    """NumPy by the name of CuPy, with its kernels; no array is one of a GPU."""

    ElementwiseKernel = ElementwiseKernel
    folder = None  # of what is built

    def __getattr__(self, name):
        if name == "ndarray" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(np, name)


@pytest.fixture
def cupy_on_host(monkeypatch, tmp_path_factory):
    """CuPy as it is here; tell which functions have kept kernels of it."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    monkeypatch.setitem(sys.modules, "cupy", Cupy("cupy"))
    if Cupy.folder is None:
        Cupy.folder = tmp_path_factory.mktemp("elementwise")
    kept = []

    def forget(*functions):
        for function in functions:
            function.cache_clear()
            kept.append(function)

    yield forget
    for function in kept:
        function.cache_clear()
