"""Whether planted reasons for which a GPU waits are named, run after run.

usage: verify_causes.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-causes.sh.
ROUNDS of each case of planted.py (20); CASES: some of them. Figures go to causes-figures.txt in OUT.
"""
import collections
import json
import os
import sys

from harness import GPUSCOPE, HERE, Failed, attempt, info, last_json, run, sample, say, write_figures

ROUNDS = int(os.environ.get("ROUNDS", "20"))
# rules that name the defect, and causes of idle time that do
EXPECTED = {
    "loader": ({"host-bound", "idle-gaps"}, {"blocked"}),
    "item": ({"hidden-sync"}, {"sync-return", "host-code"}),
    "tiny": ({"launch-storm", "launch-bound"}, {"launch", "host-code"}),
    "pageable": ({"pageable-copy", "sync-copy"}, {"sync-return", "launch"}),
    "alloc": ({"alloc-churn"}, {"memory"}),
    "compile": ({"late-jit"}, {"code"}),
    "throttled": ({"host-contention"}, {"no-processor"}),
    "sound": (set(), set()),
}


def once(case: str, number: int) -> tuple[bool, dict]:
    command = [GPUSCOPE, "run", "-q", "--engine", "inside", "--gpu", "on", "--summary", "json", "--", sys.executable, HERE / "planted.py", case]
    status, _, err = run(command, 60, log=f"{case}-{number}")
    if status:
        raise Failed(f"{case}: status {status}: {err[-300:]}")
    summary = last_json(err)
    rules = [finding["rule"] for finding in summary.get("findings") or []]
    wanted = EXPECTED[case][0]
    return (rules[:1] and rules[0] in wanted) if wanted else not rules, summary


def part_case(case: str) -> None:
    """Ends early once more have failed than may."""
    named, tried, known, first, causes = 0, 0, [], collections.Counter(), collections.Counter()
    others = collections.Counter()
    for number in range(ROUNDS):
        good, summary = once(case, number)
        named, tried = named + bool(good), tried + 1
        findings = summary.get("findings") or []
        first[findings[0]["rule"] if findings else "none"] += 1
        others.update(finding["rule"] for finding in findings[1:])
        for device in (summary.get("gpu") or {}).get("devices", []):
            idle = {row["cause"]: row["idle_us"] for row in device["idle_causes"]}
            causes.update(idle)
            total = sum(idle.values())
            known.append(1 - idle.get("other", 0) / total if total else 1.0)
        if number == 0 or not good:
            sample(f"findings of {case}", json.dumps(findings, indent=1), 60)
        if tried - named > ROUNDS // 20:
            break
    total = sum(causes.values()) or 1
    verdict = "PASS" if tried - named <= ROUNDS // 20 else "FAIL"
    say(f"{verdict}  {case}: named first in {named} of {tried}; first: {dict(first)}; beside: {dict(others)}")
    info(f"{case}: idle time by cause, %", {cause: round(100 * time / total, 1) for cause, time in causes.most_common(6)})
    info(f"{case}: least share of idle time with a cause", round(min(known), 4) if known else None)


def main() -> None:
    for case in os.environ.get("CASES", " ".join(EXPECTED)).split():
        attempt(case, part_case, case)
    sys.exit(not write_figures("causes-figures.txt", "causes-samples.txt"))


main()
