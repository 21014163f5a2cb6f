"""Ranges as NVTX ranges: what a tool hears if it is started like Nsight Systems."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from rooflab import _core

COMPILER = shutil.which("g++")
pytestmark = [
    pytest.mark.skipif(not _core.ProfilerSession.has_nvtx(), reason="rooflab was built without NVTX's headers"),
    pytest.mark.skipif(not COMPILER, reason="g++ is not installed"),
]

# A minimal tool. The numbers are those of NVTX's binary interface: table 1 holds the callbacks, module 1 its
# first functions, of which 9 is nvtxRangePushA and 11 nvtxRangePop.
TOOL = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>
using Function = void (*)();
struct Callbacks {
  size_t size;
  int (*functions_of)(int module, Function*** table, unsigned* size);
};
static FILE* heard;
static thread_local int depth, number;
static int threads;
static int push(const char* name) {
  if (!number) number = __atomic_add_fetch(&threads, 1, __ATOMIC_SEQ_CST);
  fprintf(heard, "%d push %s\n", number, name), fflush(heard);
  return depth++;
}
static int pop() {
  fprintf(heard, "%d pop\n", number), fflush(heard);
  return --depth;
}
extern "C" int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  heard = fopen(getenv("HEARD"), "w");
  const auto* callbacks = static_cast<const Callbacks*>(export_table(1));
  Function** table;
  unsigned size = 0;
  if (!heard || !callbacks || !callbacks->functions_of(1, &table, &size) || size <= 11) return 0;
  *table[9] = reinterpret_cast<Function>(push);
  *table[11] = reinterpret_cast<Function>(pop);
  return 1;
}
"""


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tool")
    (folder / "tool.cpp").write_text(TOOL, encoding="utf-8")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", "tool.so", "tool.cpp"], cwd=folder, check=True)
    return folder / "tool.so"


@pytest.fixture
def run(tool, tmp_path):
    """Run a program under the tool. Returns what it printed, and what the tool heard in each thread."""

    def run(program, injection=tool):
        heard = tmp_path / "heard"
        environment = os.environ | {"NVTX_INJECTION64_PATH": str(injection), "HEARD": str(heard)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        lines = heard.read_text(encoding="utf-8").splitlines() if heard.exists() else []
        threads = {}
        for line in lines:
            number, _, event = line.partition(" ")
            threads.setdefault(number, []).append(event)
        return done.stdout, list(threads.values())

    return run


def paths(events):
    """The ranges that were opened, each with those around it; each of them was closed."""
    opened, stack = [], []
    for event in events:
        if event == "pop":
            stack.pop()
        else:
            stack.append(event.removeprefix("push "))
            opened.append("/".join(stack))
    assert stack == []
    return opened


def test_ranges_nest_and_close(run):
    _, (events,) = run("""
import rooflab as rl
with rl.range("a"):
    with rl.range("b c"):
        pass
    try:
        with rl.range("left"), rl.range("early"):
            raise ValueError
    except ValueError:
        pass
with rl.range("d"):
    pass
""")
    assert events == [
        *("push a", "push b c", "pop", "push left", "push early", "pop", "pop", "pop"),
        *("push d", "pop"),
    ]


def test_a_range_that_is_left_open_inside_is_closed(run):
    _, (events,) = run("""
import rooflab as rl
outer, inner = rl.range("outer"), rl.range("inner")
outer.__enter__(), inner.__enter__()
try:
    outer.__exit__()
except ValueError:
    pass
""")
    assert events == ["push outer", "push inner", "pop", "pop"]


def test_threads_have_ranges_of_their_own(run):
    _, threads = run("""
import threading
import rooflab as rl
with rl.range("main"):
    def work():
        with rl.range("thread"):
            pass
    other = threading.Thread(target=work)
    other.start(), other.join()
""")
    assert threads == [["push main", "pop"], ["push thread", "pop"]]


def test_a_profiled_step_has_the_ranges_of_the_profile(run):
    out, (events,) = run("""
import json
import rooflab as rl
from rooflab.benchmark import lm
tiny = rl.nn.TransformerConfig(16, 32, num_layers=1, num_heads=2, vocab_size=50)
case = lm.Case("tiny", context_length=8, mode="train", warmup_steps=1, measure_steps=2)
profiles, profile_step = [], lm.profile_step
def kept(*of):
    profiles.append(profile_step(*of))
    return profiles[-1]
lm.profile_step = kept
lm.benchmark(case, config=tiny, profile=True)
profile = profiles[0][0]
print(json.dumps([span.path for span in profile.ranges if span.step == profile.steps[-1].number]))
""")
    profiled, heard = json.loads(out), paths(events)
    steps = [path for path in heard if path.endswith("/optimizer")]
    assert steps == [f"{step}/optimizer" for step in (
        "warmup/step_0", "measurement/step_0", "measurement/step_1", "measurement/step_2",
    )]  # fmt: skip
    attention = "forward/block_0/self_attention/attention_"
    step = {"forward", "backward", "optimizer"} | {attention + part for part in ("matmul_QK", "softmax", "matmul_V")}
    assert {f"measurement/step_2/{part}" for part in step} <= set(profiled)
    first = heard.index("measurement/step_2")
    assert heard[first:] == [path for path in profiled if path != "measurement"]
    measured = [path.replace("step_1", "step_2") for path in heard if path.startswith("measurement/step_1")]
    assert measured == heard[first:]


def test_a_tool_that_cannot_be_loaded_changes_nothing(run, tmp_path):
    program = (
        "import rooflab as rl\nwith rl.range('a'), rl.count() as c:\n    rl.ones(2) + 1\nprint(c.by_range['a'].ops)"
    )
    out, heard = run(program, injection=tmp_path / "absent.so")
    assert (out, heard) == ("2\n", [])
