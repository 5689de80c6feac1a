"""Signatures of Numba's functions are looked for once, and Numba is as it was afterwards."""

import threading

import numba
import pytest
from numba import types
from numba.core.registry import cpu_target
from numba.core.target_extension import target_override
from numba.core.types.functions import BaseFunction
from numba.core.typing import Context
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import overload

from glp_rapids.jit import signatures
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.signatures import found_once

CONTEXT, OTHER = cpu_target.typing_context, Context()
NUMBAS_OWN = BaseFunction.get_call_type


@pytest.fixture(autouse=True)
def numba_is_left_as_it_was():
    yield
    assert BaseFunction.get_call_type is NUMBAS_OWN
    assert not signatures._inside


def counted():
    """A function that takes integers, and of which types it was asked."""
    asked = []

    def nothing():
        pass

    class Template(AbstractTemplate):
        key = nothing

        def generic(self, args, kws):
            asked.append(args)
            if all(isinstance(one, types.Integer) for one in args):
                return signature(args[0], *args)
            return None

    function = types.Function(Template)
    for context in (CONTEXT, OTHER):
        context.insert_global(nothing, function)
    return function, asked


def found(function, *args):
    return function.get_call_type(CONTEXT, args, {})


def test_a_signature_is_looked_for_once():
    function, asked = counted()
    with found_once():
        first = found(function, types.int64)
        assert [found(function, types.int64) for _ in range(3)] == [first] * 3
        assert len(asked) == 1
        assert function.get_impl_key(first) is function.typing_key
        assert found(function, types.int32).return_type == types.int32
        assert found(function, types.int64, types.int64) != first
        assert len(asked) == 3
    with found_once():
        found(function, types.int64)
        assert len(asked) == 3
        function.get_call_type(OTHER, (types.int64,), {})
        assert len(asked) == 4
    found(function, types.int64)
    assert len(asked) == 5


def test_how_a_signature_is_compiled_is_known_again():
    function, asked = counted()
    with found_once():
        first = found(function, types.int64)
        function._impl_keys[first.args] = None  # as if another template had said so
        assert found(function, types.int64) is first
    assert function.get_impl_key(first) is function.typing_key
    assert len(asked) == 1


def test_a_function_of_one_place_is_not_kept(monkeypatch):
    monkeypatch.setattr(signatures, "_known", {})
    function, asked = counted()
    elsewhere = types.Function(type("Template", function.templates, {}))
    assert elsewhere is not function
    with found_once():
        assert found(elsewhere, types.int64) == found(elsewhere, types.int64)
        assert not signatures._known
    assert len(asked) == 2


def test_what_another_target_says_is_another_signature():
    function, asked = counted()
    with found_once():
        for target in ("cpu", "cpu", "generic", "generic"):
            with target_override(target):
                found(function, types.int64)
    assert len(asked) == 2


def test_what_does_not_match_is_said_every_time():
    function, asked = counted()
    with found_once():
        for _ in range(2):
            with pytest.raises(numba.TypingError, match="No match"):
                found(function, types.float64)
    assert len(asked) == 4  # by literals and without


def test_no_more_are_kept_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(signatures, "MOST", 4)
    monkeypatch.setattr(signatures, "_known", {})
    function, asked = counted()
    with found_once():
        for number in range(1, 10):
            found(function, *[types.int64] * number)
            assert len(signatures._known) <= 4
    assert len(asked) == 9


def test_what_is_compiled_for_the_purpose_is_not_kept(monkeypatch):
    monkeypatch.setattr(signatures, "_known", {})

    def twice(value):
        raise NotImplementedError

    @overload(twice)
    def of_integers(value):
        return (lambda value: value * 2) if isinstance(value, types.Integer) else None

    @compiled
    def call(value):
        return twice(value)

    assert call(4) == 8
    kept = {function.typing_key for function, *_ in signatures._known.values()}
    assert twice not in kept
    assert kept  # the product's

    @overload(twice)
    def of_floats(value):
        return (lambda value: value + 0.5) if isinstance(value, types.Float) else None

    @compiled
    def call_again(value):
        return twice(value)

    assert call(1.25) == call_again(1.25) == 1.75
    assert call_again(5) == 10


def test_blocks_of_several_threads():
    function, asked = counted()
    inside, may_end, ended = threading.Barrier(3), threading.Event(), threading.Barrier(3)

    def enter(waits):
        with found_once():
            found(function, types.int64)
            inside.wait(60)
            if waits:
                may_end.wait(60)
        if not waits:
            ended.wait(60)

    threads = [threading.Thread(target=enter, args=(waits,)) for waits in (True, False, False)]
    for thread in threads:
        thread.start()
    ended.wait(60)
    assert BaseFunction.get_call_type is not NUMBAS_OWN
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert BaseFunction.get_call_type is NUMBAS_OWN
    assert 1 <= len(asked) <= 3


def test_an_error_ends_the_block_as_anything_does():
    with pytest.raises(ZeroDivisionError), found_once(), found_once():
        raise ZeroDivisionError
    assert BaseFunction.get_call_type is NUMBAS_OWN


def test_what_others_replace_meanwhile_stays():
    function, _ = counted()
    try:
        with found_once():
            ours = BaseFunction.get_call_type

            def theirs(self, context, args, kws):
                return ours(self, context, args, kws)

            BaseFunction.get_call_type = theirs
            with found_once():
                assert BaseFunction.get_call_type is theirs
            assert BaseFunction.get_call_type is theirs
        assert BaseFunction.get_call_type is theirs
        with found_once():
            assert found(function, types.int64) == found(function, types.int64)
        assert BaseFunction.get_call_type is theirs
    finally:
        BaseFunction.get_call_type = NUMBAS_OWN


@pytest.mark.parametrize("error_model", ["numpy", "python"])
def test_functions_are_compiled_as_their_options_say(error_model):
    @compiled(error_model=error_model)
    def divided(a, b):
        return a / b + a * 2

    @compiled
    def other(a, b):
        return divided(a, b) + a / 2

    assert divided(3.0, 2.0) == 7.5
    assert other(3.0, 2.0) == 9.0
    if error_model == "numpy":
        assert divided(1.0, 0.0) == float("inf")
    else:
        with pytest.raises(ZeroDivisionError):
            divided(1.0, 0.0)


def test_lists_of_types_and_keywords_are_looked_for_every_time():
    function, asked = counted()
    with found_once():
        for _ in range(2):
            assert function.get_call_type(CONTEXT, [types.int64], {}).return_type == types.int64
            function.get_call_type(CONTEXT, (types.int64,), {"keyword": types.int64})
    assert len(asked) == 4
