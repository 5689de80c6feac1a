"""What ``attrs["glp"]`` of a result is: a dict that takes no time to copy."""

from __future__ import annotations

from typing import Any

from glp_rapids.common.types import Frame


class Facts(dict[str, Any]):
    """How a result was made, which nobody changes in place.

    pandas and cuDF copy attributes deeply whenever a column is taken, cuDF twice: of forty sweeps
    that was a third of the 66 us that a column of cuDF took. A deep copy of this has the same
    values. Pickled, it is a plain dict, which is read where this library is not installed.
    """

    __slots__ = ()

    def __deepcopy__(self, memo: Any) -> Facts:
        return Facts(self)

    def __reduce__(self) -> tuple:
        return dict, (dict(self),)


def set_attributes(frame: Frame, attributes: dict[str, Any]) -> Frame:
    """Attach ``attributes`` as ``frame.attrs["glp"]`` and give the frame back.

    Parameters
    ----------
    frame : pandas.DataFrame or cudf.DataFrame
        A result; proxies of cudf.pandas work too.
    attributes : dict
        How the result was made: plain Python values.

    Returns
    -------
    frame
        The same object.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.frames.facts import set_attributes
    >>> set_attributes(pd.DataFrame({"vertex": [0]}), {"sweeps": 3}).attrs["glp"]
    {'sweeps': 3}
    """
    frame.attrs = {**frame.attrs, "glp": Facts(attributes)}
    return frame
