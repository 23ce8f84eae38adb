"""Names from files are shown harmlessly."""

from hypothesis import given
from hypothesis import strategies as st

from bica.text import harmless

anything = st.text(st.characters(exclude_categories=()))


@given(anything)
def test_what_is_shown_always_prints(text):
    shown = harmless(text)
    assert shown.isprintable()
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P"])))
def test_plain_names_stay_as_they_are(text):
    assert harmless(text) == text
