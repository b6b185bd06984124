#!/usr/bin/env python3
"""Programs in Python as people write them, each of a few seconds and with a fixed seed: what it says is the same each time.

usage: programs.py           the names of those that need one GPU
       programs.py two       of those that need two
       programs.py NAME      runs that one; prints `RESULT` and what came out
See features.py, which compares what they say alone and under gpuscope.
"""
import os
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
SECONDS = float(os.environ.get("PROGRAM_SECONDS", "6"))


def rounds(work, least=3):
    """Does some work again and again for a while: what it says is that of the first round, as its number depends on the machine."""
    first, end, count = work(), time.monotonic() + SECONDS, 1
    while time.monotonic() < end or count < least:
        work()
        count += 1
    return first


def seeded():
    import torch

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch


def network(torch, width=256):
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, 1)).cuda()


def autotuned():
    """torch.compile that tries kernels of Triton's and makes them in processes of its own; the step is a CUDA graph then."""
    torch = seeded()
    model = network(torch)
    step = torch.compile(model, mode="max-autotune")
    batch = torch.randn(64, 256, device="cuda")
    return rounds(lambda: round(step(batch).sum().item(), 1))


def scripted():
    """TorchScript, whose fuser makes kernels, and vmap over gradients."""
    torch = seeded()

    @torch.jit.script
    def mix(x, y):
        return (x * y + torch.sin(x)).tanh() * y

    weights = torch.randn(512, device="cuda")
    slopes = torch.func.vmap(torch.func.grad(lambda row: (row * weights).sin().sum()))
    rows = torch.randn(128, 512, device="cuda")
    return rounds(lambda: round((mix(rows, rows).sum() + slopes(rows).sum()).item(), 2))


def threads():
    """64 threads that come and go, each with a stream of its own."""
    torch = seeded()
    numbers = torch.arange(4096, device="cuda", dtype=torch.float64)

    def one(sums, index):
        with torch.cuda.stream(torch.cuda.Stream()):
            sums[index] = (numbers * index).sum().item()

    def work():
        sums = [0.0] * 64
        crowd = [threading.Thread(target=one, args=(sums, index)) for index in range(64)]
        torch.cuda.synchronize()
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        return sum(sums)

    return rounds(work)


def captured():
    """A CUDA graph with copies in it, whose input comes from pinned memory."""
    torch = seeded()
    source, kept = torch.full((64, 256), 0.5).pin_memory(), torch.zeros(64, 256, device="cuda")
    x, y = torch.zeros(64, 256, device="cuda"), torch.zeros(64, 256, device="cuda")
    weights = torch.randn(256, 256, device="cuda")
    torch.mm(x, weights, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(source, non_blocking=True)
        for _ in range(4):
            torch.mm(x, weights, out=y)
            kept.copy_(y)
            x.copy_(kept)
            x.clamp_(-1, 1)

    def work():
        graph.replay()
        return round(kept.sum().item(), 2)

    return rounds(work)


class Squares:
    def __len__(self):
        return 400

    def __getitem__(self, index):
        import torch

        return torch.full((1024,), float(index))


def loaded_by(context, **options):
    torch = seeded()
    loader = torch.utils.data.DataLoader(Squares(), batch_size=20, num_workers=3, pin_memory=True, multiprocessing_context=context, **options)
    return rounds(lambda: sum(batch.cuda(non_blocking=True).sum().item() for batch in loader), 2)


def loaded_by_forkserver():
    """A data loader whose workers a server forks, and which stay."""
    return loaded_by("forkserver", persistent_workers=True)


def loaded_by_fork():
    """A data loader whose workers are forked from the program that uses CUDA, and end after each round."""
    import torch

    torch.ones(1, device="cuda")
    return loaded_by("fork")


def lender(queue, done):
    import torch

    for index in range(8):
        queue.put(torch.full((1 << 16,), float(index), device="cuda"))
    done.wait()


def shared():
    """Tensors of a process that was spawned, taken over by IPC."""
    torch = seeded()
    context = torch.multiprocessing.get_context("spawn")

    def work():
        queue, done = context.Queue(), context.Event()
        process = context.Process(target=lender, args=(queue, done))
        process.start()
        total = 0.0
        for _ in range(8):
            tensor = queue.get()
            total += tensor.sum().item()
            del tensor
        done.set()
        process.join()
        return total, process.exitcode

    return rounds(work, 2)


def forked():
    """A child that is forked after CUDA is in use, does not use it, and leaves by _exit; a pool of such children, too."""
    import multiprocessing

    torch = seeded()
    numbers = torch.arange(1024, device="cuda")

    def work():
        child = os.fork()
        if child == 0:
            os._exit(7)
        _, status = os.waitpid(child, 0)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            squares = sum(pool.map(abs, range(-50, 0)))
        return numbers.sum().item(), os.waitstatus_to_exitcode(status), squares

    return rounds(work)


def executed():
    """A program that, once it has used CUDA, becomes another one that does."""
    torch = seeded()
    count = int(os.environ.get("PROGRAM_LIVES", "0"))
    total = torch.full((1000,), float(count), device="cuda").sum().item()
    if count < 2:
        print("life", count, total, flush=True)
        os.environ["PROGRAM_LIVES"] = str(count + 1)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return total


def started():
    """A program that uses the GPU and starts others that do."""
    torch = seeded()
    script = "import torch; print(torch.arange(1000., device='cuda').sum().item())"
    here = torch.ones(8, device="cuda").sum().item()
    return here, [float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(2)]


def tested():
    """Tests by pytest in three processes, one of which is ended by a test."""
    script = '''
import os, pytest, torch

@pytest.mark.parametrize("width", [2 ** n for n in range(4, 12)])
def test_sum(width):
    assert torch.ones(width, width, device="cuda").sum().item() == width * width

def test_wrong():
    assert torch.zeros(1, device="cuda").item() == 1

def test_ends():
    torch.ones(1, device="cuda")
    os._exit(3)
'''
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/test_sums.py", "w") as file:
            file.write(script)
        ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "3", "-p", "no:cacheprovider", folder], capture_output=True, text=True)
        counted = ended.stdout.strip().splitlines()[-1].split(" in ")[0].strip("= ")
    return ended.returncode, counted


