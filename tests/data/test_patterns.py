import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError, OutputError, SettingError
from tests.data.strategies import tables
from tests.reference import slow_patterns

SOME = settings(max_examples=50)


def counted(rows, **options):
    return PatternCounts.of(np.array(rows, object), **options)


@pytest.mark.parametrize("n_sensors", [1, 63, 64, 65, 128, 200])
def test_any_number_of_sensors_takes_as_few_words_as_it_can(n_sensors):
    rows = np.random.default_rng(0).random((30, n_sensors)) < 0.5
    counts = PatternCounts.of(np.vstack([rows, rows]))
    assert counts.patterns.shape[1] == -(-n_sensors // 64)
    assert slow_patterns.table_of(counts) == slow_patterns.count(np.vstack([rows, rows]).astype(int).tolist())
    assert np.array_equal(np.unique(counts.rows(), axis=0), np.unique(rows, axis=0))


class TestFilesOfCounts:
    @settings(max_examples=15, deadline=None)
    @given(rows=tables(widths=(1, 3, 65)), weights=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=9, max_size=9))
    def test_counts_come_back_as_they_were(self, tmp_path_factory, rows, weights):
        path = tmp_path_factory.mktemp("counts") / "counts.parquet"
        counts = counted(rows, sample_weight=(weights * len(rows))[: len(rows)])
        counts.save(path)
        assert PatternCounts.of(path) == counts

    def test_batches_that_were_counted_apart_merge(self, tmp_path):
        rows = np.random.default_rng(0).random((90, 4)) < 0.3
        for number, part in enumerate(np.split(rows, 3)):
            PatternCounts.of(part).save(tmp_path / f"{number}.parquet")
        parts = [PatternCounts.of(tmp_path / f"{number}.parquet") for number in range(3)]
        assert parts[0] + parts[1] + parts[2] == PatternCounts.of(rows)

    def test_other_weights_than_the_counts_may_be_named(self, tmp_path):
        counts = PatternCounts.of([[0, 1], [1, 1], [0, 1]], sensors=["a", "n"])
        counts.save(tmp_path / "counts.parquet")
        assert PatternCounts.of(tmp_path / "counts.parquet", sample_weight="n", drop=["rows counted"]).sensors == ("a",)

    @pytest.mark.parametrize("name", ["counts.csv", "counts"])
    def test_another_kind_of_file_is_refused(self, tmp_path, name):
        with pytest.raises(SettingError, match=r"should end in \.parquet"):
            counted([[0, 1]]).save(tmp_path / name)

    def test_a_sensor_of_the_name_of_the_counts_is_refused(self, tmp_path):
        with pytest.raises(SettingError, match="names differ in more than case"):
            counted([[0, 1]], sensors=["a", "Rows counted"]).save(tmp_path / "counts.parquet")
        assert not list(tmp_path.iterdir())

    def test_nothing_is_overwritten_unasked(self, tmp_path):
        path = tmp_path / "counts.parquet"
        counted([[0, 1]]).save(path)
        with pytest.raises(OutputError, match="exists already"):
            counted([[1, 1]]).save(path)
        counted([[1, 1]]).save(path, overwrite=True)
        assert PatternCounts.of(path) == counted([[1, 1]])


class TestMerging:
    @SOME
    @given(rows=tables(), cut=st.integers(0, 8))
    def test_batches_add_up_to_the_whole(self, rows, cut):
        cut = min(max(cut, 1), len(rows) - 1)
        if not cut:
            return
        left, right = counted(rows[:cut]), counted(rows[cut:])
        assert left + right == counted(rows)
        assert left + right == right + left

    def test_tables_of_other_columns_cannot_be_added(self):
        left = counted([[0, 1]], sensors=["a", "b"])
        with pytest.raises(DataError, match="one has 2 columns, the other 3"):
            left + counted([[0, 1, 1]])
        with pytest.raises(DataError, match="column 1 is 'b' in one and 'c' in the other"):
            left + counted([[0, 1]], sensors=["a", "c"])
        with pytest.raises(TypeError):
            left + 1


