"""The check of this library for ``rapids doctor``, its entry point ``rapids_doctor_check``.

rapids-cli calls it with ``verbose=``, takes an exception for a failure, shows warnings, and with
``--verbose`` the text that comes back.
"""

from __future__ import annotations

import warnings
from typing import Any

from glp_rapids.cli import doctor


def glp_rapids_check(verbose: bool = False, **_: Any) -> str:
    """Check that label propagation runs, on the GPU if there is one.

    Parameters
    ----------
    verbose : bool
        What rapids-cli was called with; the answer is the same.

    Returns
    -------
    str
        Where it runs.

    Raises
    ------
    RuntimeError
        It does not run on the CPU, or not on the GPU that is there; with what to do.

    Warns
    -----
    UserWarning
        It runs, but a library is too old or too new.

    Examples
    --------
    >>> from glp_rapids.cli.rapids_doctor import glp_rapids_check
    >>> glp_rapids_check().startswith("Label propagation runs on the")
    True
    """
    driver = doctor.nvidia_driver()
    runs = doctor.runs(driver)
    odd = [
        f"{row.what} {row.version} is {row.status} (wanted: {row.wanted}): {row.mend}"
        for row in doctor.report(driver, doctor.installed)
        if row.status in ("too old", "too new", "broken")
    ]
    if any(row.status != "ok" for row in runs):
        raise RuntimeError(". ".join([doctor.verdict(runs, driver is not None), *odd]))
    for line in odd:
        warnings.warn(f"glp-rapids: {line}", stacklevel=2)
    return doctor.verdict(runs, driver is not None)
