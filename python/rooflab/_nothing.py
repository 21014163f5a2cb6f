"""What is said in place of zeros when a helper saw nothing."""

from __future__ import annotations

NOTHING_RAN = "nothing of rooflab ran in this block; NumPy and PyTorch on the CPU are not counted"
NO_MEMORY = (
    "no tensor of rooflab took memory in this {}, or none on the device that was asked for; NumPy and PyTorch are not "
    "counted"
)
