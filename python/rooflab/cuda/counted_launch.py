"""What Nsight Compute runs for `hardware`: makes the launch that a file describes, once.

python -m rooflab.cuda.counted_launch FILE
"""

import json
import sys

import rooflab as rl
from rooflab.serialization import load_metadata


def main(file: str) -> None:
    """Each tensor begins as far beyond a multiple of 256 bytes as the one that it is a copy of."""
    tensors, launch = rl.load(file, device="cuda"), json.loads(load_metadata(file)["launch"])
    kernel = rl.cuda.compile(launch["source"], launch["options"], backend="gpu")[launch["name"]]
    args = launch["args"]
    for place, tensor in tensors.items():
        skipped = args[int(place)]["skipped"]
        room = rl.zeros(skipped + tensor.numel(), dtype=tensor.dtype, device="cuda")
        args[int(place)] = room[skipped:].reshape(tensor.shape).copy_(tensor)
    kernel(launch["grid"], launch["block"], *args, shared_bytes=launch["shared_bytes"])
    rl.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1])
