import csv
import gzip
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.data.readers.text import CsvParser, number_in
from bica.errors import ColumnWarning, DataError
from tests.data.containers import zst
from tests.reference import slow_patterns


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="table.csv", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return PatternCounts.of(tmp_path / name, **options)

    return read_text


def table(counts):
    return slow_patterns.table_of(counts)


class TestHeader:
    def test_names_stand_in_the_first_line(self, read):
        counts = read("left,right\n0,1\n0,1\n")
        assert counts.sensors == ("left", "right")
        assert table(counts) == {(0, 1): 2}

    @pytest.mark.parametrize("first", ["0,1", "0,", ",", "0.0,1.0", "true,FALSE", "NA,1", '"1",0'])
    def test_a_first_line_of_cells_is_data(self, read, first):
        counts = read(f"{first}\n1,1\n1,1\n")
        assert counts.sensors == ("x0", "x1")
        assert counts.n_samples == 3

    def test_a_first_line_of_measurements_is_data(self, read):
        assert read("0.5,12\n3.5,0\n", binarize=1).n_samples == 2

    @pytest.mark.parametrize("first", ["0,1,2", "2019,2020,2021", "0,1,a", "1,0,-"])
    def test_whole_numbers_may_be_names(self, read, first):
        assert read(f"{first}\n1,1,0\n").sensors == tuple(first.split(","))

    def test_quoted_names_hold_delimiters_quotes_and_line_ends(self, read):
        assert read('"a,b","c""d","e\n\nf"\r\n0,1,1\r\n').sensors == ("a,b", 'c"d', "e\n\nf")

    @pytest.mark.parametrize("index", [range(3), ["u", "v", "w"], [0, 1, 1]])
    def test_an_index_that_pandas_wrote_is_left_out_with_a_note(self, tmp_path, index):
        frame = pd.DataFrame({"a": [1, 0, 1]}, index=index)
        frame.to_csv(tmp_path / "table.csv")
        with pytest.warns(ColumnWarning, match="^column '' is left out: it is the row index that pandas writes$"):
            counts = PatternCounts.of(tmp_path / "table.csv")
        frame.to_csv(tmp_path / "table.csv", index=False)
        assert counts == PatternCounts.of(tmp_path / "table.csv")

    def test_an_index_read_back_into_a_frame_is_left_out(self, tmp_path):
        pd.DataFrame({"a": [1, 0, 1]}).to_csv(tmp_path / "table.csv")
        with pytest.warns(ColumnWarning, match=r"'Unnamed: 0' is left out: .*the row index that pandas writes"):
            counts = PatternCounts.of(pd.read_csv(tmp_path / "table.csv"))
        assert counts.sensors == ("a",)

    def test_a_header_without_rows_is_refused(self, read):
        with pytest.raises(DataError, match="the table has no rows"):
            read("a,b\n")

    @pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "  \n"])
    def test_an_empty_file_is_refused(self, read, text):
        with pytest.raises(DataError, match="is empty: it has no columns and no rows"):
            read(text)

    def test_equal_names_are_refused(self, read):
        with pytest.raises(DataError, match="columns 0 and 2 are both named 'a'; give each column its own name"):
            read("a,b,a\n0,1,1\n")

    def test_a_quoted_name_without_end_is_refused(self, read):
        with pytest.raises(DataError, match="is not CSV: a quoted name in its first line has no end"):
            read('"a,b\n0,1\n')


class TestDialects:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_delimiters_line_ends_and_byte_order_marks(self, read, delimiter, end, mark):
        lines = [["a", "b", "c"], ["0", "1", ""], ["1", "1", "1"]]
        counts = read(mark + "".join(delimiter.join(line) + end for line in lines))
        assert counts.sensors == ("a", "b", "c")
        assert table(counts) == {(0, 1, None): 1, (1, 1, 1): 1}

    def test_a_mark_before_data_is_no_part_of_the_first_cell(self, read):
        assert table(read("\ufeff0,1\n1,1\n")) == {(0, 1): 1, (1, 1): 1}

    def test_line_ends_may_be_mixed_and_the_last_one_absent(self, read):
        assert table(read("a,b\r\n0,1\n1,1\r\n\r\n0,1")) == {(0, 1): 2, (1, 1): 1}

    def test_the_delimiter_is_the_one_between_the_cells_not_one_inside_the_names(self, read):
        assert read("a;b|c;d|e;f\n0|1|1\n").sensors == ("a;b", "c;d", "e;f")

    def test_one_column_needs_no_delimiter(self, read):
        assert table(read('alarm\n1\n0\n""\n1\n')) == {(1,): 2, (0,): 1, (None,): 1}

    def test_empty_lines_are_no_rows(self, read):
        assert read("\n\na,b\n\n0,1\n \n1,1\n\n").n_samples == 2

    @pytest.mark.parametrize("name", ["table.csv.gz", "table.TSV.ZST"])
    def test_compressed_files_are_unpacked(self, read, name):
        plain = b"a\tb\n0\t1\n"
        assert table(read(gzip.compress(plain) if "gz" in name else zst(plain), name)) == {(0, 1): 1}


