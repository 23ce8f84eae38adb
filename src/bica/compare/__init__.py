"""Methods against each other: contenders x problems x seeds, on all cores, into one table.

>>> plan = tasks(["findbica", "truth"], [Setting(network="topology two", n_samples=50, flip_rate=0.0)], range(2))
>>> len(plan), plan[0].contender
(4, 'findbica')
"""

from bica.compare.run import Job, read_records, run_plan, write_table
from bica.compare.summary import Mean, mean_of, summarise
from bica.compare.task import CONTENDERS, MEASURES, NETWORKS, Contender, Setting, Task, tasks, topology_settings

__all__ = [
    "CONTENDERS",
    "MEASURES",
    "NETWORKS",
    "Contender",
    "Job",
    "Mean",
    "Setting",
    "Task",
    "mean_of",
    "read_records",
    "run_plan",
    "summarise",
    "tasks",
    "topology_settings",
    "write_table",
]
