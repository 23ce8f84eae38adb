"""Learning from rows that are consecutive slots, in which sources stay on for a while."""

from bica.estimate.temporal.learn import Bounds, LearnedInTime, learn_in_time, stays_in_time

__all__ = ["Bounds", "LearnedInTime", "learn_in_time", "stays_in_time"]
