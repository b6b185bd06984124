"""Idle time of the steps of a report, beside what the lines of the recording leave between what the GPU executed.

usage: idle_in_steps.py REPORT.json LINES.jsonl    gpuscope report FILE --json; gpuscope export FILE --to jsonl
"""
import json
import sys


def executed(path, pid):
    with open(path) as lines:
        rows = (json.loads(line) for line in lines if '"type":"gpu"' in line)
        for row in rows:
            if row["pid"] == pid and row["name"] != "HtoH":
                begin = round(row["ts"] * 1e9)
                yield begin, begin + round(row["duration_us"] * 1e3)


def idle_ns(ran, since, until):
    idle, reach = 0, None
    for begin, end in sorted(ran):
        if reach is not None and begin > reach:
            idle += max(0, min(begin, until) - max(reach, since))
        reach = end if reach is None else max(reach, end)
    return idle


with open(sys.argv[1]) as report:
    steps = json.load(report)["steps"][0]
since, until = steps["from_ns"], steps["to_ns"]
lines = idle_ns(executed(sys.argv[2], steps["pid"]), since, until)
print(f"{steps['count']} steps in {until - since} ns: idle by the report {steps['idle_ns']} (measured: {steps['idle_measured']}), by the lines {lines}")
