"""Results of 256 MiB that are copied to the host behind some 280 ms of products: how long copies are held up is not their fault.

usage: to_host.py pageable|pinned|waits    waits: to pageable memory, once the products were waited for
"""
import sys

import torch

torch.manual_seed(1)
weights = torch.rand(8192, 8192, device="cuda")
host = torch.empty(8192, 8192, pin_memory=sys.argv[1] == "pinned")
for _ in range(30):
    result = weights
    for _ in range(4):
        result = (result @ weights) * 1e-4
    if sys.argv[1] == "waits":
        torch.cuda.synchronize()
    host.copy_(result)
print("ok")