def served():
    """A server on an event loop with batches that a thread computes, and the client that asks it."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    import aiohttp
    import uvloop
    from aiohttp import web

    torch = seeded()
    model, pool = network(torch).eval(), ThreadPoolExecutor(2)

    @torch.no_grad()
    def answer(seed):
        batch = torch.full((8, 256), seed / 100, device="cuda")
        return round(model(batch).sum().item(), 3)

    async def handle(request):
        seed = int(request.query["seed"])
        return web.json_response(await asyncio.get_running_loop().run_in_executor(pool, answer, seed))

    async def main():
        application = web.Application()
        application.router.add_get("/", handle)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with aiohttp.ClientSession() as session:
            async def ask(seed):
                async with session.get(f"http://127.0.0.1:{port}/?seed={seed}") as reply:
                    return await reply.json()

            end = time.monotonic() + SECONDS
            while True:
                answers = await asyncio.gather(*[ask(seed) for seed in range(50)])
                if time.monotonic() > end:
                    break
        await runner.cleanup()
        return round(sum(answers), 2)

    return uvloop.run(main())


def pools():
    """Memory of pools of the program's own, of growing segments, and of CUDA's own allocator, by its history."""
    torch = seeded()

    def work():
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            kept = torch.ones(1 << 20, device="cuda")
        torch.cuda.memory._record_memory_history(max_entries=1000)
        more = [torch.ones(1 << 18, device="cuda") for _ in range(20)]
        entries = len(torch.cuda.memory._snapshot()["segments"]) > 0
        torch.cuda.memory._record_memory_history(enabled=None)
        return kept.sum().item() + sum(tensor.sum().item() for tensor in more), entries

    return rounds(work)


def asynchronous_memory():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    return pools_of_steps()


def growing_memory():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return pools_of_steps()


def pools_of_steps():
    torch = seeded()
    model = network(torch)

    def work():
        model.zero_grad()
        loss = model(torch.full((512, 256), 0.01, device="cuda")).square().mean()
        loss.backward()
        return round(loss.item(), 6)

    return rounds(work)


def offloaded():
    """What the backward pass needs is kept in the host's memory, within anomaly detection."""
    torch = seeded()
    model = network(torch)

    def work():
        model.zero_grad()
        with torch.autograd.graph.save_on_cpu(pin_memory=True), torch.autograd.detect_anomaly(check_nan=True):
            loss = model(torch.full((512, 256), 0.01, device="cuda")).square().mean()
            loss.backward()
        return round(loss.item(), 6)

    return rounds(work)


