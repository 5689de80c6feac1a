"""Options that were given and would change nothing: said, not passed over in silence."""

from __future__ import annotations

import argparse
from collections.abc import Collection


def refuse(options: argparse.Namespace, names: Collection[str], why: str) -> None:
    """Raise if one of these options was given.

    ``names``: what they are called in ``options``. ``why``: follows the option in the message.
    """
    for action in options.parser._actions:
        if action.dest in names and getattr(options, action.dest) != action.default:
            raise ValueError(f"{action.option_strings[0]} {why}")
