"""Does as many steps as a line of stdin says, each a kernel and a wait for the device, until its stdin ends."""
import sys

import torch

x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
for line in sys.stdin:
    for _ in range(int(line)):
        x.add_(1)
        torch.cuda.synchronize()
    print(f"did {int(line)}", flush=True)
