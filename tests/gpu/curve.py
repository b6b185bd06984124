"""Fits a network and keeps the curve of its losses and of what it said."""
import sys, time
import torch
from torch import nn


def main(steps):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 256)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    curve, said, total = [], {}, 0
    began = time.time()
    for step in range(steps):
        x = torch.randn(1024, 512, device="cuda")
        y = model(x)
        loss = (y - x[:, :256]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss)
        total += loss
        if step % 10 == 0:
            said[step] = y
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.4f} mean {(total / (step + 1)).item():.4f}, {torch.cuda.memory_allocated() >> 20} MiB, {time.time() - began:.2f} s", flush=True)
    print(f"{steps} steps in {time.time() - began:.2f} s")


main(int(sys.argv[1]))
