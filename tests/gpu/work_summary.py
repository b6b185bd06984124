"""Reads what `gpuscope --summary json` says of work. The only place that knows how it is written."""
from cupti import Copies

ON_DEVICE = ("DtoD", "PtoP")


class Work:
    """One process in a summary."""

    def __init__(self, summary: dict, pid: int | None = None):
        entries = summary.get("work") or []
        self.row = next((row for row in entries if row["pid"] == pid), None)
        if self.row is None and entries:
            self.row = max(entries, key=lambda row: sum(s["submissions"] for s in row["streams"]))
        self.summary = summary

    def known(self) -> bool:
        return self.row is not None

    def copies(self) -> dict[tuple[str, str | None], Copies]:
        """By direction and memory of the host's end.

        CUPTI calls a peer copy within one GPU DtoD; here it is PtoP, so both are put together under DtoD."""
        sums: dict[tuple[str, str | None], Copies] = {}
        for row in self.row["copies"]:
            sums.setdefault(ends_of(row), Copies()).add(row["count"], row["bytes"])
        return sums

    def copy_rows(self, direction: str, host: str) -> list[dict]:
        """Rows with count, bytes, bytes_per_second (null where none is said) and certainty."""
        return [row for row in self.row["copies"] if (row["direction"], row["host"]) == (direction, host)]

    def window_ns(self) -> float:
        return self.row["gpu"]["window_us"] * 1e3

    def window_bounds(self) -> tuple[int, int] | None:
        """CLOCK_MONOTONIC ns of the window, where the summary says it."""
        gpu = self.row["gpu"]
        if "window_start_ns" not in gpu:
            return None
        return gpu["window_start_ns"], gpu["window_end_ns"]

    def busy_ns(self) -> float:
        return self.row["gpu"]["busy_at_most_us"] * 1e3

    def idle_ns(self) -> float:
        return self.row["gpu"]["idle_at_least_us"] * 1e3

    def certainty(self) -> str:
        return self.row["gpu"]["certainty"]

    def notes(self) -> list[str]:
        return self.row["gpu"]["notes"]

    def elapsed(self) -> tuple[int, float]:
        """(how many, sum in ms) of the times between events that the program has asked for."""
        elapsed = self.row["gpu"]["elapsed"]
        return elapsed["count"], elapsed["total_us"] / 1e3

    def lost(self) -> dict:
        return self.row["lost"]

    def graphs(self) -> dict:
        return self.row["graphs"]


def ends_of(row: dict) -> tuple[str, str | None]:
    """Direction and memory of the host's end, as cupti.py has them."""
    if row["host"] == "managed":
        return "managed", None
    if row["direction"] in ("HtoD", "DtoH"):
        return row["direction"], row["host"]
    return ("DtoD" if row["direction"] in ON_DEVICE else row["direction"]), None


def kernel_runs(summary: dict) -> dict[str, int]:
    """By mangled name: launches that ran, without those that failed or were recorded into a graph."""
    runs: dict[str, int] = {}
    for row in summary["kernels"]:
        ran = row["launches"] - row["failed"] - row.get("captured", 0)
        if row["symbol"] and ran:
            runs[row["symbol"]] = runs.get(row["symbol"], 0) + ran
    return runs


def graph_kernel_runs(summary: dict) -> dict[str, int]:
    """The same for runs by launches of graphs."""
    runs: dict[str, int] = {}
    for row in summary["kernels"]:
        if row["symbol"] and row.get("in_graphs"):
            runs[row["symbol"]] = runs.get(row["symbol"], 0) + row["in_graphs"]
    return runs


def launches(summary: dict) -> int:
    return sum(row["launches"] for row in summary["kernels"])


def unnamed(summary: dict) -> dict[str, int]:
    """Launches of kernels without a name, by reason."""
    reasons: dict[str, int] = {}
    for row in summary["kernels"]:
        if not row["kernel"]:
            reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["launches"]
    return reasons