class TestProjection:
    @SOME
    @given(rows=tables(), data=st.data())
    def test_projection_is_counting_fewer_columns(self, rows, data):
        columns = data.draw(st.lists(st.integers(0, len(rows[0]) - 1), min_size=1, max_size=70, unique=True))
        counts = counted(rows)
        expected = slow_patterns.count(slow_patterns.projected(rows, columns))
        by_number = counts.project(columns)
        assert slow_patterns.table_of(by_number) == expected
        assert by_number == counts.project([f"x{column}" for column in columns])
        assert by_number.sensors == tuple(f"x{column}" for column in columns)

    def test_no_column_at_all_leaves_the_number_of_rows(self):
        assert counted([[0, 1], [1, 1]], sensors=["a", "b"]).project([]).n_samples == 2

    @pytest.mark.parametrize(
        ("sensors", "sentence"),
        [
            (["z"], "there is no sensor 'z' among the 2 of this table"),
            ([2], "there is no sensor number 2; this table has 2, counted from 0"),
            ([-1], "there is no sensor number -1"),
            (["a", "a"], "columns 0 and 1 are both named 'a'"),
            ([0, "a"], "columns 0 and 1 are both named 'a'"),
        ],
    )
    def test_other_columns_are_refused(self, sensors, sentence):
        with pytest.raises(DataError, match=sentence):
            counted([[0, 1]], sensors=["a", "b"]).project(sensors)

    def test_a_table_whose_gaps_are_projected_away_is_complete(self):
        assert counted([[0, None], [1, 1]]).project([0]).observed is None


class TestMissingCells:
    def test_a_complete_table_says_so(self):
        counts = counted([[0, 1]])
        assert counts.observed is None
        assert counts.complete("this") is counts

    def test_what_cannot_use_gaps_refuses_in_one_sentence(self):
        counts = counted([[0, None], [1, 1], [1, 1], [None, None]], sample_weight=[1, 1, 1, 0.5])
        sentence = (
            "1.5 of 3.5 rows have missing cells, which FindBICA cannot use; drop those rows or the sensors with gaps"
        )
        with pytest.raises(DataError, match=sentence):
            counts.complete("FindBICA")
        with pytest.raises(DataError, match="which a full histogram cannot use"):
            counts.histogram()

    def test_unobserved_cells_have_bit_0(self):
        counts = counted([[None, 1], [1, None]])
        assert not (counts.patterns & ~counts.observed_cells()).any()


class TestEquality:
    def test_names_weights_rows_and_gaps_matter(self):
        counts = counted([[0, 1], [1, 1]])
        assert counts == counted([[1, 1], [0, 1]])
        assert counts != counted([[0, 1], [1, 1]], sensors=["a", "b"])
        assert counts != counted([[0, 1], [1, 1], [1, 1]])
        assert counts != counted([[0, 1], [1, None]])
        assert counted([[0, None]]) != counted([[0, 0]])
        assert counts != "something else"

    def test_counts_are_no_keys(self):
        with pytest.raises(TypeError, match="unhashable"):
            hash(counted([[0]]))


def test_constant_and_equal_columns_are_kept():
    rows = np.array([[0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 1, 1]])
    counts = PatternCounts.of(rows)
    assert counts.ones().tolist() == [0, 3, 2, 2]
    assert slow_patterns.table_of(counts) == slow_patterns.count(rows.tolist())


def test_counted_rows_pass_through_but_take_no_options():
    counts = counted([[0, 1]])
    assert PatternCounts.of(counts) is counts
    for options in ({"sensors": ["a", "b"]}, {"sample_weight": [1]}, {"binarize": 0.5}):
        with pytest.raises(DataError, match="these rows are counted already"):
            PatternCounts.of(counts, **options)


def test_names_must_be_text_of_which_no_two_are_equal():
    with pytest.raises(DataError, match="sensor names are text, but the name of column 1 is 3"):
        counted([[0, 1]], sensors=["a", 3])
    with pytest.raises(DataError, match="columns 0 and 1 are both named 'a'"):
        counted([[0, 1]], sensors=["a", "a"])
    with pytest.raises(DataError, match="1 sensor names were given, but the table has 2 columns"):
        counted([[0, 1]], sensors=["a"])


def test_the_histogram_has_a_cell_for_every_pattern():
    assert counted([[0, 1], [1, 1], [0, 1]]).histogram().tolist() == [0, 0, 2, 1]
    with pytest.raises(LimitError, match="a full histogram of 25 sensors needs 2\\^25 cells; the limit is 24 sensors"):
        PatternCounts.of(np.zeros((1, 25))).histogram()
