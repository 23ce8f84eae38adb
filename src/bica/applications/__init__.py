"""Whole tasks for a user: which channel each sniffer should watch and, in ``spectrum``, who uses a radio spectrum."""

from bica.applications.monitoring.assignment import SOLVERS, Assignment, Relaxation, assign, relax
from bica.applications.monitoring.problem import LearnedChannels, MonitoringProblem, learn_channels

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
