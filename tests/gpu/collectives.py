"""Collectives of known sizes, in one process for each GPU (torchrun): prints what rank 0 asked for, as JSON."""
import json
import os

import torch
import torch.distributed as dist

ALL_REDUCES = {1 << 20: 40, 1 << 12: 25}
BROADCASTS = {1 << 16: 10}
GATHERS = {1 << 10: 7}


def main() -> None:
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    for elements, times in ALL_REDUCES.items():
        tensor = torch.ones(elements, dtype=torch.float32, device="cuda")
        for _ in range(times):
            dist.all_reduce(tensor)
    for elements, times in BROADCASTS.items():
        tensor = torch.ones(elements, dtype=torch.bfloat16, device="cuda")
        for _ in range(times):
            dist.broadcast(tensor, 0)
    for elements, times in GATHERS.items():
        tensor = torch.ones(elements, dtype=torch.int64, device="cuda")
        gathered = torch.empty(elements * ranks, dtype=torch.int64, device="cuda")
        for _ in range(times):
            dist.all_gather_into_tensor(gathered, tensor)
    torch.cuda.synchronize()
    if rank == 0:
        asked = {"ncclAllReduce": ALL_REDUCES, "ncclBroadcast": BROADCASTS, "ncclAllGather": GATHERS}
        print(json.dumps({name: sum(each.values()) * ranks for name, each in asked.items()}), flush=True)
    dist.destroy_process_group()


main()
