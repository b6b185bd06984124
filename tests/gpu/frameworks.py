"""Work of a framework that is not PyTorch, with a fixed seed. Prints `RESULT` and what came out, to the last bit.

usage: frameworks.py jax|cupy
"""
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
STEPS = 50


def with_jax() -> float:
    """A small network, trained by a compiled step."""
    import jax
    import jax.numpy as jnp

    def loss(weights, inputs):
        return jnp.square(jnp.tanh(inputs @ weights) - inputs).mean()

    @jax.jit
    def step(weights, inputs):
        value, slope = jax.value_and_grad(loss)(weights, inputs)
        return weights - 0.1 * slope, value

    weights = jax.random.normal(jax.random.key(7), (256, 256)) / 16
    inputs = jax.random.normal(jax.random.key(8), (64, 256))
    for _ in range(STEPS):
        weights, value = step(weights, inputs)
    return float(value)


def with_cupy() -> float:
    """A kernel of its own, one that is compiled on the way, a copy to the host."""
    import cupy

    cubed = cupy.RawKernel('''extern "C" __global__ void cubed(double *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] = x[i] * x[i] * x[i];
    }''', "cubed")
    numbers = cupy.arange(4096, dtype=cupy.float64) / 4096
    for _ in range(STEPS):
        cubed((16,), (256,), (numbers, 4096))
        numbers = cupy.cos(numbers)
    return float(cupy.asnumpy(numbers).sum())


print("RESULT", {"jax": with_jax, "cupy": with_cupy}[sys.argv[1]]().hex(), flush=True)
