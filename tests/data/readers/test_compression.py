import gzip

import duckdb
import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.readers.engine import BUFFER, check_whole
from bica.errors import DataError
from tests.data.containers import zst

PLAIN = np.random.default_rng(0).integers(48, 50, 300_000).astype(np.uint8).tobytes()  # several blocks
SAME = b"0" * 300_000  # blocks of one letter repeated
SKIPPED = bytes.fromhex("502a4d18") + (5).to_bytes(4, "little") + b"hello"


def packed_fast(content):
    return gzip.compress(content, compresslevel=1)


def streamed_zst(folder):
    """Frames as a writer makes them that does not know how much will come."""
    path = folder / "streamed.zst"
    duckdb.execute(f"COPY (SELECT i % 2 AS a FROM range(100000) t(i)) TO '{path}' (FORMAT csv, COMPRESSION zstd)")
    return path.read_bytes()


def refused(path, content, compression):
    path.write_bytes(content)
    with pytest.raises(DataError, match="is cut or damaged: it cannot be unpacked as"):
        check_whole(path, compression)


@pytest.mark.parametrize("content", [PLAIN, SAME, b"", b"1"], ids=["random", "same", "nothing", "little"])
@pytest.mark.parametrize(("compression", "pack"), [("gzip", packed_fast), ("zstd", zst)])
class TestWhole:
    def test_whole_files_pass_alone_and_put_together(self, tmp_path, compression, pack, content):
        path = tmp_path / "file"
        for whole in (pack(content), pack(content) + pack(PLAIN)):
            path.write_bytes(whole)
            check_whole(path, compression)

    def test_no_part_of_a_file_passes_for_the_whole(self, tmp_path, compression, pack, content):
        whole = pack(content)
        for keep in {*range(min(30, len(whole))), *range(max(0, len(whole) - 30), len(whole)), len(whole) // 2}:
            refused(tmp_path / "file", whole[:keep], compression)


def test_zstd_as_a_stream_and_with_frames_to_skip(tmp_path):
    whole = streamed_zst(tmp_path)
    path = tmp_path / "file"
    path.write_bytes(SKIPPED + whole + SKIPPED)
    check_whole(path, "zstd")
    for content in (whole[:-1], whole + b"more", SKIPPED[:-1], whole + whole[:20]):
        refused(path, content, "zstd")


def test_a_gzip_file_whose_checksum_disagrees_is_refused(tmp_path):
    whole = packed_fast(PLAIN)
    refused(tmp_path / "file", whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:], "gzip")


LONG = b"1" * (2 * BUFFER)


@pytest.mark.parametrize("pack", [bytes, packed_fast, zst], ids=["none", "gzip", "zstd"])
@pytest.mark.parametrize("rest", [LONG, LONG + b"\n", LONG + b"\n0,1\n", b"0,1\n" + LONG + b"\n"])
def test_a_line_without_end_is_never_left_out(tmp_path, pack, rest):
    """Reading in parallel, the engine says nothing of a last line that is longer than what it reads at a time."""
    path = tmp_path / f"table.csv{ {bytes: '', packed_fast: '.gz', zst: '.zst'}[pack] }"
    path.write_bytes(pack(b"a,b\n1,0\n" + rest))
    with pytest.raises(DataError, match="one of its lines is far too long for a row"):
        PatternCounts.of(path)


@pytest.mark.parametrize("pack", [bytes, packed_fast, zst], ids=["none", "gzip", "zstd"])
def test_the_largest_last_line_is_a_line(tmp_path, pack):
    names = [f"{i:x>40}" for i in range(2000)]
    cells = ",".join(["1" + " " * 990] * 2000)
    path = tmp_path / f"table.csv{ {bytes: '', packed_fast: '.gz', zst: '.zst'}[pack] }"
    path.write_bytes(pack(f"{','.join(names)}\n{cells}".encode()))
    assert PatternCounts.of(path).n_samples == 1
