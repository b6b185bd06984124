#!/usr/bin/env python3
"""Compares each value that `gpuscope serve` shows of GPUs with nvidia-smi, idle and under load.

A scrape lies between two readings of nvidia-smi, and what it shows may be a second older than itself. So a value must
lie between the least and the greatest of the three readings around it, widened by the tolerance that its line says.
gpuscope asks for energy every 10 s and for NVLink every 60 s: these are compared over longer times. What nvidia-smi
shows as N/A must be absent.
"""

import collections
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.request
import xml.etree.ElementTree as xml

ROUNDS = 6
ENERGY_EVERY = 10
NVLINK_EVERY = 60
PHASES = ("idle", "load")
MIB = 1 << 20
REASONS = {
    "gpu_idle": "gpu_idle", "applications_clocks_setting": "applications_clocks_setting",
    "sw_power_cap": "sw_power_cap", "hw_slowdown": "hw_slowdown", "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "sw_thermal_slowdown", "hw_thermal_slowdown": "hw_thermal_slowdown",
    "hw_power_brake_slowdown": "hw_power_brake_slowdown", "display_clock_setting": "display_clocks_setting",
}
YES_OR_NO = {"Active": 1.0, "Yes": 1.0, "Not Active": 0.0, "No": 0.0}
# Copies both ways and, with PyTorch, products of matrices, until it is ended.
LOAD = """
import ctypes, time
try:
    import torch
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    host = torch.empty(64 << 20, dtype=torch.uint8).pin_memory()
    device = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    peers = [torch.empty_like(device, device=f"cuda:{i}") for i in range(1, torch.cuda.device_count())]
    print("PyTorch", flush=True)
    while True:
        for _ in range(20):
            b = a @ a
        device.copy_(host); host.copy_(device)
        for peer in peers:
            peer.copy_(device); device.copy_(peer)
        torch.cuda.synchronize()
except ImportError:
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory, size = ctypes.c_void_p(), ctypes.c_uint64(), 256 << 20
    host = ctypes.create_string_buffer(size)
    for code in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
                 cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size))):
        assert code == 0, code
    print("libcuda", flush=True)
    while True:
        for _ in range(200):
            cuda.cuMemsetD32_v2(memory, 7, ctypes.c_size_t(size // 4))
        cuda.cuMemcpyHtoD_v2(memory, host, ctypes.c_size_t(size))
        cuda.cuMemcpyDtoH_v2(host, memory, ctypes.c_size_t(size))
"""

Reading = collections.namedtuple("Reading", "gpus nvlink pmon")


def smi(*args):
    return subprocess.run(["nvidia-smi", *args], capture_output=True, text=True, timeout=60).stdout


def number(text):
    """The number at the beginning; None: N/A."""
    found = re.match(r"\s*(-?[\d.]+)", text or "")
    return float(found[1]) if found else None


def links(index):
    """Payload of all links in bytes, (sent, received); None: no links."""
    said = smi("nvlink", "-gt", "d", "-i", str(index))
    sums = [re.findall(rf"Data {way}:\s*(\d+)\s*KiB", said) for way in ("Tx", "Rx")]
    return [sum(map(int, one)) * 1024 if one else None for one in sums]


def read_smi(out):
    text = smi("-q", "-x")
    (out / "nvml-smi.xml").write_text(text)
    gpus = xml.fromstring(text).findall("gpu")
    pmon = collections.defaultdict(float)
    for line in smi("pmon", "-c", "1", "-s", "u").splitlines():
        words = line.split()
        if words and words[0].isdigit() and len(words) > 3 and words[3].isdigit():
            pmon[int(words[0])] += float(words[3])
    return Reading(gpus, [links(i) for i in range(len(gpus))], pmon)


def scrape(url):
    text = urllib.request.urlopen(url, timeout=30).read().decode()
    series = {}
    for line in text.splitlines():
        found = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$", line)
        if found and not line.startswith("#"):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
            series[(found[1], tuple(sorted(labels.items())))] = float(found[3])
    return text, series


def value(series, name, **wanted):
    """The sum of all series of this name with these labels; None: there is none."""
    found = [v for (n, labels), v in series.items() if n == name and wanted.items() <= dict(labels).items()]
    return sum(found) if found else None


