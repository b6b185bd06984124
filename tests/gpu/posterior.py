"""Samples a hierarchical regression by NUTS. usage: posterior.py [SAMPLES]"""
import sys
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 200


def model(x, group, y=None):
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 20):
        slope = numpyro.sample("slope", dist.Normal(0.0, scale))
    numpyro.sample("y", dist.Normal(slope[group] * x, 0.5), obs=y)


def main():
    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (5000,))
    group = jnp.arange(5000) % 20
    y = x * (group / 10.0) + 0.5 * jax.random.normal(key, (5000,))
    sampler = MCMC(NUTS(model), num_warmup=SAMPLES, num_samples=SAMPLES, progress_bar=True)
    sampler.run(key, x, group, y=y)
    print(f"{sampler.get_samples()['slope'].mean():.3f}")


main()
