"""Matrix files are read as they are meant, and what they claim is checked before memory is taken for it."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.data.readers.matrix_files import check_shape, read_matrix
from bica.errors import DataError, LimitError

BANNER = b"%%MatrixMarket matrix coordinate real general\n"


@pytest.fixture
def refused(tmp_path):
    def read(name, content, error, sentence):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=sentence) as raised:
            PatternCounts.of(tmp_path / name)
        assert "\n" not in str(raised.value)

    return read


def npy(shape, kind="|b1", content=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def npz(matrix):
    file = io.BytesIO()
    scipy.sparse.save_npz(file, matrix)
    return file.getvalue()


class TestArchivesOfNumpy:
    def test_the_only_array_is_the_table(self, tmp_path):
        rows = np.array([[1, 0], [1, 1], [0, 0]])
        np.savez(tmp_path / "a.npz", rows)
        assert PatternCounts.of(tmp_path / "a.npz") == PatternCounts.of(rows)

    def test_of_several_arrays_none_is_taken(self, refused):
        file = io.BytesIO()
        np.savez(file, X=np.eye(2), Y=np.eye(3))
        refused("a.npz", file.getvalue(), DataError, "it holds the arrays 'X, Y'; save the table alone")
        file = io.BytesIO()
        np.savez(file)
        refused("a.npz", file.getvalue(), DataError, "it is empty; save the table alone")

    def test_a_claimed_shape_is_checked(self, refused):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("X.npy", npy((1, 10**8)))
        refused("a.npz", file.getvalue(), LimitError, "claims 100000000 columns")


class TestMatrixMarket:
    @given(
        st.sampled_from(["real", "integer", "pattern"]),
        st.sampled_from(["general", "symmetric", "skew-symmetric"]),
        st.booleans(),
        st.integers(0, 6),
        st.randoms(use_true_random=False),
    )
    def test_it_reads_what_scipy_writes(self, tmp_path_factory, field, symmetry, dense, n, random):
        rows = np.array([[random.choice([0, 0, 1, -3]) for _ in range(n)] for _ in range(n)], float).reshape(n, n)
        rows = {"general": rows, "symmetric": rows + rows.T, "skew-symmetric": rows - rows.T}[symmetry]
        if field == "pattern":
            rows, dense = (rows != 0).astype(float), False
            symmetry = "general" if symmetry == "skew-symmetric" else symmetry
        path = tmp_path_factory.mktemp("market") / "a.mtx"
        scipy.io.mmwrite(path, rows if dense else scipy.sparse.coo_array(rows), field=field, symmetry=symmetry)
        found = read_matrix(path, "mtx")
        assert np.array_equal(found if dense else found.toarray(), rows)

    def test_comments_empty_lines_and_line_ends_of_any_kind(self, tmp_path):
        text = BANNER.replace(b"\n", b"\r\n") + b"% by hand\r\n\r\n%\r\n2 3 2\r\n 1  3 1.0 \r\n\r\n2\t1 nan"
        (tmp_path / "a.mtx").write_bytes(text)
        np.testing.assert_array_equal(read_matrix(tmp_path / "a.mtx", "mtx").toarray(), [[0, 0, 1], [np.nan, 0, 0]])

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (BANNER + b"6 6 9\n1 3 1\0", "a line does not hold 3 numbers"),  # made SciPy's reader crash
            (BANNER + b"6 6 9\n1 3 1\n", "it promises 9 lines of numbers, but holds fewer"),
            (BANNER + b"6 6 1\n1 3 1\n1 4 1\n", "it promises 1 line of numbers, but holds more"),
            (BANNER + b"6 6 2\n1 3 1 4\n4 1\n", "a line does not hold 3 numbers"),
            (BANNER + b"6 6 1\n1 3 1e\n", "it holds something that is not a number"),
            (BANNER + b"6 6 1\n0 3 1\n", "it stores a cell outside its 6 rows and 6 columns"),
            (BANNER + b"6 6 1\n1 7 1\n", "it stores a cell outside its 6 rows and 6 columns"),
            (BANNER + b"6 6 1\n1.5 3 1\n", "it stores a cell outside"),
            (BANNER + b"6 6\n1 3 1\n", "its line of sizes is damaged"),
            (BANNER + b"6 -6 1\n1 3 1\n", "its line of sizes is damaged"),
            (BANNER + b"6 " + b"9" * 5000 + b" 1\n1 3 1\n", "its line of sizes is damaged"),
            (BANNER + b"6 6 1\n" + b" " * (1 << 17), "it holds a line without end"),
            (BANNER + b"%" * (1 << 17), "its header is cut or damaged"),
            (BANNER.replace(b"general", b"symmetric") + b"6 5 1\n1 3 1\n", "it cannot be symmetric with 6 rows and 5"),
            (
                BANNER.replace(b"real", b"complex") + b"6 6 1\n1 3 1 0\n",
                "a matrix of kind 'coordinate complex general' cannot",
            ),
            (BANNER.replace(b"matrix", b"vector"), "its first line is no header"),
        ],
    )
    def test_damage_is_refused_in_one_sentence(self, refused, content, sentence):
        refused("a.mtx", content, DataError, rf"a\.mtx cannot be read as \.mtx: ({sentence})")


class TestClaims:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.mtx", BANNER + b"1 100000000 1\n1 3 1\n"),
            ("a.npz", npz(scipy.sparse.coo_array(([1], ([0], [5])), shape=(1, 10**8)))),
            ("a.npy", npy((0, 10**9))),
        ],
    )
    def test_too_many_columns(self, refused, name, content):
        refused(name, content, LimitError, rf"{name} claims 1000000000? columns; a table has at most 1048576$")

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.mtx", BANNER + b"1000000000 70 1\n1 3 1\n"),
            ("a.npz", npz(scipy.sparse.coo_array(([1], ([0], [5])), shape=(10**9, 70)))),
        ],
    )
    def test_rows_that_are_not_stored(self, refused, name, content):
        refused(name, content, LimitError, f"{name} claims 1000000000 rows of 70 cells, but stores next to nothing")

    def test_a_sparse_array_in_memory_claims_no_more_than_a_file(self):
        with pytest.raises(LimitError, match="the sparse array claims 100000000 columns"):
            PatternCounts.of(scipy.sparse.coo_array(([1], ([0], [5])), shape=(1, 10**8)))

    def test_standard_input_is_called_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(npy((0, 10**9)))))
        with pytest.raises(LimitError, match=r"^standard input claims"):
            PatternCounts.of("-")

    def test_a_large_table_may_be_as_large_as_it_is(self):
        check_shape((10**9, 10**4), 10**10, "a table of 10 GB")

    def test_an_archive_that_unpacks_to_far_more_than_its_size(self, refused):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.npy", npy((1 << 28,)) + bytes(1 << 28))
        refused("a.npz", file.getvalue(), LimitError, r"a\.npz would take \d+ bytes unpacked")

    def test_little_memory_is_taken(self, tmp_path):
        names = []
        for name, content in [("a.mtx", BANNER + b"1 100000000 1\n1 3 1\n"), ("a.npy", npy((0, 10**9)))]:
            (tmp_path / name).write_bytes(content)
            names.append(str(tmp_path / name))
        script = (
            "import sys\nfrom bica.data.patterns import PatternCounts\nfrom bica.errors import LimitError\n"
            "import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "for name in sys.argv[1:]:\n    try:\n        PatternCounts.of(name)\n"
            "    except LimitError:\n        pass\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
        )
        told = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, text=True, check=True)
        assert int(told.stdout) < 100_000  # kB


class TestDamage:
    @pytest.mark.parametrize(
        "content",
        [
            npy((1, 1))[:70],
            npy((1, 1)).replace(b"{", b"("),
            npy((1, 1)).replace(b"'shape'", b"'shap\0'"),
            npy((1, 1)).replace(b"(1, 1)", b"(1, -1"),
            npy((1, -1), content=b"1"),
            npy((1, 1)).replace(b"'|b1'", b"'|x1'"),
            npy((1, 1)).replace(b"'|b1'", b"'(((("),
            npy((1, 1)).replace(b"'|b1'", b"[[[]]]"),
            npy((1, 1)).replace(b"'|b1'", b"None "),
            npy((10**30, 1)),
            npy((1, 1), "<U1", b"\xff\xff\xff\x7f"),  # no such character: a SystemError once it is shown
            npy((1, 1), "<M8[s]", b"\0" * 8),
        ],
        ids=range(12),
    )
    def test_of_an_array(self, refused, content):
        refused("a.npy", content, (DataError, LimitError), r"a\.npy (cannot be read as \.npy|claims)")

    @pytest.mark.parametrize("seed", range(40))
    def test_of_an_archive_by_chance(self, tmp_path, seed):
        """Any byte may be wrong: the matrix is then read as it is, or refused by one of our own errors."""
        rng = np.random.default_rng(seed)
        content = bytearray(npz(scipy.sparse.csr_array(rng.random((20, 6)) < 0.3)))
        for place in rng.integers(0, len(content), 3):
            content[place] = rng.integers(256)
        (tmp_path / "a.npz").write_bytes(content)
        try:
            PatternCounts.of(tmp_path / "a.npz")
        except (DataError, LimitError) as error:
            assert "\n" not in str(error)  # noqa: PT017 - it need not be refused

    @pytest.mark.parametrize("place", [6, 8])
    def test_of_an_archive_whose_members_are_encrypted_or_packed_in_an_unknown_way(self, refused, place):
        """NotImplementedError and RuntimeError of the library."""
        content = bytearray(npz(scipy.sparse.csr_array(np.eye(2))))
        entry = content.find(b"PK\1\2")
        content[entry + place + 2] = content[place] = 1 if place == 6 else 77
        refused("a.npz", bytes(content), DataError, r"a\.npz cannot be read as \.npz: it is cut or damaged")
