"""Compares what findings predict with what their cures save, on a real GPU.

usage: verify_findings.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-findings.sh.
findings-figures.txt (PASS, FAIL and INFO lines), recordings and reports of each case and logs go to OUT.
"""
import json
import re
import shutil
import statistics
import sys

from harness import GPUSCOPE, HERE, OUT, WORK, Failed, attempt, check, info, run, sample, say, write_figures

CASES = HERE / "cases.py"
RECORDINGS = OUT / "recordings"
# rule that a defect is found by, steps, and what its call site names
DEFECTS = {
    "churn": ("alloc-churn", 300, "cases.py"),
    "item": ("hidden-sync", 600, "cases.py"),
    "tiny": ("launch-storm", 1000, None),
}
# what a finding says costs at most so much is not less than what is saved, but for the noise of both
NOISE = 0.1
ROUNDS = 3
# what is saved and what was predicted may differ by that much
WITHIN = 0.25


def seconds(out: str) -> float:
    return float(re.search(r"^SECONDS (\S+)$", out, re.M)[1])


def loop(case: str, steps: int, fixed: bool, name: str) -> float:
    status, out, _ = run(program(case, steps, fixed), 90, log=name)
    check(f"{name}: exit status", 0, status)
    return seconds(out)


def program(case: str, steps: int, fixed: bool) -> list:
    return ["python3", CASES, case, steps, *(["--fixed"] if fixed else [])]


def recorded(case: str, steps: int, fixed: bool, *options) -> tuple[dict, float]:
    """(report, seconds of the loop) of a recorded run."""
    name = "".join([case, "-fixed" if fixed else "", *options])
    file = RECORDINGS / f"{name}.arrows"
    command = [GPUSCOPE, "record", *options, "-o", file, "--", *program(case, steps, fixed)]
    status, out, err = run(command, 120, log=f"record-{name}")
    check(f"{name}: exit status of record", 0, status)
    sample(f"record of {name}: the end of what it says", "\n".join(err.splitlines()[-30:]))
    status, text, err = run([GPUSCOPE, "report", file, "--json"], 60, log=f"report-{name}")
    if status != 0:
        raise Failed(f"{name}: report ended with {status}: {err[-300:]}")
    _, shown, _ = run([GPUSCOPE, "report", file], 60)
    (OUT / f"report-{name}.txt").write_text(shown)
    run([GPUSCOPE, "report", file, "--html", OUT / f"report-{name}.html"], 60)
    rows = json.loads(text)
    info(f"{name}: size of the recording", f"{file.stat().st_size} bytes")
    return rows, seconds(out)


def rules(report: dict) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]


def defect(case: str) -> None:
    rule, steps, site = DEFECTS[case]
    before = [loop(case, steps, False, f"{case}-before-{round}") for round in range(ROUNDS)]
    after = [loop(case, steps, True, f"{case}-after-{round}") for round in range(ROUNDS)]
    saved = statistics.median(before) - statistics.median(after)
    info(f"{case}: loop before, after", f"{sorted(before)} {sorted(after)} s")
    report, traced = recorded(case, steps, False)
    info(f"{case}: loop while recorded", f"{traced:.3f} s")
    found = [finding for finding in report["findings"] if finding["rule"] == rule]
    info(f"{case}: findings", rules(report))
    if not check(f"{case}: {rule} is found", 1, len(found)):
        return
    finding = found[0]
    sample(f"finding of {case}", json.dumps(finding, indent=2), 80)
    check(f"{case}: it is the first", rule, rules(report)[0])
    if site:
        check(f"{case}: its call site names the Python line", True, site in json.dumps(finding.get("where")))
    predicted = finding["cost_ns"] / 1e9
    ratio = predicted / saved if saved > 0 else float("inf")
    at_most = rule == "launch-storm"
    good, asked = (ratio >= 1 - NOISE, "at most") if at_most else (abs(ratio - 1) <= WITHIN, f"within {WITHIN:.0%}")
    say(f"{'PASS' if good else 'FAIL'}  {case}: predicted {predicted:.3f} s, saved {saved:.3f} s: {ratio:.2f} ({asked})")
    fixed, _ = recorded(case, steps, True)
    check(f"{case}: {rule} is gone with the cure", False, rule in rules(fixed))
    info(f"{case}: findings with the cure", rules(fixed))
    _, text, _ = run([GPUSCOPE, "diff", RECORDINGS / f"{case}.arrows", RECORDINGS / f"{case}-fixed.arrows"], 60)
    sample(f"diff of {case}", text)


def without_getters() -> None:
    """What a tracer costs that leaves out calls that only ask, where the host is all that limits."""
    rule, steps, _ = DEFECTS["tiny"]
    plain = loop("tiny", steps, False, "tiny-plain")
    report, traced = recorded("tiny", steps, False, "--no-getters")
    info("tiny --no-getters: loop plain, recorded", f"{plain:.3f} {traced:.3f} s")
    found = {finding["rule"]: finding["cost_ns"] / 1e9 for finding in report["findings"]}
    check("tiny --no-getters: findings", [rule], list(found))
    info("tiny --no-getters: predicted", f"{found.get(rule)} s")
    status, out, _ = transformer("transformer--no-getters", "--no-getters")
    check("transformer --no-getters: exit status of record", 0, status)
    info("transformer --no-getters: loop recorded", f"{seconds(out)} s")


def transformer(name: str, *options):
    """(exit status, stdout, recording) of a recorded training in mixed precision."""
    file = RECORDINGS / f"{name}.arrows"
    command = [GPUSCOPE, "record", *options, "-o", file, "--", "python3", HERE / "train.py", 300]
    status, out, err = run(command, 120, log=name)
    sample(f"record of {name}: the end of what it says", "\n".join(err.splitlines()[-12:]))
    return status, out, file


def healthy() -> None:
    report, _ = recorded("healthy", 300, False)
    check("healthy: findings", [], rules(report))
    for finding in report["findings"]:
        sample("finding of the healthy loop", json.dumps(finding, indent=2), 80)


def real_trace() -> None:
    """Size of a row, of a training step in mixed precision."""
    plain = [run(["python3", HERE / "train.py", 300], 90)[1] for _ in range(2)]
    status, out, file = transformer("transformer")
    check("transformer: exit status of record", 0, status)
    info("transformer: loop plain, recorded", f"{[seconds(one) for one in plain]} {seconds(out)} s")
    _, text, _ = run([GPUSCOPE, "report", file, "--json"], 60)
    report = json.loads(text)
    rows = report["rows"]
    check("transformer: calls lost", 0, report["lost"]["calls"])
    size = file.stat().st_size / rows
    say(f"{'PASS' if size <= 16 else 'FAIL'}  transformer: {size:.1f} bytes a row of {rows} (at most 16)")
    info("transformer: findings", rules(report))
    for target in ("perfetto", "chrome"):
        status, _, err = run([GPUSCOPE, "export", file, "--to", target, "-o", WORK / f"transformer.{target}"], 60)
        check(f"transformer: exit status of export to {target}", 0, status)


RECORDINGS.mkdir(exist_ok=True)
attempt("healthy", healthy)
attempt("without getters", without_getters)
attempt("transformer", real_trace)
for name in DEFECTS:
    attempt(name, defect, name)
shutil.make_archive(str(OUT / "findings-logs"), "gztar", WORK / "logs")
sys.exit(0 if write_figures("findings-figures.txt", "findings-samples.txt") else 1)
