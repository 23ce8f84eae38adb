"""Who is there: users learned from the reports of monitors in consecutive slots."""

import numpy as np

from bica.data.rows import Rows
from bica.estimate.likelihood import Likelihood
from bica.model.fit import Fit
from bica.model.noise import Noise


def learn_users(slots: Rows, *, noise: Noise | None = None, n_jobs: int | None = None) -> Fit:
    """Learn users from consecutive slots; ``noise`` None: one flip rate is found with them.

    ``diagnostics["persistence"]`` says for how many slots on average each user stays active. Ctrl-C keeps the best so
    far, marked as interrupted.

    >>> rows = [[0, 0]] * 50 + [[1, 1]] * 5 + [[0, 0]] * 40 + [[1, 0]] * 10 + [[0, 0]] * 60 + [[1, 1]] * 5
    >>> learn_users(Rows.of(rows)).model.mixing.astype(int).tolist()
    [[1, 1], [1, 0]]
    """
    method = Likelihood(noise="estimate" if noise is None else noise, n_jobs=n_jobs)
    return method.fit_in_order(slots, np.random.default_rng(0))
