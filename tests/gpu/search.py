"""Searches for the best of a function by Bayesian optimization. usage: search.py [ROUNDS]"""
import sys
import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    at = torch.rand(10, 4, dtype=torch.double, device=device)
    value = lambda x: -((x - 0.3) ** 2).sum(-1, keepdim=True) + 0.1 * torch.sin(12 * x).sum(-1, keepdim=True)
    seen = value(at)
    bounds = torch.stack([torch.zeros(4), torch.ones(4)]).to(at)
    for _ in range(ROUNDS):
        model = SingleTaskGP(at, seen)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        best = LogExpectedImprovement(model, best_f=seen.max())
        found, _ = optimize_acqf(best, bounds=bounds, q=1, num_restarts=5, raw_samples=64)
        at, seen = torch.cat([at, found]), torch.cat([seen, value(found)])
    print(f"{seen.max().item():.4f}")


main()
