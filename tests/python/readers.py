"""What pyarrow, Polars and DuckDB find in a recording, as one JSON object.

usage: readers.py FILE
For each of the three: its version, rows, whether the file was cut within a batch, the calls of each function, and for each
type of row their number. A file that was cut is read by pyarrow batch by batch; what it could read goes to the others.
"""
import json
import sys

import duckdb
import polars
import pyarrow
import pyarrow.compute
import pyarrow.ipc

CALLS = """
    SELECT name, count(*) AS calls, CAST(coalesce(sum(dur_ns), 0) AS BIGINT) AS ns
    FROM recording WHERE type = 'userspace' GROUP BY name ORDER BY name
"""
TYPES = "SELECT CAST(type AS VARCHAR), CAST(sum(count) AS BIGINT) FROM recording GROUP BY 1"


def whole_batches(path: str) -> tuple[pyarrow.Table, bool]:
    """As docs/trace-format.md says a cut file is read."""
    batches = []
    reader = pyarrow.ipc.open_stream(path)
    try:
        for batch in reader:
            batches.append(batch)
    except (pyarrow.ArrowInvalid, OSError):
        return pyarrow.Table.from_batches(batches, reader.schema), True
    return pyarrow.Table.from_batches(batches, reader.schema), False


def by_pyarrow(table: pyarrow.Table) -> dict:
    calls = table.filter(pyarrow.compute.equal(table["type"].cast("string"), "userspace"))
    plain = pyarrow.table({"name": calls["name"].cast("string"), "ns": calls["dur_ns"]})
    sums = plain.group_by("name").aggregate([("name", "count"), ("ns", "sum")]).to_pylist()
    counts = pyarrow.table({"type": table["type"].cast("string"), "count": table["count"]})
    types = counts.group_by("type").aggregate([("count", "sum")]).to_pylist()
    return {
        "version": pyarrow.__version__,
        "rows": table.num_rows,
        "calls": {row["name"]: [row["name_count"], row["ns_sum"] or 0] for row in sums},
        "types": {row["type"]: row["count_sum"] for row in types},
    }


def by_polars(frame: polars.DataFrame) -> dict:
    column = polars.col
    calls = frame.filter(column("type").cast(polars.String) == "userspace").group_by(column("name").cast(polars.String))
    sums = calls.agg(polars.len().alias("calls"), column("dur_ns").sum().alias("ns"))
    types = frame.group_by(column("type").cast(polars.String)).agg(column("count").sum())
    return {
        "version": polars.__version__,
        "rows": frame.height,
        "calls": {row["name"]: [row["calls"], row["ns"]] for row in sums.to_dicts()},
        "types": {row["type"]: row["count"] for row in types.to_dicts()},
    }


def by_duckdb(recording: pyarrow.Table) -> dict:
    connection = duckdb.connect()
    connection.register("recording", recording)
    return {
        "version": duckdb.__version__,
        "rows": connection.sql("SELECT count(*) FROM recording").fetchall()[0][0],
        "calls": {name: [calls, ns] for name, calls, ns in connection.sql(CALLS).fetchall()},
        "types": dict(connection.sql(TYPES).fetchall()),
    }


def main() -> None:
    path = sys.argv[1]
    table, cut = whole_batches(path)
    frame = polars.from_arrow(table) if cut else polars.read_ipc_stream(path)
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    summary = table.filter(pyarrow.compute.equal(table["type"].cast("string"), "summary"))["args"].to_pylist()
    found = {
        "cut": cut,
        "metadata": metadata,
        "columns": table.schema.names,
        "summary": summary[0] if summary else None,
        "pyarrow": by_pyarrow(table),
        "polars": by_polars(frame),
        "duckdb": by_duckdb(table),
    }
    json.dump(found, sys.stdout)


main()
