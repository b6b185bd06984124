"""A training in JAX whose batches all have lengths of their own, so that each is compiled anew; and the same without that.

usage: cases_jax.py [STEPS] [--fixed]
--fixed: batches are filled up to a multiple of 128, and what fills them counts for nothing.
Prints `SECONDS s` of the loop, the device idle at both ends.
"""
import os
import random
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40
FIXED = "--fixed" in sys.argv
WIDTH, LAYERS = 512, 6


def loss(weights, batch, counts):
    hidden = batch
    for weight in weights:
        hidden = jnp.tanh(hidden @ weight)
    return (jnp.square(hidden - batch).mean(axis=1) * counts).sum() / counts.sum()


@jax.jit
def step(weights, batch, counts):
    value, slopes = jax.value_and_grad(loss)(weights, batch, counts)
    return [weight - 0.01 * slope for weight, slope in zip(weights, slopes)], value


def batch_of(length: int, chance):
    room = -(-length // 128) * 128 if FIXED else length
    batch = numpy.zeros((room, WIDTH), numpy.float32)
    batch[:length] = chance.standard_normal((length, WIDTH), numpy.float32)
    return batch, numpy.arange(room) < length


def main() -> None:
    chance, lengths = numpy.random.default_rng(7), random.Random(7)
    weights = [jax.random.normal(jax.random.key(number), (WIDTH, WIDTH)) / WIDTH ** 0.5 for number in range(LAYERS)]
    for length in (128, 256, 384, 512):
        weights, value = step(weights, *batch_of(length, chance))
    value.block_until_ready()
    start = time.perf_counter()
    for _ in range(STEPS):
        weights, value = step(weights, *batch_of(lengths.randrange(100, 512), chance))
    value.block_until_ready()
    print("SECONDS", time.perf_counter() - start, flush=True)


main()
