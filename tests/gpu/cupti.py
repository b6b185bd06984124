"""What the GPU really did in one process, by CUPTI: reads the lines of cupti_records.c."""
import json
from dataclasses import dataclass
from pathlib import Path

# CUpti_ActivityMemcpyKind; an array lies on the device
DIRECTIONS = {1: "HtoD", 2: "DtoH", 3: "HtoD", 4: "DtoH", 5: "DtoD", 6: "DtoD", 7: "DtoD", 8: "DtoD", 9: "HtoH",
              10: "PtoP"}
# CUpti_ActivityMemoryKind; the others lie on the device
HOSTS = {1: "pageable", 2: "pinned"}
MANAGED = {5, 7}


@dataclass
class Copies:
    count: int = 0
    bytes: int = 0

    def add(self, count: int, size: int) -> None:
        self.count += count
        self.bytes += size


class Records:
    """All records of one process. Times are CLOCK_MONOTONIC ns."""

    def __init__(self, path: Path):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.pid = rows[0]["pid"]
        self.end = next((row for row in rows if row["kind"] == "end"), None)
        self.failures = [row for row in rows if row["kind"] == "failure"]
        self.clocks = [row for row in rows if row["kind"] == "clock"]
        self.work = [row for row in rows if "start" in row]

    def complete(self) -> bool:
        """Whether CUPTI wrote its last line and dropped nothing."""
        return self.end is not None and not self.end["dropped"] and not self.failures

    def clock_error_ns(self) -> int:
        """How far CUPTI's clock and CLOCK_MONOTONIC may be apart, by the brackets."""
        return max(max(row["cupti"] - row["before"], row["after"] - row["cupti"]) for row in self.clocks)

    def between(self, first_ns: int, last_ns: int) -> "Records":
        """Only what began in that time."""
        part = object.__new__(Records)
        part.__dict__.update(self.__dict__)
        part.work = [row for row in self.work if first_ns <= row["start"] <= last_ns]
        return part

    def kernels(self, in_graphs: bool) -> dict[str, int]:
        """Runs by mangled name: those of graph launches, or the others."""
        runs: dict[str, int] = {}
        for row in self.work:
            if row["kind"] == "kernel" and bool(row["graph"]) == in_graphs:
                runs[row["name"]] = runs.get(row["name"], 0) + 1
        return runs

    def copies(self) -> dict[tuple[str, str | None], Copies]:
        """By direction and memory of the host's end, without those of graph launches.

        A batch is one record: what it says it holds is counted."""
        sums: dict[tuple[str, str | None], Copies] = {}
        for row in self.work:
            if row["kind"] == "copy" and not row["graph"]:
                sums.setdefault(ends_of(row), Copies()).add(row["count"], row["bytes"])
        return sums

    def busy(self) -> list[tuple[int, int]]:
        """When the GPU worked for the process: disjoint, ascending. Copies within the host are none of its work."""
        spans = sorted((row["start"], row["end"]) for row in self.work if row.get("copy_kind") != 9)
        merged: list[tuple[int, int]] = []
        for start, end in spans:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        return merged

    def busy_ns(self) -> int:
        return sum(end - start for start, end in self.busy())

    def idle_within(self, first_ns: int, last_ns: int) -> int:
        """Time of that window in which no work ran."""
        return last_ns - first_ns - sum(max(0, min(end, last_ns) - max(start, first_ns)) for start, end in self.busy())


def ends_of(row: dict) -> tuple[str, str | None]:
    """Direction of a copy and the memory at the host's end; managed memory lies on no side for sure."""
    if MANAGED & {row["src"], row["dst"]}:
        return "managed", None
    direction = DIRECTIONS.get(row["copy_kind"], "?")
    if direction in ("HtoD", "DtoH"):
        return direction, HOSTS.get(row["src"] if direction == "HtoD" else row["dst"], "?")
    return direction, None
