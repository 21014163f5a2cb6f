"""None where an object of the core is expected is an exception, never a null pointer that is followed."""

import subprocess
import sys

CALLS = """
import sys, types
import rooflab as rl
from rooflab import _core

def functions(owner, path):
    for name, value in list(vars(owner).items()):
        full = f"{path}.{name}"
        if isinstance(value, types.ModuleType | type):
            inner = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
            if inner.startswith("rooflab._core"):
                yield from functions(value, full)
        elif isinstance(value, property):
            yield from ((full, one) for one in (value.fget, value.fset) if one)
        else:
            found = getattr(value, "__func__", value)
            if callable(found):
                yield full, found

found = list(functions(_core, "_core"))
for name, function in found:
    print(name, file=sys.stderr)
    for count in range(1, 7):
        try:
            function(*[None] * count)
        except Exception:
            pass
print(len(found))
for call in (rl.Graph.replay, rl.Tensor.numel, rl.cuda.Event.synchronize, _core.ProfilerSession.start):
    try:
        call(None)
    except TypeError as error:
        print(str(error).splitlines()[0])
"""


def test_none_for_every_argument_of_every_function():
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process ended by {done.returncode} in {last}"
    count, *refused = done.stdout.splitlines()
    assert int(count) > 500
    owners = {"replay": "Graph", "numel": "Tensor", "synchronize": "Event", "start": "ProfilerSession"}
    assert refused == [f"[{name}] expected {owner}, got None" for name, owner in owners.items()]
