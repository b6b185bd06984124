"""Compares what example hook files count with what a program asked for.

usage: verify_hooks.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-hooks.sh.
"""
import sys

from harness import GPUSCOPE, HERE, attempt, check, info, last_json, run, sample, write_figures

HOOKS = HERE.parent.parent / "examples" / "hooks"


def gpus() -> int:
    status, out, _ = run(["nvidia-smi", "-L"])
    return len(out.splitlines()) if status == 0 else 0


def traced(hooks: str, program: list, log: str):
    """(stdout, summary) of a run under a hook file; a second one is a sample of the text that is printed."""
    command = [GPUSCOPE, "run", "-q", "--hooks", HOOKS / hooks]
    status, out, err = run([*command, "--summary", "json", "--", *program], 90, log=log)
    check(f"{hooks}: exit status", 0, status)
    _, _, text = run([*command, "--", *program], 90, log=f"{log}-text")
    sample(f"{hooks} with {len(program)} words: what is printed", text, 120)
    return out, last_json(err)


def collectives() -> None:
    number = gpus()
    info("GPUs", number)
    program = ["torchrun", "--nproc-per-node", number, HERE / "collectives.py"]
    out, summary = traced("nccl.toml", program, "nccl")
    asked = last_json(out)
    for name, calls in asked.items():
        found = [function["calls"] for function in summary["functions"] if function["name"] == name]
        check(f"{name}: calls of all ranks", calls, sum(found))
    info("sums", [one for one in summary["aggregates"] if "nccl" in str(one)][:4])


def driver_time() -> None:
    _, summary = traced("driver-time.toml", ["python3", HERE / "train.py", 20], "driver-time")
    info("driver-time: functions", [f["name"] for f in summary["functions"] if f["layer"] == "linux"])
    info("driver-time: what was not seen", summary["unseen"])


attempt("collectives", collectives)
attempt("driver-time", driver_time)
sys.exit(0 if write_figures("hooks-figures.txt", "hooks-samples.txt") else 1)
