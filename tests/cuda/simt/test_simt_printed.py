"""What a kernel's printf shows of its arguments."""

import numpy as np
import pytest

_PRINTS = r"""
__device__ char of_device[4] = {'d', 'e', 'v', 0};
__constant__ char fixed[4] = {'f', 'i', 'x', 0};
enum Kind { three = 3 };
__global__ void f(const char* given, float* y) {
  char own[3];
  own[0] = 'm', own[1] = 'e', own[2] = 0;
  __shared__ char shared[2];
  shared[0] = 's', shared[1] = 0;
  printf("%s %s %s %s %s %s|", "text", own, shared, of_device, fixed, given);
  printf("%s %s %s|", (const char*)nullptr, (const char*)12345, given + 3);
  printf("%s %s %f %d|", 3, 2.5, 1, 2.5f);
  printf("%d %d %c %x", true, three, 'c', 255u);
  y[0] = 1;
}
"""


@pytest.mark.parametrize("mode", ["functional", "check"])
def test_a_string_is_printed_wherever_it_lies_and_what_is_none_says_so(run, capsys, mode):
    given = np.frombuffer(b"array", np.uint8).copy()
    assert run(_PRINTS, 1, 1, np.append(given, 0).astype(np.uint8), np.zeros(1, np.float32), mode=mode).findings == []
    whole = (
        "text me s dev fix array|(null) (bad pointer) ay|(wrong type) (wrong type) (wrong type) (wrong type)|1 3 c ff"
    )
    assert capsys.readouterr().out == whole
    run(_PRINTS, 1, 1, given, np.zeros(1, np.float32), mode=mode)  # without an end
    assert "array(bad pointer)|" in capsys.readouterr().out
