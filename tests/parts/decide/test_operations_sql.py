"""SQL on views reads the views and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_operations_tasks import in_process

from healkit import Healkit
from healkit.errors import ArgumentsInvalid
from healkit.parts.decide.operations import install

SALES = pd.DataFrame({"city": ["Bern", "Basel", None], "sold": [3, 1, 4]})


def sql(query: str, **frames: pd.DataFrame) -> pd.DataFrame:
    return in_process("view_sql")(query, **({"sales": SALES} | frames))


#: Each alone must be refused, in this process too, where no sandbox helps.
ATTACKS = [
    "COPY sales TO '{folder}/out.csv'", "COPY (SELECT 1) TO '{folder}/out.parquet' (FORMAT parquet)", "COPY sales FROM '/etc/passwd'",
    "EXPORT DATABASE '{folder}/out'", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_csv_auto('/etc/passwd', sep=':')",
    "SELECT * FROM '/etc/passwd'", "SELECT * FROM 'secret.csv'", "FROM read_text('{folder}/secret.csv')", "FROM read_blob('/proc/self/environ')",
    "FROM read_json_auto('{folder}/secret.csv')", "FROM read_parquet('https://example.com/x.parquet')", "SELECT * FROM parquet_scan('s3://bucket/x')",
    "SELECT * FROM sniff_csv('/etc/passwd')", "SELECT * FROM glob('/etc/*')", "SELECT * FROM glob('{folder}/*')", "SELECT getenv('PATH')",
    "ATTACH '{folder}/other.db' AS other", "ATTACH ':memory:' AS other", "ATTACH 'x.sqlite' (TYPE sqlite)", "INSTALL httpfs", "LOAD httpfs",
    "LOAD '{folder}/x.duckdb_extension'", "FORCE INSTALL spatial FROM community", "SET enable_external_access = true",
    "SET lock_configuration = false", "SET memory_limit = '100GB'", "RESET threads", "PRAGMA enable_external_access", "PRAGMA threads=64",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')", "CREATE TABLE t AS SELECT 1", "CREATE VIEW v AS FROM read_text('/etc/passwd')",
    "CREATE MACRO f(x) AS x", "INSERT INTO sales VALUES ('x', 1)", "DELETE FROM sales", "DROP VIEW sales", "CALL pragma_version()", "CHECKPOINT",
    "USE memory", "PREPARE p AS SELECT 1", "EXPLAIN ANALYZE FROM read_text('/etc/passwd')", "SELECT 1; COPY sales TO '{folder}/out.csv'",
    "SET lock_configuration = false; SELECT 1", "SELECT 1; SELECT 2", "", "-- nothing", "SELECT * FROM SALES_OF_PYTHON",
    "SELECT * FROM query('COPY sales TO ''{folder}/out.csv''')", "SELECT * FROM query_table(['/etc/passwd'])", "SELECT * FROM python_map_function()",
    "SELECT * FROM pandas_scan(1)", "SELECT * FROM arrow_scan(1, 2, 3)", "SELECT * FROM read_duckdb('x.db')",
    "SELECT * FROM arrow_scan_dumb(1::POINTER, 2::POINTER, 3::POINTER)",
    "SELECT write_log('x', disable_logging := false), * FROM read_csv('{folder}/secret.csv')",
]  # fmt: skip
SALES_OF_PYTHON = SALES


def test_sql_reaches_no_files_and_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.csv").write_text("a,b\n1,marker\n")
    import duckdb

    for attack in ATTACKS:
        with pytest.raises((ValueError, duckdb.Error)) as raised:
            pytest.fail(f"{attack}: {sql(attack.format(folder=tmp_path))}")
        assert "marker" not in str(raised.value), attack
        assert "root:" not in str(raised.value), attack
        assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"], attack


def test_settings_are_those_of_the_operation() -> None:
    found = sql("SELECT name, value FROM duckdb_settings()").set_index("name")["value"]
    assert found["enable_external_access"] == found["autoinstall_known_extensions"] == "false"
    assert found["autoload_known_extensions"] == found["allow_community_extensions"] == "false"
    assert found["python_enable_replacements"] == "false"
    assert found["lock_configuration"] == "true"
    assert found["threads"] == "1"
    assert found["memory_limit"] == "488.2 MiB"  # 512 MB
    assert sql("SELECT * FROM duckdb_secrets()").empty
    # DuckDB makes a SELECT of this one; there is nothing but the memory of this query.
    assert set(sql("PRAGMA database_list")["name"]) <= {"memory", "temp", "system"}


@pytest.mark.slow
def test_a_query_that_needs_more_memory_ends_with_an_error() -> None:
    import duckdb

    with pytest.raises(duckdb.Error, match=r"Out of Memory|max_temp_directory_size|memory"):
        sql("SELECT list(range) FROM range(300000000)")


def test_whole_numbers_stay_whole() -> None:
    large = pd.DataFrame({"n": pd.array([2**62, None, 2**62 + 1], dtype="Int64"), "small": [1, 2, 3]})
    found = sql("SELECT n, small, small > 1 AS more FROM large", large=large)
    assert found["n"].tolist()[::2] == [2**62, 2**62 + 1]
    assert [str(dtype) for dtype in found.dtypes] == ["Int64", "int64", "bool"]
    summed = sql("SELECT sum(small) AS s, count(*) AS c, max(n) AS m FROM large", large=large)
    assert summed.loc[0].tolist() == [6, 3, 2**62 + 1]
    assert {str(dtype) for dtype in summed.dtypes} == {"int64"}
    beyond = sql("SELECT sum(n) AS s FROM large", large=large)
    assert int(beyond["s"][0]) == 2**63 + 1
    unsure = sql("SELECT CASE WHEN small > 1 THEN small > 2 END AS yes FROM large", large=large)
    assert str(unsure["yes"].dtype) == "boolean"


def test_columns_come_back_as_they_went() -> None:
    import datetime as dt

    frame = pd.DataFrame(
        {
            "text": ["a", None, "ü"], "number": [1.5, np.nan, np.inf], "truth": [True, False, True],
            "day": [dt.date(2024, 1, 1), None, dt.date(2024, 2, 29)],
            "moment": pd.to_datetime(["2024-01-01 10:00", None, "2024-03-31 02:30"]),
            "span": pd.to_timedelta([1, None, 3], unit="s"),
            "category": pd.Categorical(["lo", None, "hi"]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
        }
    )  # fmt: skip
    found = sql("SELECT * FROM f", f=frame)
    for name in ("text", "truth", "day", "whole"):
        pd.testing.assert_series_equal(found[name], frame[name])
    assert found["category"].astype(object).tolist()[::2] == ["lo", "hi"]
    pd.testing.assert_series_equal(
        found["moment"].astype("datetime64[ns]"), frame["moment"].astype("datetime64[ns]")
    )
    assert found["number"][2] == np.inf
    zoned = pd.DataFrame({"moment": pd.to_datetime(["2024-07-01 12:00"]).tz_localize("Europe/Zurich")})
    there = sql("SELECT moment FROM z", z=zoned)["moment"]
    assert there[0] == zoned["moment"][0]
    assert str(there.dt.tz) == "UTC"
    assert sql("SELECT * FROM e", e=frame.iloc[:0]).shape == (0, 8)


def test_hours_are_those_of_utc_wherever_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    noon = pd.DataFrame({"moment": pd.to_datetime(["2024-07-01 12:00"]).tz_localize("Europe/Zurich")})
    found = sql("SELECT hour(moment) AS hour, moment::VARCHAR AS text FROM n", n=noon)
    assert found.values.tolist() == [[10, "2024-07-01 10:00:00+00"]]


def test_what_sql_cannot_read_is_said_without_a_cell() -> None:
    import duckdb

    mixed = pd.DataFrame({"odd": [1, "Smith", object()]})
    with pytest.raises(
        ValueError, match="cannot read the column 'odd' of m: it holds mixed values"
    ) as raised:
        sql("SELECT 1", m=mixed)
    assert "Smith" not in str(raised.value)
    with pytest.raises(ValueError, match="Two columns of d are called 'A' in SQL"):
        sql("SELECT 1", d=pd.DataFrame({"A": [1], "a": [2]}))
    with pytest.raises(ValueError, match="its type is period"):
        sql("SELECT 1", p=pd.DataFrame({"p": pd.period_range("2024-01", periods=1, freq="M")}))
    with pytest.raises(ValueError, match="Two columns of the result would be called 'city'"):
        sql("SELECT city, city FROM sales")
    with pytest.raises(ValueError, match="n has no columns"):
        sql("SELECT 1", n=pd.DataFrame())
    with pytest.raises(duckdb.Error, match=r'column "solt" not found'):
        sql("SELECT solt FROM sales")


def test_without_duckdb_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"pip install 'healkit\[sql\]'"):
        sql("SELECT 1")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("DECIDE-2")
def test_sql_runs_in_restricted_workers_and_reaches_nothing_there(healkit: Healkit) -> None:
    install(healkit)
    done = healkit.execute(
        "view_sql", arguments={"query": "SELECT sum(sold) AS s FROM sales", "sales": SALES}
    )
    assert done.failure is None
    assert done.value["s"].tolist() == [8]
    moment = pd.DataFrame({"moment": pd.to_datetime(["2024-07-01 12:00"]).tz_localize("Europe/Zurich")})
    query = "SELECT hour(moment) AS hour FROM m"
    zoned = healkit.execute("view_sql", arguments={"query": query, "m": moment})
    assert zoned.failure is None, zoned.failure
    assert zoned.value["hour"].tolist() == [10]
    for attack in ("SELECT * FROM read_text('/etc/passwd')", "COPY sales TO '/tmp/out.csv'"):
        tried = healkit.execute("view_sql", arguments={"query": attack, "sales": SALES})
        assert tried.failure is not None
        assert "root:" not in tried.failure.traceback
    with pytest.raises(ArgumentsInvalid, match="must be a DataFrame"):
        healkit.execute("view_sql", arguments={"query": "SELECT 1", "sales": [1, 2]})