def narrow():
    """Products of 8-bit numbers, and attention over nested tensors and by flex attention."""
    torch = seeded()
    left = torch.randint(-8, 8, (64, 64), device="cuda", dtype=torch.int8)
    row, column = torch.randn(64, 64, device="cuda").to(torch.float8_e4m3fn), torch.randn(64, 64, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.tensor(1.0, device="cuda")
    heads = torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16)

    def work():
        whole = torch._int_mm(left, left).sum().item()
        eighth = torch._scaled_mm(row, column, scale_a=one, scale_b=one, out_dtype=torch.bfloat16).float().sum().item()
        attention = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True).float().sum().item()
        return whole, round(eighth, 1), round(attention, 1)

    return rounds(work)


def solved():
    """Linear algebra by cuSOLVER, cuSPARSE and cuFFT."""
    torch = seeded()
    matrix = torch.randn(200, 200, device="cuda", dtype=torch.float64)
    sparse = torch.eye(200, device="cuda", dtype=torch.float64).to_sparse_csr()

    def work():
        values = torch.linalg.svdvals(matrix).sum().item() + torch.linalg.eigvalsh(matrix @ matrix.T).sum().item()
        return round(values + (sparse @ matrix).sum().item() + torch.fft.fft2(matrix).abs().sum().item(), 4)

    return rounds(work)


def adapted():
    """A small language model, adapted by LoRA within Accelerate, with checkpoints of activations and bf16."""
    torch = seeded()
    from accelerate import Accelerator
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4)
    model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
    accelerator = Accelerator(mixed_precision="bf16")
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    tokens = torch.arange(256, device="cuda").reshape(4, 64)
    losses = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or len(losses) < 10:
        loss = model(input_ids=tokens, labels=tokens).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return [round(loss, 2) for loss in losses[:3]]


def connected():
    """A network over a graph (PyTorch Geometric)."""
    torch = seeded()
    from torch_geometric.nn import GCNConv

    layer = GCNConv(16, 16).cuda()
    features, edges = torch.randn(500, 16, device="cuda"), torch.randint(0, 500, (2, 4000), device="cuda")
    return rounds(lambda: round(layer(features, edges).abs().sum().item(), 0))


