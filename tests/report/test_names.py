"""Names from files are shown harmlessly."""

from hypothesis import given
from hypothesis import strategies as st

from bica.report.names import distinct_names, harmless

anything = st.text(st.characters(exclude_categories=()))


@given(anything)
def test_what_is_shown_always_prints(text):
    shown = harmless(text)
    assert shown.isprintable()
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P"])))
def test_plain_names_stay_as_they_are(text):
    assert harmless(text) == text


@given(st.lists(st.sampled_from(["a", "a (2)", "\x00", r"\x00", ""]) | anything, max_size=8))
def test_distinct_names_are_distinct_harmless_and_in_order(names):
    told = distinct_names(names)
    assert len(set(told)) == len(told) == len(names)
    assert all(shown.startswith(harmless(name)) for shown, name in zip(told, names, strict=True))
    assert all(shown.isprintable() for shown in told)
