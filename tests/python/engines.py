"""What ClickHouse (chdb) and Spark (pyspark) answer to an example of docs/export.md.

usage: engines.py clickhouse QUERY      prints each row as a JSON array
       engines.py spark CODE            runs CODE, which has `spark`; then prints the columns of `traces` as a JSON object
"""
import json
import sys


def clickhouse(query: str) -> None:
    import chdb

    print(chdb.query(query, "JSONCompactEachRow"), end="")


def spark(code: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    names = {"spark": builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()}
    exec(code, names)
    print(json.dumps(dict(names["traces"].dtypes)))


{"clickhouse": clickhouse, "spark": spark}[sys.argv[1]](sys.argv[2])
