"""A program that profiles itself (torch.profiler, jax.profiler): what its profiler tells it, alone and under gpuscope.

usage: profiled.py GPUSCOPE [WORK…]      (triton, which is locked out, by its name alone) alone, under `run` of both engines, and asked late (gpuscope preload); exit 1 if any differs
       profiled.py --work torch|sleep|jax|triton   the program: steps, the same profiled, steps, profiled again
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

STEPS = 50


def of_trace(path: str) -> str:
    """What a trace of PyTorch's tells: kernels, and of those with a call how many begin before it, or seconds later."""
    events = json.load(open(path))["traceEvents"]
    launched = {e["args"]["correlation"]: e["ts"] for e in events if e.get("cat") == "cuda_runtime"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    delays = [e["ts"] - launched[e["args"]["correlation"]] for e in kernels if e["args"]["correlation"] in launched]
    odd = sum(1 for delay in delays if not -50 < delay < 10e6)
    print(f"delays of {min(delays, default=0):.0f} to {max(delays, default=0):.0f} us", file=sys.stderr)
    return f"{len(kernels)} kernels, {len(delays)} of known calls, {odd} of those at an odd time"


def torch_work(asleep: bool) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    data = torch.rand(256, 256, device="cuda")

    def steps() -> None:
        for _ in range(STEPS):
            torch.sin(data @ data)
        torch.cuda.synchronize()

    steps()
    print("READY", flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0")))
    for turn in range(2):
        steps()
        if asleep and turn == 0:
            torch.cuda._sleep(1_000_000_000)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as told:
            steps()
        path = tempfile.mktemp(suffix=".json")
        told.export_chrome_trace(path)
        print("PROFILED", of_trace(path), flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0")))


def jax_work() -> None:
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: jnp.sin(x @ x))
    data = jnp.ones((256, 256))
    step(data).block_until_ready()
    print("READY", flush=True)
    for _ in range(2):
        folder = tempfile.mkdtemp()
        with jax.profiler.trace(folder):
            result = data
            for _ in range(STEPS):
                result = step(data)
            result.block_until_ready()
        planes = jax.profiler.ProfileData.from_file(glob.glob(folder + "/**/*.xplane.pb", recursive=True)[0]).planes
        number = sum(len(list(line.events)) for plane in planes if "GPU" in plane.name for line in plane.lines)
        print("PROFILED", number, "events of GPUs", flush=True)


def counted(node: dict) -> int:
    own = int(node.get("metrics", {}).get("count", 0))
    return own + sum(counted(child) for child in node.get("children", []))


def triton_work() -> None:
    import torch
    import triton.profiler as proton

    data = torch.rand(256, 256, device="cuda")
    torch.sin(data @ data)
    torch.cuda.synchronize()
    print("READY", flush=True)
    for _ in range(2):
        path = tempfile.mktemp()
        session = proton.start(path, backend="cupti")
        for _ in range(STEPS):
            torch.sin(data @ data)
        torch.cuda.synchronize()
        proton.finalize(session)
        tree = json.load(open(path + ".hatchet"))
        print("PROFILED", sum(counted(node) for node in tree if "frame" in node), "kernels", flush=True)


def output(command: list, **more) -> tuple:
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False, **more)
    told = [line for line in ran.stdout.splitlines() if line.startswith("PROFILED")]
    if ran.returncode or len(told) != 2:
        print(f"{command}: status {ran.returncode}\n{ran.stderr[-1500:]}", flush=True)
    return told, ran.stderr


def about_gpu(stderr: str) -> str:
    wanted = ("busy ", "measured ", "asked CUPTI", "not seen", "missing of", "kernels", "gets it as soon", "sees no GPU")
    lines = [line for line in stderr.splitlines() if any(word in line for word in wanted) and "launches of" not in line]
    return "\n".join("      " + line.strip()[:180] for line in lines[:8])


def late(gpuscope: str, work: list) -> tuple:
    """Asked for six seconds, in which the program begins to profile itself, and once more."""
    environment = {**os.environ, "PAUSE": "4"}
    program = subprocess.Popen(
        [gpuscope, "preload", "--", *work], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert program.stdout
    while "READY" not in program.stdout.readline():
        pass
    ask = [gpuscope, "trace", "-p", str(program.pid), "-q", "--gpu", "on", "--engine", "inside", "--duration"]
    first = subprocess.run([*ask, "6s"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    second = subprocess.run([*ask, "1s"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    told = [line for line in program.communicate(timeout=60)[0].splitlines() if line.startswith("PROFILED")]
    return told, first.stderr + "\n--- once more\n" + second.stderr


def main(gpuscope: str) -> int:
    differ = 0
    for kind in sys.argv[2:] or ("torch", "sleep", "jax"):
        work = [sys.executable, os.path.abspath(__file__), "--work", kind]
        alone, words = output(work)
        print(f"{kind}: alone {alone} {words.strip().splitlines()[-1:] if kind != 'jax' else ''}", flush=True)
        runs = [(engine, lambda e=engine: output([gpuscope, "run", "-q", "--engine", e, "--", *work])) for engine in ("inside", "kernel")]
        if kind == "torch":
            runs.append(("late", lambda: late(gpuscope, work)))
        for name, run in runs:
            told, stderr = run()
            same = told == alone
            differ += not same
            print(f"   {name}: {'the same' if same else told}\n{about_gpu(stderr)}", flush=True)
    return min(differ, 1)


WORK = {"torch": lambda: torch_work(False), "sleep": lambda: torch_work(True), "jax": jax_work, "triton": triton_work}

if __name__ == "__main__":
    if sys.argv[1] == "--work":
        WORK[sys.argv[2]]()
    else:
        sys.exit(main(sys.argv[1]))
