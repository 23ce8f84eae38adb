"""Which sources were on: rows in, statements about sources out.

A model's own ``decode``, ``posterior`` and ``explain`` take tables of any kind and call what is here. These functions
take rows as bit sets, which ``Rows`` reads once for all of them; rows in time are for ``decode_in_time``.

>>> from bica import OrMixture, invert
>>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
>>> rows = invert.Rows.of([[1, 0], [1, 1]])
>>> invert.decode(model, rows.words, rows.observed).activity.astype(int)
array([[1, 0],
       [0, 1]])
>>> invert.log_probability(model, rows.words, rows.observed).value.round(2)
array([-2.3 , -0.69])
"""

from bica.data.rows import Rows
from bica.invert.decode import Decoded, Decoder, decode, decode_table
from bica.invert.explain import Explanations, explain
from bica.invert.posterior import LogProbability, Posterior, log_probability, posterior
from bica.invert.temporal.decode import DecodedInTime, decode_in_time, learn_persistence
from bica.invert.watch import Alarm, DriftDetector, Sight, Watcher

__all__ = [
    "Alarm",
    "Decoded",
    "DecodedInTime",
    "Decoder",
    "DriftDetector",
    "Explanations",
    "LogProbability",
    "Posterior",
    "Rows",
    "Sight",
    "Watcher",
    "decode",
    "decode_in_time",
    "decode_table",
    "explain",
    "learn_persistence",
    "log_probability",
    "posterior",
]
