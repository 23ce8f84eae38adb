"""Events become the cells of their slots."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.columns import MISSING
from bica.data.slots import tables
from bica.data.slots.store import event_store
from bica.data.slots.tables import (
    Outages,
    SlotGrid,
    TableCounts,
    clocks_that_went_back,
    natural,
    plan_tables,
    slot_cells,
    tally,
)
from tests.reference import slow_slots

NAMES = ["a", "b", "c"]
times = st.integers(-20, 60)
events = st.lists(st.tuples(times, st.sampled_from(NAMES)), max_size=30)
outages = st.lists(st.tuples(st.sampled_from(NAMES), times, st.integers(1, 15)), max_size=3)


def filled(store, found, channels=None):
    """Put events (time, sensor) into the store, all on one channel each."""
    moments = np.array([time for time, _ in found], np.int64)
    places = np.array([NAMES.index(sensor) for _, sensor in found], np.int32)
    on = np.full(len(found), -1, np.int32) if channels is None else np.array(channels, np.int32)
    store.add_arrays(0, moments, (NAMES, places), (["1", "6"], on))


def cells_of(store, plan, channel=None):
    counts = TableCounts.none_yet(plan.sensors)
    pieces = list(slot_cells(store, plan, channel, counts))
    return np.vstack(pieces), counts


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(events, outages, st.integers(-10, 5), st.integers(1, 9), st.integers(1, 8))
def test_cells_are_those_of_the_definition_however_they_are_cut(found, down, start, length, n_slots):
    down = [(sensor, first, first + n) for sensor, first, n in down]
    listed = Outages(
        tuple(sensor for sensor, *_ in down),
        (None,) * len(down),
        np.array([interval for _, *interval in down], np.int64).reshape(-1, 2),
    )
    with event_store() as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "rows_a_chunk", lambda n_sensors: 3)
        filled(store, found)
        plan = plan_tables(store, SlotGrid(start, length, n_slots), sensors=NAMES, outages=listed)
        cells, counts = cells_of(store, plan)
        expected = slow_slots.table(found, NAMES, start, length, n_slots, down)
        assert [[None if cell == MISSING else cell for cell in row] for row in cells.tolist()] == expected
        assert counts.on.sum() == sum(cell == 1 for row in expected for cell in row)
        assert counts.missing.sum() == sum(cell is None for row in expected for cell in row)
        reasons = tally(store, plan)
        assert sum(reasons.values()) == len(found)
        assert reasons["used"] == sum(start <= time < start + n_slots * length for time, _ in found)


def test_every_channel_has_its_own_table_with_all_sensors():
    with event_store() as store:
        filled(store, [(0, "a"), (1, "b"), (1, "b"), (2, "a")], [0, 1, 1, -1])
        plan = plan_tables(store, SlotGrid(0, 1, 3))
        assert (plan.sensors, plan.channels) == (("a", "b"), ("1", "6"))
        first, counts = cells_of(store, plan, "1")
        assert first.tolist() == [[1, 0], [0, 0], [0, 0]]
        assert counts.silent() == ("b",)
        assert cells_of(store, plan, "6")[0].tolist() == [[0, 0], [0, 1], [0, 0]]
        assert tally(store, plan) == {"used": 3, "no channel": 1}


def test_a_channel_that_nobody_used_is_a_table_of_zeros():
    with event_store() as store:
        filled(store, [(0, "a")], [0])
        plan = plan_tables(store, SlotGrid(0, 1, 2), channels=["11"])
        cells, counts = cells_of(store, plan, "11")
        assert not cells.any()
        assert counts.silent() == ("a",)
        assert tally(store, plan) == {"used": 0, "other channels": 1}


def test_an_outage_may_be_of_one_channel_only():
    with event_store() as store:
        filled(store, [(0, "a"), (1, "a")], [0, 1])
        down = Outages(("a", "c"), ("6", None), np.array([[1, 2], [0, 1]]))
        plan = plan_tables(store, SlotGrid(0, 1, 2), outages=down)
        assert plan.sensors == ("a", "c")  # a sensor that was down exists, although it never reported
        assert cells_of(store, plan, "1")[0].tolist() == [[1, MISSING], [0, 0]]
        cells, counts = cells_of(store, plan, "6")
        assert cells.tolist() == [[0, MISSING], [MISSING, 0]]
        assert counts.heard_while_down == 1


def test_a_clock_that_goes_back_is_told_by_sensor_with_the_largest_step():
    with event_store() as store:
        filled(store, [(5, "a"), (4, "b"), (9, "a"), (2, "a"), (1, "a"), (6, "b")])
        filled(store, [])
        [step] = clocks_that_went_back(store)
        assert (step.sensor, step.n_steps, step.largest) == ("a", 2, 7)


def test_sensors_one_after_the_other_in_a_file_are_no_clock_going_back():
    with event_store() as store:
        filled(store, [(5, "a"), (9, "a"), (1, "b"), (1, "b"), (2, "b")])
        assert clocks_that_went_back(store) == []


@pytest.mark.parametrize("digits", ["7" * 5000, "²"], ids=["5000 digits", "superscript"])
def test_any_digits_are_a_name(digits):
    assert sorted([f"s{digits}", "s10", "s9"], key=natural) == ["s9", "s10", f"s{digits}"]


def test_numbers_inside_names_go_by_size():
    with event_store() as store:
        numbers = np.zeros(3, np.int64)
        store.add_arrays(
            0, numbers, (["s10", "s9", "s1"], np.arange(3, dtype=np.int32)), ([], numbers.astype(np.int32) - 1)
        )
        assert plan_tables(store, SlotGrid(0, 1, 1)).sensors == ("s1", "s9", "s10")
