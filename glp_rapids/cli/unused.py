"""Options that would change nothing: said, not passed over in silence."""

from __future__ import annotations

import argparse
from collections.abc import Collection


def refuse(options: argparse.Namespace, names: Collection[str], why: str) -> None:
    """Raise if one of these options has another value than its default.

    ``names``: what they are called in ``options``. ``why``: follows the option in the message.
    """
    for action in options.parser._actions:
        named = action.option_strings and action.dest in names
        if named and getattr(options, action.dest) != action.default:
            raise ValueError(f"{action.option_strings[0]} {why}")