class Verdict:
    def __init__(self, out):
        self.file = (out / "nvml-figures.txt").open("w")
        self.counts = collections.Counter()

    def say(self, kind, text):
        self.counts[kind] += 1
        for to in (self.file, sys.stdout):
            print(f"{kind}  {text}", file=to, flush=True)

    def within(self, name, ours, theirs, tolerance=0.0, share=0.0):
        """`tolerance` in the metric's unit, `share` of the greatest reading."""
        told = [one for one in theirs if one is not None]
        if ours is None or not told:
            alike = ours is None and not told
            return self.say("PASS" if alike else "FAIL", f"{name}: gpuscope {ours}, nvidia-smi {theirs}")
        slack = tolerance + share * max(map(abs, told))
        low, high = min(told) - slack, max(told) + slack
        kind = "PASS" if low <= ours <= high else "FAIL"
        self.say(kind, f"{name}: gpuscope {ours:g}, nvidia-smi {min(told):g} to {max(told):g}, tolerance {slack:g}")


def rows(index):
    """(metric, labels, path or function of nvidia-smi's GPU, factor, tolerance, share)."""
    mhz = 1e6
    for clock, path in (("graphics", "graphics_clock"), ("sm", "sm_clock"), ("memory", "mem_clock"), ("video", "video_clock")):
        yield "gpu_clock_hertz", {"clock": clock}, f"clocks/{path}", mhz, 60 * mhz, 0.05
        yield "gpu_clock_limit_hertz", {"clock": clock}, f"max_clocks/{path}", mhz, 0, 0
    for reason, theirs in REASONS.items():
        path = f"clocks_event_reasons/clocks_event_reason_{theirs}"
        yield "gpu_clocks_limited", {"reason": reason}, path, 1, 0, 0
    for kind, name in (("total", "total"), ("used", "used"), ("free", "free"), ("reserved", "reserved")):
        yield f"gpu_memory_{kind}_bytes", {}, f"fb_memory_usage/{name}", MIB, MIB, 0
    for name, path, slack in (("", "gpu_util", 0.1), ("_memory", "memory_util", 0.1), ("_encoder", "encoder_util", 0),
                              ("_decoder", "decoder_util", 0)):
        yield f"gpu{name}_utilization_ratio", {}, f"utilization/{path}", 0.01, slack, 0
    yield "gpu_temperature_celsius", {"sensor": "gpu"}, "temperature/gpu_temp", 1, 2, 0
    yield "gpu_temperature_celsius", {"sensor": "memory"}, "temperature/memory_temp", 1, 2, 0
    new, old = "gpu_power_readings", "power_readings"
    drawn = f"{new}/average_power_draw|{new}/power_draw|{old}/power_draw"
    yield "gpu_power_watts", {}, drawn, 1, 10, 0.05
    yield "gpu_power_limit_watts", {}, f"{new}/current_power_limit|{new}/power_limit|{old}/enforced_power_limit", 1, 0.01, 0
    yield "gpu_fan_speed_ratio", {}, "fan_speed", 0.01, 0.02, 0
    yield "gpu_performance_state", {}, "performance_state", 1, 0, 0
    yield "gpu_remapped_rows", {"cause": "corrected"}, "remapped_rows/remapped_row_corr", 1, 0, 0
    yield "gpu_remapped_rows", {"cause": "uncorrected"}, "remapped_rows/remapped_row_unc", 1, 0, 0
    yield "gpu_row_remap_pending", {}, "remapped_rows/remapped_row_pending", 1, 0, 0
    yield "gpu_row_remap_failed", {}, "remapped_rows/remapped_row_failure", 1, 0, 0
    yield "gpu_pcie_replays_total", {}, "pci/replay_counter", 1, 0, 0
    yield "gpu_pcie_generation", {}, "pci/pci_gpu_link_info/pcie_gen/current_link_gen", 1, 0, 0
    yield "gpu_pcie_lanes", {}, "pci/pci_gpu_link_info/link_widths/current_link_width", 1, 0, 0


def theirs(gpu, path, factor):
    for one in path.split("|"):
        text = (gpu.findtext(one) or "").strip()
        if text in YES_OR_NO:
            return YES_OR_NO[text]
        told = number(text.lstrip("P"))
        if told is not None:
            return told * factor
    return None


def ecc(gpu, kind):
    """All errors of a kind in the aggregate counts; how they are divided depends on the model."""
    aggregate = gpu.find("ecc_errors/aggregate")
    told = [] if aggregate is None else [
        number(one.text) for one in aggregate if re.search(rf"_{kind}(_|$)", one.tag)
    ]
    told = [one for one in told if one is not None]
    return sum(told) if told else None


