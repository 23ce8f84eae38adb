"""Methods against each other: contenders x problems x seeds, on all cores, into one table.

>>> plan = tasks(["findbica", "truth"], [Setting(network="topology two", n_samples=50, flip_rate=0.0)], range(2))
>>> len(plan), plan[0].contender
(4, 'findbica')
"""

from bica.compare.contest import SCORES, Match, OwnTable, SimulatedRows, matches
from bica.compare.run import Job, read_records, run_plan, write_table
from bica.compare.summary import Mean, Standing, mean_of, standings, summarise
from bica.compare.task import CONTENDERS, MEASURES, NETWORKS, Contender, Setting, Task, tasks, topology_settings

__all__ = [
    "CONTENDERS",
    "MEASURES",
    "NETWORKS",
    "SCORES",
    "Contender",
    "Job",
    "Match",
    "Mean",
    "OwnTable",
    "Setting",
    "SimulatedRows",
    "Standing",
    "Task",
    "matches",
    "mean_of",
    "read_records",
    "run_plan",
    "standings",
    "summarise",
    "tasks",
    "topology_settings",
    "write_table",
]
