"""Ranks that one thread leads find what each has left in the round before; an error ends all."""

import contextlib

import pytest

from glp_rapids.multigpu.rounds import Rounds, in_rounds


@contextlib.contextmanager
def nowhere(rank):
    yield


def test_what_is_left_is_found_in_the_next_round():
    rounds, heard = Rounds(3), []

    def work(rank, last):
        for number in range(last):
            rounds.leave(number, rank, 10 * number + rank)
            yield ""
            heard.append((number, rank, list(rounds.left(number))))

    in_rounds([work(rank, 5) for rank in range(3)], {"": nowhere}, "")
    assert [(number, rank) for number, rank, _ in heard] == [
        (number, rank) for number in range(5) for rank in range(3)
    ]
    assert all(left == [10 * number, 10 * number + 1, 10 * number + 2] for number, _, left in heard)


def test_each_works_in_its_scope_until_it_is_through():
    now, done = [], []

    @contextlib.contextmanager
    def scope(rank, name):
        now.append((rank, name))
        yield
        now.pop()

    def work(rank):
        for step in range(rank):
            assert now == [(rank, f"scope {step % 2}")]
            yield f"scope {(step + 1) % 2}"
        done.append(rank)

    ranks = 2, 0, 1
    scopes = {f"scope {n}": lambda at, n=n: scope(ranks[at], f"scope {n}") for n in range(2)}
    in_rounds([work(rank) for rank in ranks], scopes, "scope 0")
    assert (done, now) == ([0, 1, 2], [])


def test_an_error_of_one_ends_all():
    begun = []

    def fails(rank):
        begun.append(rank)
        yield ""
        if rank == 1:
            raise ValueError("a mistake")
        yield ""
        pytest.fail("rank 0 went on")

    with pytest.raises(ValueError, match="a mistake"):
        in_rounds([fails(0), fails(1)], {"": nowhere}, "")
    assert begun == [0, 1]