def compare(verdict, phase, series, readings):
    for index in range(len(readings[1].gpus)):
        gpus = [reading.gpus[index] for reading in readings]
        uuid = gpus[1].findtext("uuid")
        where = {"uuid": uuid}
        name = f"{phase} GPU {index} "
        info = [dict(labels) for (metric, labels), _ in series.items() if metric == "gpuscope_gpu_info" and dict(labels)["uuid"] == uuid]
        told = (gpus[1].findtext("product_name"), gpus[1].findtext("minor_number"), gpus[1].get("id"))
        ours = [(one["name"], one["minor"], one["pci_bus_id"]) for one in info]
        verdict.say("PASS" if ours == [told] else "FAIL", f"{name}info: gpuscope {ours}, nvidia-smi {told}")
        for metric, labels, path, factor, tolerance, share in rows(index):
            said = [theirs(gpu, path, factor) for gpu in gpus]
            ours = value(series, f"gpuscope_{metric}", **where, **labels)
            verdict.within(f"{name}{metric}{labels or ''}", ours, said, tolerance, share)
        for kind, pattern in (("corrected", "correctable"), ("uncorrected", "uncorrectable(_parity|_secded)?")):
            ours = value(series, "gpuscope_gpu_ecc_errors_total", **where, type=kind)
            verdict.within(f"{name}gpu_ecc_errors_total {kind}", ours, [ecc(gpu, pattern) for gpu in gpus])
        held = [sum(number(p.text) or 0 for p in gpu.findall("processes/process_info/used_memory")) * MIB for gpu in gpus]
        verdict.within(f"{name}gpu_process_memory_bytes", value(series, "gpuscope_gpu_process_memory_bytes", **where) or 0.0, held, MIB)
        work = value(series, "gpuscope_gpu_process_sm_utilization_ratio", **where) or 0.0
        verdict.within(f"{name}gpu_process_sm_utilization_ratio", work, [r.pmon[index] / 100 for r in readings], 0.25)


def compare_over_time(verdict, phase, scrapes, readings):
    """Throughput of the bus, which nvidia-smi looks at for 20 ms only, and which its own questions use."""
    for index, gpu in enumerate(readings[0].gpus):
        where = {"uuid": gpu.findtext("uuid")}
        for way, path in (("sent", "tx_util"), ("received", "rx_util")):
            ours = [value(one, "gpuscope_gpu_pcie_bytes_per_second", **where, direction=way) for _, one in scrapes]
            told = [number(reading.gpus[index].findtext(f"pci/{path}")) for reading in readings]
            told = [1000 * one for one in told if one is not None]
            if None in ours:
                verdict.within(f"{phase} GPU {index} pcie {way}", None, told)
            else:
                verdict.within(f"{phase} GPU {index} pcie {way}, mean", sum(ours) / len(ours), told, 10e6, 0.2)


def compare_slow(verdict, url, out):
    """Energy against power, and NVLink, over a time in which gpuscope has asked for both again."""
    before, start = read_smi(out), time.monotonic()
    (_, first), powers = scrape(url), collections.defaultdict(list)
    while time.monotonic() - start < NVLINK_EVERY + 5:
        _, series = scrape(url)
        for index, gpu in enumerate(before.gpus):
            powers[index].append(value(series, "gpuscope_gpu_power_watts", uuid=gpu.findtext("uuid")))
        time.sleep(2)
    seconds = time.monotonic() - start
    (_, last), after = scrape(url), read_smi(out)
    for index, gpu in enumerate(before.gpus):
        where = {"uuid": gpu.findtext("uuid")}
        energy = [value(one, "gpuscope_gpu_energy_joules_total", **where) for one in (first, last)]
        if None not in energy:
            mean = sum(powers[index]) / len(powers[index])
            joules = [mean * (seconds + more) for more in (-ENERGY_EVERY, ENERGY_EVERY)]
            verdict.within(f"load GPU {index} joules in {seconds:.0f} s against power", energy[1] - energy[0], joules, 0, 0.05)
        for way, number_of in (("sent", 0), ("received", 1)):
            ours = value(last, "gpuscope_gpu_nvlink_bytes_total", **where, direction=way)
            told = [before.nvlink[index][number_of], after.nvlink[index][number_of]]
            verdict.within(f"load GPU {index} gpu_nvlink_bytes_total {way}", ours, told)


