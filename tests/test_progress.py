"""Loops report, a listener shows."""

import pytest

from bica.progress import listening, tracked


@pytest.fixture
def reports():
    return []


@pytest.fixture
def listener(reports):
    return lambda *report: reports.append(report)


def test_items_pass_through_unchanged_with_and_without_a_listener(listener):
    assert list(tracked("abc", "letters")) == ["a", "b", "c"]
    with listening(listener):
        assert list(tracked("abc", "letters")) == ["a", "b", "c"]


def test_every_item_is_reported_after_its_work(reports, listener):
    with listening(listener):
        for item in tracked([10, 20], "tens", 2):
            reports.append(item)
    assert reports == [("tens", 0, 2), 10, ("tens", 1, 2), 20, ("tens", 2, 2)]


def test_the_total_may_be_unknown(reports, listener):
    with listening(listener):
        list(tracked(iter([1]), "rows"))
    assert reports == [("rows", 0, None), ("rows", 1, None)]


def test_nothing_is_a_report_too(reports, listener):
    with listening(listener):
        assert list(tracked([], "rows", 0)) == []
    assert reports == [("rows", 0, 0)]


def test_items_are_taken_one_by_one(reports, listener):
    def endless():
        while True:
            yield 1

    with listening(listener):
        assert next(tracked(endless(), "ones")) == 1
    assert reports == [("ones", 0, None)]


def test_the_inner_listener_hears_and_the_outer_one_returns(reports, listener):
    inner = []
    with listening(listener):
        with listening(lambda *report: inner.append(report)):
            list(tracked([], "inside"))
        list(tracked([], "outside"))
    assert inner == [("inside", 0, None)]
    assert reports == [("outside", 0, None)]


def test_after_an_error_nobody_listens(reports, listener):
    with pytest.raises(ZeroDivisionError), listening(listener):
        raise ZeroDivisionError
    list(tracked([1], "rows"))
    assert reports == []


def test_an_error_in_the_work_stops_the_reports(reports, listener):
    with pytest.raises(ZeroDivisionError), listening(listener):
        sum(1 // item for item in tracked([1, 0], "rows"))
    assert reports == [("rows", 0, None), ("rows", 1, None)]
