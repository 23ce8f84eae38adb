"""Names from files are shown harmlessly, sentences in the words of the user."""

from hypothesis import given
from hypothesis import strategies as st

from bica.text import USUAL_NOUNS, Nouns, harmless, in_words_of

anything = st.text(st.characters(exclude_categories=()))


@given(anything)
def test_what_is_shown_always_prints(text):
    shown = harmless(text)
    assert shown.isprintable()
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P"])))
def test_plain_names_stay_as_they_are(text):
    assert harmless(text) == text


def test_the_users_nouns_replace_ours_but_never_a_part_of_a_name():
    nouns = Nouns(sensors="symptoms", sources="diseases", rows="mouse/mice")
    assert in_words_of(nouns, "1 row of 2 sensors and 1 source; rows") == "1 mouse of 2 symptoms and 1 disease; mice"
    assert in_words_of(nouns, "source3 is odd") == "disease3 is odd"
    assert in_words_of(nouns, "source3 is odd", ["source3"]) == "source3 is odd"
    for kept in ("resource3 is odd", "--sources 3", "`bica fit rows.csv`", "'row'", "narrow browsers"):
        assert in_words_of(nouns, kept) == kept
    assert in_words_of(nouns, "the rows of row 7", ["row 7"]) == "the rows of row 7"
    assert in_words_of(USUAL_NOUNS, "the rows") == "the rows"