class TestCells:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            *((text, 1) for text in ("1", "1.0", "true", "True", "TRUE", " 1 ", '"1"', "1e0", "+1")),
            *((text, 0) for text in ("0", "0.0", "false", "False", "-0", '"0"', ".0")),
            *((text, None) for text in ("", "NA", "na", "NaN", "nan", "null", "NULL", '""', " ")),
        ],
    )
    def test_spellings_of_0_1_and_missing(self, read, text, value):
        assert table(read(f"a,b\n{text},1\n")) == {(value, 1): 1}

    @given(st.sampled_from([1, 2, 5]), st.data())
    def test_the_fast_path_reads_what_the_slow_one_does(self, width, data):
        cells = st.sampled_from(["0", "1", "2", "é", ",", "", '"'])
        lines = data.draw(
            st.lists(st.lists(cells, min_size=width, max_size=width).map(",".join), min_size=1, max_size=3)
        )
        parser = CsvParser(tuple("abcde"[:width]), ",")
        fast = parser._single_digits(lines, range(width))
        cells = [line.split(",") for line in lines]
        plain = all(len(row) == width and set(row) <= {"0", "1"} for row in cells)
        assert (fast is not None) == plain
        if plain:
            assert fast.tolist() == [[int(cell) for cell in row] for row in cells]

    @pytest.mark.parametrize("text", ["yes", "0 1", "1_0", "0x1", "one", "--"])
    def test_other_text_is_no_number(self, text):
        with pytest.raises(ValueError, match=text):
            number_in(text)


