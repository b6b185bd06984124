"""What the GPU executes, asked of a program that runs already (gpuscope preload): each step is told, whenever one comes.

usage: late.py GPUSCOPE [SECONDS]      as an ordinary user, who carries no rights
       late.py --work eager|graph SECONDS   the program that is asked
"""
import json
import os
import subprocess
import sys
import time

KERNELS = 8  # of a step


def work(kind: str, seconds: float) -> None:
    import torch

    torch.manual_seed(1)
    data = torch.rand(512, 512, device="cuda") / 512
    result = torch.zeros_like(data)

    def step() -> None:
        result.copy_(data)
        for _ in range(KERNELS - 1):
            torch.sin(result, out=result)

    step()
    torch.cuda.synchronize()
    graph = None
    if kind == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    print("READY", flush=True)
    start = last = time.perf_counter()
    steps = before = 0
    while last - start < seconds:
        graph.replay() if graph else step()
        torch.cuda.synchronize()
        time.sleep(0.001)
        steps += 1
        now = time.perf_counter()
        if now - last >= 0.5:
            print(f"{now - start:.1f} s: {(now - last) / (steps - before) * 1e3:.3f} ms a step", flush=True)
            last, before = now, steps
    print("STEPS", steps, "RESULT", result.sum().item().hex(), flush=True)


def ask(gpuscope: str, pid: int, options: list) -> dict:
    """A summary of three seconds."""
    path = f"/tmp/late-{os.getpid()}.json"
    command = [gpuscope, "trace", "-p", str(pid), "-q", "--duration", "3s", "--summary", "json", *options]
    with open(path, "w") as out:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=60, check=False).returncode
    text = open(path).read()
    start = text.find("{")
    if status or start < 0:
        sys.exit(f"{command}: status {status}: {text[-2000:]}")
    return json.JSONDecoder().raw_decode(text[start:])[0]


def report(summary: dict) -> str:
    gpu = summary.get("gpu") or {}
    devices = gpu.get("devices") or [{}]
    kernels = sum(kernel["runs"] for kernel in devices[0].get("by_kernel", []))
    launches = sum(kernel["launches"] for kernel in summary.get("kernels", []))
    graphs = sum(f["calls"] for f in summary.get("functions", []) if "GraphLaunch" in f["name"])
    share = {key: devices[0].get(key) for key in ("busy_us", "idle_us", "certainty")}
    return f"kernels executed {kernels}, launched {launches} and {graphs} graphs; {share}; matching {gpu.get('matching')}; {gpu.get('coverage')}"


def main() -> None:
    gpuscope, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "25"
    for kind in ("eager", "graph"):
        command = [gpuscope, "preload", "--", sys.executable, os.path.abspath(__file__), "--work", kind, seconds]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while program.stdout.readline() not in ("READY\n", ""):
            pass
        print(f"== {kind}", flush=True)
        for options in (["--gpu", "on"], ["--gpu", "on"], []):
            time.sleep(2)
            print(report(ask(gpuscope, program.pid, options)), flush=True)
        print(program.communicate()[0], flush=True)
        if program.returncode:
            sys.exit(f"the program ended with {program.returncode}")


if __name__ == "__main__":
    work(sys.argv[2], float(sys.argv[3])) if sys.argv[1] == "--work" else main()
