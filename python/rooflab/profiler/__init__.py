"""Which kernels run, when, for how long and on whose behalf.

    with rl.profile(schedule=rl.profiler.schedule(wait=1, warmup=3, active=6)) as prof:
        for _ in range(10):
            y = rl.matmul(a, b)
            prof.step()
    print(prof.key_averages().table(sort_by="duration", row_limit=10))  # kernels
    print(prof.key_averages().table(sort_by="cpu_time_total"))  # ops, ranges, submissions and waits of the host
    print(prof.verdict)  # who waited for whom

On a meta device nothing runs. A profile there gets its times from a model of the machine (`launch_model`) and says so
wherever it shows a time.
"""

from typing import TYPE_CHECKING

from .. import _habits
from .activities import ProfilerActivity
from .categories import CATEGORIES
from .host import HostRecord
from .host_averages import HostAverage
from .modelled import LaunchModel, launch_model
from .records import KernelRecord, Range, Step
from .schedules import Schedule, schedule
from .session import Profile, profile
from .waiting import DeviceWaiting

__all__ = [
    "CATEGORIES", "DeviceWaiting", "HostAverage", "HostRecord", "KernelRecord", "LaunchModel", "Profile",
    "ProfilerActivity", "Range", "Schedule", "Step", "launch_model", "profile", "schedule",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