class TestTrouble:
    def test_a_short_row_is_named(self, read):
        with pytest.raises(
            DataError, match=r"^line 4 has 1 cell, but the table has 2 columns; leave a missing cell empty"
        ):
            read("a,b\n0,1\n0,1\n0\n1,1,1\n")

    def test_the_first_row_may_be_the_odd_one(self, read):
        with pytest.raises(
            DataError, match=r"^line 2 has 3 cells, but the table has 2 columns; put a cell that holds a delimiter"
        ):
            read("a,b\n0,1,1\n0,1\n")
        with pytest.raises(DataError, match=r"^line 2 has 1 cell, but the table has 2 columns; leave"):
            read("a,b\n0\n0,1\n")

    def test_a_long_row_is_named(self, read):
        with pytest.raises(
            DataError, match=r"^line 3 has 3 cells, but the table has 2 columns; put a cell that holds a delimiter"
        ):
            read("a,b\n0,1\n0,1,\n")

    def test_text_among_the_cells_is_named(self, read):
        with pytest.raises(
            DataError,
            match=r"^line 3, column 'b' holds 'maybe', which is no number; leave the column out with `drop`, or write",
        ):
            read("a,b\n0,1\n0,maybe\nperhaps,1\n")

    def test_a_value_other_than_0_and_1_is_named(self, read):
        with pytest.raises(
            DataError, match=r"^line 5, column 'a' holds 2, but only 0 and 1 can be read; .*`binarize`$"
        ):
            read("a,b\n0,1\n0,1\n0,1\n2,1\n0,3\n")

    def test_a_quoted_cell_that_does_not_end_is_named(self, read):
        with pytest.raises(DataError, match=r"^line 3 has a quoted cell that does not end in its line$"):
            read('a,b\n0,1\n0,"1\n')

    @pytest.mark.parametrize("cell", ["0" * 200_000 + "1", '"' + "0" * 200_000 + '1"'])
    def test_a_cell_of_hundreds_of_thousands_of_letters_is_told(self, read, cell):
        """Python's reader of CSV takes 131 072 at most; what is longer is no number anyway."""
        with pytest.raises(DataError, match="one of its lines is far too long for a row"):
            read(f"a,b\n{cell},1\n")
        names = ",".join(f"n{i}" for i in range(400))
        with pytest.raises(DataError, match=r"line 2 has (a quoted cell that is longer than 131072|1 cell)"):
            read(f"{names}\n{cell}\n")

    @pytest.mark.parametrize("n_letters", [1000, 200_000])
    def test_a_long_name_is_a_name_or_told_as_long(self, read, n_letters):
        name = "x" * n_letters
        if n_letters < csv.field_size_limit():
            assert read(f'"{name}",b\n0,1\n').sensors == (name, "b")
            return
        with pytest.raises(DataError, match="a quoted name in its first line is longer than 131072 characters, or has"):
            read(f'"{name}",b\n0,1\n')

    def test_a_sentence_about_a_long_cell_stays_short(self, read):
        with pytest.raises(DataError, match="which is no number") as raised:
            read(f"{'n' * 10_000},b\n{'y' * 10_000},1\n")
        assert len(str(raised.value)) < 600

    def test_other_encodings_are_refused_in_one_sentence(self, read):
        for text in ("a,b\n0,1\n".encode("utf-16"), b"a,b\n0,1\n0,\xff\n"):
            with pytest.raises(DataError, match=r"table\.csv is no UTF-8 text: .*; save it as UTF-8") as raised:
                read(text)
            assert "\n" not in str(raised.value)

    def test_a_line_without_end_is_refused_in_one_sentence(self, read):
        with pytest.raises(
            DataError, match=r"table\.csv cannot be read: .*one of its lines is far too long for a row"
        ) as raised:
            read(b"a,b\n0," + b"1" * 9_000_000)
        assert len(str(raised.value)) < 300

    def test_a_row_beyond_the_first_chunk_has_its_own_number(self, read):
        with pytest.raises(DataError, match="line 300001, column 'x1' holds 7"):
            read("0,1\n" * 300000 + "0,7\n", binarize={"x0": 0.5})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the most memory used is read from /proc")
@pytest.mark.parametrize("ending", ["csv.gz", "jsonl.gz", "csv.zst", "jsonl.zst"])
def test_a_compressed_file_of_few_huge_lines_takes_little_memory(tmp_path, ending):
    """In a process of its own, whose memory tells what reading takes at most.

    The lines are 560 MB, but are refused while they are unpacked: an engine older than 2.0 would hold all of them.
    """
    is_csv, size = ending.startswith("csv"), 7_000_000
    start, end = (b"0," + b"0" * size, b"1\n") if is_csv else (b'{"a": 1' + b" " * size, b"}\n")
    path = tmp_path / f"table.{ending}"
    with pa.CompressedOutputStream(path, "zstd" if ending.endswith("zst") else "gzip") as file:
        file.write(b"a,b\n" if is_csv else b"")
        for _ in range(80):
            file.write(start + end)
    script = (
        "import re, sys\nfrom bica.data.patterns import PatternCounts\nfrom bica.errors import DataError\n"
        "try:\n    PatternCounts.of(sys.argv[1])\nexcept DataError as error:\n    print(error)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"  # ru_maxrss is the parent's
    )
    told = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    sentence, kilobytes = told.stdout.splitlines()[:2]
    assert sentence.endswith("far too long for a row")
    assert int(kilobytes) < 600_000  # some 170 MB are taken by the packages alone, and 32 MB by every thread


@pytest.mark.parametrize("name", ["table.csv.gz", "table.csv.zst"])
class TestDamage:
    @pytest.fixture
    def whole(self, name):
        plain = "".join(f"{i % 2},{i * 7919 % 3 % 2}\n" for i in range(20000)).encode()
        return gzip.compress(plain) if name.endswith("gz") else zst(plain)

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
    def test_a_cut_file_is_refused(self, read, name, whole, share):
        with pytest.raises(DataError, match="is cut or damaged"):
            read(whole[: int(share * len(whole))], name)

    def test_what_is_not_compressed_is_refused(self, read, name):
        for content in (b"a,b\n0,1\n", b""):
            with pytest.raises(DataError, match="is cut or damaged"):
                read(content, name)

    def test_files_put_together_are_read_together(self, read, name, whole):
        assert read(whole + whole, name).n_samples == 40000