def bound():
    """CUDA's own bindings for Python: a kernel that NVRTC compiles, launched by the driver's functions."""
    import numpy
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    code = 'extern "C" __global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }'
    program = Program(code, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
    kernel = program.compile("cubin").get_kernel("twice")
    buffer = device.allocate(4096, stream=stream)
    from cuda.bindings import driver

    def work():
        host = numpy.ones(1024, numpy.float32)
        driver.cuMemcpyHtoDAsync(int(buffer.handle), host.ctypes.data, 4096, driver.CUstream(int(stream.handle)))
        for _ in range(5):
            launch(stream, LaunchConfig(grid=4, block=256), kernel, int(buffer.handle), numpy.int32(1024))
        driver.cuMemcpyDtoHAsync(host.ctypes.data, int(buffer.handle), 4096, driver.CUstream(int(stream.handle)))
        stream.sync()
        return float(host.sum())

    return rounds(work)


def arrays():
    """CuPy: streams, a captured graph, a pool, a random generator."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.arange(4096, dtype=cupy.float64)
    with stream:
        x * 2 + 1
        stream.begin_capture()
        y = cupy.sqrt(x * 2 + 1)
        graph = stream.end_capture()

    def work():
        graph.launch(stream)
        stream.synchronize()
        drawn = cupy.random.default_rng(7).random(1000).sum()
        return round(float(y.sum() + drawn), 6)

    return rounds(work)


def integrated():
    """An ordinary differential equation by diffrax: loops that XLA makes nodes with conditions of."""
    import diffrax
    import jax.numpy as jnp

    def work():
        solution = diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, args: -y), diffrax.Tsit5(), t0=0, t1=3, dt0=0.1, y0=jnp.ones(64))
        return round(float(solution.ys.sum()), 4)

    return rounds(work)


def looped():
    """Loops of JAX whose end the device decides, and choices within them."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def halve(x):
        step = lambda x: jax.lax.cond(x.sum() > 100, lambda x: x * 0.5, lambda x: x * 0.9, jnp.tanh(x @ jnp.eye(64)))
        return jax.lax.while_loop(lambda x: x.sum() > 1, step, x)

    return rounds(lambda: round(float(halve(jnp.ones((64, 64))).sum()), 3))


def kept():
    """A network of JAX's whose weights Orbax writes and reads in threads of its own."""
    import jax
    import jax.numpy as jnp
    import orbax.checkpoint as checkpoint

    weights = {"w": jax.random.normal(jax.random.key(7), (256, 256))}

    def work():
        with tempfile.TemporaryDirectory() as folder:
            keeper = checkpoint.StandardCheckpointer()
            keeper.save(f"{folder}/weights", weights)
            keeper.wait_until_finished()
            restored = keeper.restore(f"{folder}/weights", weights)
        return round(float(jnp.tanh(restored["w"] @ weights["w"]).sum()), 3)

    return rounds(work)


def interrupted():
    """A loop that Ctrl-C ends, which the program takes as the time to save."""
    import signal

    torch = seeded()
    threading.Timer(SECONDS, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    numbers = torch.ones(1000, device="cuda")
    try:
        while True:
            numbers.sum().item()
    except KeyboardInterrupt:
        return "saved", numbers.sum().item()


def killed_by_itself():
    """A program that ends with SIGSEGV, of which Python tells where."""
    import faulthandler

    torch = seeded()
    faulthandler.enable()
    print("RESULT", torch.ones(10, device="cuda").sum().item(), flush=True)
    import ctypes

    ctypes.string_at(0)


def out_of_memory():
    """Asks for more than there is, and goes on with less."""
    torch = seeded()

    def work():
        try:
            torch.empty(1 << 42, device="cuda")
        except torch.cuda.OutOfMemoryError:
            return "less", torch.ones(10, device="cuda").sum().item()

    return rounds(work)


def split():
    """Two GPUs: the same network on both, each with a part of the batch, by threads (DataParallel)."""
    torch = seeded()
    model = torch.nn.DataParallel(network(torch))
    batch = torch.full((64, 256), 0.01, device="cuda")

    def work():
        model.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        return round(loss.item(), 6)

    return rounds(work)


def mapped_over():
    """Two GPUs: JAX over both."""
    import jax
    import jax.numpy as jnp

    step = jax.pmap(lambda x: jax.lax.psum(jnp.tanh(x).sum(), "i"), axis_name="i")
    batch = jnp.arange(2 * 1024.0).reshape(2, 1024) / 1024
    return rounds(lambda: [round(float(value), 2) for value in step(batch)])


def sharded():
    """Two GPUs: a network whose weights both share (FSDP), one process each, which torchrun starts."""
    if "LOCAL_RANK" not in os.environ:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", *sys.argv]
        ended = subprocess.run(command, capture_output=True, text=True)
        said = sorted(line for line in ended.stdout.splitlines() if line.startswith("RESULT"))
        if ended.returncode:
            print(ended.stderr[-3000:], file=sys.stderr)
        return ended.returncode, said
    torch = seeded()
    import torch.distributed as distributed
    from torch.distributed.fsdp import fully_shard

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    model = network(torch, 1024)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(int(SECONDS * 60)):
        loss = model(torch.full((64, 1024), 0.01 * (rank + 1), device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    distributed.destroy_process_group()
    return rank, [round(loss, 3) for loss in losses[:2]]


ONE_GPU = [autotuned, captured, scripted, threads, loaded_by_forkserver, loaded_by_fork, shared, forked, executed, started, tested, served, pools,
           asynchronous_memory, growing_memory, offloaded, narrow, solved, adapted, connected, bound, arrays,
           integrated, looped, kept, interrupted, killed_by_itself, out_of_memory]
TWO_GPUS = [split, mapped_over, sharded]
PROGRAMS = {program.__name__: program for program in ONE_GPU + TWO_GPUS}

if __name__ == "__main__":
    if len(sys.argv) == 1 or sys.argv[1] == "two":
        print(*(program.__name__ for program in (TWO_GPUS if sys.argv[1:] else ONE_GPU)))
    else:
        print("RESULT", PROGRAMS[sys.argv[1]](), flush=True)
