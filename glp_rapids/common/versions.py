"""Versions of libraries, compared by their numbers."""

from __future__ import annotations

import re


def at_least(version: str, least: str) -> bool:
    """Compare the numbers of two versions."""
    return _numbers(version) >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(number) for number in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
