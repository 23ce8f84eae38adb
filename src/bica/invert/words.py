"""Sentences about rows that could not be decoded or summed exactly."""

import numpy as np

from bica.invert.decode import Decoded
from bica.invert.posterior import LogProbability, Posterior

SHOWN_ROWS = 5


def impossible(found: Decoded) -> str:
    """Which rows no set of sources produces, and what to do."""
    rows = np.flatnonzero(~found.feasible)
    more = ", ..." if len(rows) > SHOWN_ROWS else ""
    first, n_wrong = (", ".join(map(str, numbers[:SHOWN_ROWS])) + more for numbers in (rows, found.n_wrong[rows]))
    return (
        f"no set of sources produces {'row' if len(rows) == 1 else 'rows'} {first} when sensors never err (at least "
        f"{n_wrong} of the cells must be wrong); fit with noise='estimate' or a rate such as noise=0.01"
    )


def approximate(found: Posterior) -> str:
    """How many posteriors are approximate, and by how much they may be off."""
    return (
        f"{(~found.exact).sum()} of {found.exact.size} posteriors are approximate, off by about "
        f"{np.nanmax(found.error):.2g} at most: too many columns are connected to sum over all activities"
    )


def unproven(found: Decoded) -> str:
    """In how many rows a better activity may exist, and by how much."""
    return (
        f"the search was cut short in {(~found.proven).sum()} rows: a better activity may exist there, by at most "
        f"{found.gap.max():.3g} in its log probability"
    )


def lower_bounds(rows: LogProbability) -> str:
    """For how many rows the log-likelihood is only bounded from below."""
    return (
        f"the log-likelihood of {(~rows.exact).sum()} of {len(rows.exact)} rows is a lower bound: too many columns "
        "are connected to sum over all activities"
    )
