"""All-reduces by PyTorch's gloo over loopback: one line of JSON with the milliseconds of each world and size."""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank, peers, sizes, rounds, port, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=peers)
    for size in sizes:
        values = torch.ones(size // 4)
        times = []
        for _ in range(rounds + 1):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(values)
            times.append(1000 * (time.perf_counter() - start))
            values.fill_(1)
        # The first one warms up.
        if rank == 0:
            results.append({"peers": peers, "bytes": size, "milliseconds": statistics.median(times[1:])})
    dist.destroy_process_group()


if __name__ == "__main__":
    is_quick = sys.argv[1:] == ["quick"]
    rounds = 1 if is_quick else 7
    with mp.Manager() as manager:
        results = manager.list()
        for index, peers in enumerate([2] if is_quick else [2, 3, 4]):
            sizes = [1_000_000] if is_quick else [1_000_000, 16_000_000, 64_000_000]
            mp.spawn(rank_main, args=(peers, sizes, rounds, 29_600 + index, results), nprocs=peers)
        print(json.dumps({"torch": torch.__version__, "rows": list(results)}))