def compare_gpm(verdict, phase, url, gpus):
    """GPM by `nvidia-smi dmon`: SM activity, occupancy, tensor, DRAM (2, 3, 5, 10)."""
    metrics = (("gpu_sm_activity_ratio", {}), ("gpu_sm_occupancy_ratio", {}), ("gpu_pipe_activity_ratio", {"pipe": "tensor"}), ("gpu_dram_activity_ratio", {}))
    said = smi("dmon", "-c", "4", "-s", "p", "--gpm-metrics", "2,3,5,10")
    _, series = scrape(url)
    for index, gpu in enumerate(gpus):
        lines = [line.split() for line in said.splitlines() if line.split()[:1] == [str(index)]]
        for column, (metric, labels) in enumerate(metrics):
            told = [number(words[column - 4]) for words in lines if len(words) > 4]
            told = [one / 100 for one in told if one is not None]
            ours = value(series, f"gpuscope_{metric}", uuid=gpu.findtext("uuid"), **labels)
            verdict.within(f"{phase} GPU {index} {metric} {labels or ''}", ours, told, 0.02, 0.1)


def wait_until_up(url, server):
    for _ in range(120):
        assert server.poll() is None, f"gpuscope ended with {server.returncode}"
        try:
            if value(scrape(url)[1], "gpuscope_nvml_up") == 1:
                return
        except OSError:
            pass
        time.sleep(0.25)
    raise SystemExit("gpuscope does not show gpuscope_nvml_up 1")


def run_phase(verdict, phase, url, out):
    readings, scrapes = [read_smi(out)], []
    for _ in range(ROUNDS):
        text, series = scrape(url)
        age = value(series, "gpuscope_nvml_age_seconds") or 0.0
        scrapes.append((time.monotonic() - age, series))
        readings.append(read_smi(out))
        time.sleep(0.5)
    readings.append(read_smi(out))
    (out / "nvml-scrape.txt").write_text(text)
    for i, (_, series) in enumerate(scrapes):
        around = [readings[max(0, i - 1)], readings[i], readings[i + 1]]
        verdict.within(f"{phase} number of GPUs", sum(n == "gpuscope_gpu_info" for n, _ in series), [len(readings[i].gpus)])
        compare(verdict, phase, series, around)
    compare_over_time(verdict, phase, scrapes, readings)
    compare_gpm(verdict, phase, url, readings[0].gpus)
    took = [value(series, "gpuscope_nvml_duration_seconds") for _, series in scrapes]
    verdict.say("INFO", f"{phase}: a round of questions took {min(took):.3f} to {max(took):.3f} s")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main():
    gpuscope, out = sys.argv[1], pathlib.Path(sys.argv[2])
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    verdict = Verdict(out)
    server = subprocess.Popen([gpuscope, "serve", "--collect", "nvml,xid,self", "--nvml-interval", "1s", "--listen", f"127.0.0.1:{port}"])
    load = None
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        wait_until_up(url, server)
        time.sleep(2.5)
        start = time.monotonic(), cpu_seconds(server.pid)
        for phase in PHASES:
            if phase == "load":
                load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
                verdict.say("INFO", f"load by {load.stdout.readline().strip() or 'nobody'}")
                time.sleep(8)
            run_phase(verdict, phase, url, out)
        compare_slow(verdict, url, out)
        spent = (cpu_seconds(server.pid) - start[1]) / (time.monotonic() - start[0])
        verdict.say("INFO", f"gpuscope used {100 * spent:.2f} % of a core")
        if load.poll() is not None:
            verdict.say("FAIL", f"the load ended by itself with {load.returncode}")
        xids = {labels: v for (n, labels), v in scrape(url)[1].items() if n == "gpuscope_gpu_xid_errors_total"}
        verdict.say("INFO", f"Xid events: {xids or 'none'}")
    finally:
        for process in filter(None, (load, server)):
            process.terminate()
            process.wait(30)
    failed = verdict.counts["FAIL"]
    print(f"{verdict.counts['PASS']} passed, {failed} failed", file=verdict.file, flush=True)
    print(f"{verdict.counts['PASS']} passed, {failed} failed")
    return 1 if failed or not verdict.counts["PASS"] else 0


if __name__ == "__main__":
    sys.exit(main())
