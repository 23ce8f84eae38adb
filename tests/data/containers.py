"""One table in every container that can be read: functions of its rows (0, 1 and None), names and a folder."""

import csv
import gzip
import io
import json
import zipfile

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import scipy.io
import scipy.sparse


def floats(rows):
    return np.array([[np.nan if cell is None else cell for cell in row] for row in rows], float)


def csv_text(rows, names, **dialect):
    text = io.StringIO(newline="")
    writer = csv.writer(text, **dialect)
    writer.writerow(names)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return text.getvalue()


def named_beside(path, names):
    path.with_name(f"{path.stem}_columns.csv").write_text(csv_text([[name] for name in names], ["column"]))
    return path


def pandas_frame(rows, names, folder):
    return pd.DataFrame(floats(rows), columns=names)


def pandas_nullable_integers(rows, names, folder):
    return pandas_frame(rows, names, folder).astype("Int64")


def pandas_nullable_booleans(rows, names, folder):
    return pandas_frame(rows, names, folder).astype("boolean")


def pandas_objects(rows, names, folder):
    return pd.DataFrame(np.array(rows, dtype=object), columns=names)


def polars_frame(rows, names, folder):
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float32), orient="row")


def polars_booleans(rows, names, folder):
    return polars_frame(rows, names, folder).cast(pl.Boolean)


def polars_lazy(rows, names, folder):
    return polars_frame(rows, names, folder).lazy()


def polars_lazy_booleans(rows, names, folder):
    return polars_booleans(rows, names, folder).lazy()


def arrow_table(rows, names, folder):
    return pa.table([pa.array([row[i] for row in rows], pa.float64()) for i in range(len(names))], names=names)


def arrow_booleans(rows, names, folder):
    return pa.table(
        [column.cast(pa.int8()).cast(pa.bool_()) for column in arrow_table(rows, names, folder)], names=names
    )


def arrow_batch(rows, names, folder):
    return arrow_table(rows, names, folder).to_batches()[0]


def relation_of(table):
    quoted = (name.replace('"', '""') for name in table.column_names)
    columns = ", ".join(f'n{i} AS "{name}"' for i, name in enumerate(quoted))
    return duckdb.from_arrow(table.rename_columns([f"n{i}" for i in range(table.num_columns)])).project(columns)


def relation(rows, names, folder):
    return relation_of(arrow_table(rows, names, folder))


def relation_of_booleans(rows, names, folder):
    return relation_of(arrow_booleans(rows, names, folder))


def csv_file(rows, names, folder):
    (folder / "table.csv").write_text(csv_text(rows, names), newline="")
    return folder / "table.csv"


def tsv_file(rows, names, folder):
    (folder / "table.tsv").write_text(csv_text(rows, names, delimiter="\t", lineterminator="\n"), newline="")
    return str(folder / "table.tsv")


def csv_gz_file(rows, names, folder):
    (folder / "table.csv.gz").write_bytes(gzip.compress(csv_text(rows, names).encode()))
    return folder / "table.csv.gz"


def csv_zst_file(rows, names, folder):
    plain = csv_text(rows, names).encode()
    (folder / "table.csv.zst").write_bytes(zst(plain))
    return folder / "table.csv.zst"


def workbook(path, rows):
    """A workbook with one sheet, written by hand: numbers as they are, text inline."""

    def cell(value):
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return "<c/>" if value is None else f"<c><v>{value}</v></c>"

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main, office = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://schemas.openxmlformats.org"
    links = f"{office}/package/2006/relationships"
    kinds = f"{office}/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{links}"><Relationship Id="r1" Type="{kinds}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kinds}"><sheets>'
        '<sheet name="one" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{links}"><Relationship Id="r1" Type="{kinds}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def zst(plain):
    return pa.Codec("zstd").compress(plain, asbytes=True)


def json_lines_file(rows, names, folder):
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    (folder / "table.jsonl").write_text("\n".join(lines))
    return folder / "table.jsonl"


def parquet_file(rows, names, folder):
    pa.parquet.write_table(arrow_table(rows, names, folder), folder / "table.parquet")
    return folder / "table.parquet"


def parquet_of_booleans(rows, names, folder):
    pa.parquet.write_table(arrow_booleans(rows, names, folder), folder / "table.parquet")
    return folder / "table.parquet"


def npy_file(rows, names, folder):
    np.save(folder / "table.npy", floats(rows))
    return named_beside(folder / "table.npy", names)


def npz_file(rows, names, folder):
    scipy.sparse.save_npz(folder / "table.npz", scipy.sparse.csr_array(floats(rows)))
    return named_beside(folder / "table.npz", names)


def mtx_file(rows, names, folder):
    scipy.io.mmwrite(folder / "table.mtx", scipy.sparse.coo_array(floats(rows)))
    return named_beside(folder / "table.mtx", names)


WITH_COLUMNS = [  # and any of these may hold weights instead
    pandas_frame,
    pandas_objects,
    polars_frame,
    polars_lazy,
    arrow_table,
    arrow_batch,
    relation,
    csv_file,
    json_lines_file,
    parquet_file,
]
OTHER_CSV = [tsv_file, csv_gz_file, csv_zst_file]
WITH_NAMES_BESIDE = [npy_file, npz_file, mtx_file]
FOR_0_AND_1_ONLY = [
    pandas_nullable_integers,
    pandas_nullable_booleans,
    polars_booleans,
    polars_lazy_booleans,
    arrow_booleans,
    relation_of_booleans,
    parquet_of_booleans,
]


def lists(rows, names, folder):
    return rows


def float_array(rows, names, folder):
    return floats(rows)


def column_order_array(rows, names, folder):
    return np.asfortranarray(floats(rows))


def object_array(rows, names, folder):
    return np.array(rows, dtype=object)


def masked_array(rows, names, folder):
    missing = [[cell is None for cell in row] for row in rows]
    return np.ma.masked_array([[cell or 0 for cell in row] for row in rows], missing)


def sparse(kind):
    def container(rows, names, folder):
        return kind(floats(rows))

    container.__name__ = kind.__name__
    return container


WITHOUT_NAMES = [lists, float_array, column_order_array, object_array, masked_array]
WITHOUT_NAMES += [
    sparse(kind)
    for kind in (
        scipy.sparse.csr_array,
        scipy.sparse.csc_array,
        scipy.sparse.coo_matrix,
        scipy.sparse.lil_array,
        scipy.sparse.dok_array,
        scipy.sparse.bsr_matrix,
        scipy.sparse.dia_array,
    )
]
FOR_NUMBERS = WITH_COLUMNS + WITH_NAMES_BESIDE + WITHOUT_NAMES
ALL = FOR_NUMBERS + OTHER_CSV + FOR_0_AND_1_ONLY
