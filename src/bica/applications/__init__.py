"""Whole tasks for a user: which channel each sniffer should watch; in ``spectrum``, who uses a radio spectrum."""

from bica.applications.assignment import SOLVERS, Assignment, assign
from bica.applications.learning import LearnedChannels, learn_channels
from bica.applications.monitoring import MonitoringProblem
from bica.applications.relaxation import Relaxation, relax

__all__ = [
    "SOLVERS",
    "Assignment",
    "LearnedChannels",
    "MonitoringProblem",
    "Relaxation",
    "assign",
    "learn_channels",
    "relax",
]
