"""`rl.device`: a text with parts."""

import copy
import pickle

import pytest

import rooflab as rl


def test_a_device_is_a_text_with_parts():
    x = rl.ones(2)
    assert x.device == "cpu" and x.device.type == "cpu" and x.device.index is None and isinstance(x.device, str)
    assert x.device is rl.zeros(1).device and x.to(rl.device("cpu")).device == "cpu"
    assert rl.device("cuda", 1) == "cuda:1" and rl.device("cuda:1").index == 1 and rl.device("cuda").index is None
    meta = rl.empty(1, device=rl.meta("H200")).device
    assert (
        meta == "meta:H200" and meta.type == "meta" and meta.index is None and rl.empty(1, device=meta).device == meta
    )
    assert not x.is_cuda and f"{x.device}" == "cpu"
    for one in (rl.device("cuda:1"), meta):
        assert type(copy.deepcopy(one)) is type(pickle.loads(pickle.dumps(one))) is rl.device


def test_the_cpu_has_a_number_as_in_pytorch():
    assert rl.device("cpu", 0) == rl.device("cpu:0") == "cpu:0" and rl.device("cpu:0").index == 0
    x = rl.ones(2)
    for cpu in ("cpu:0", rl.device("cpu", 0)):
        assert rl.zeros(2, device=cpu).device == "cpu" and x.to(cpu).data_ptr() == x.data_ptr()
    assert rl.nn.Linear(2, 2).to("cpu:0").weight.device == "cpu"


NO_DEVICES = ["", "CPU", " cpu", "tpu", "cpu:", "cpu:1", "cpu:00", "cuda:", "cuda:01", "cuda:-1", "cuda: 1", "cuda:1\n",
              "cuda:\u0661", "cuda:9999", "meta:", "meta:0", "meta:H2000", "metal", "cudas"]  # fmt: skip


@pytest.mark.parametrize("text", NO_DEVICES)
def test_texts_that_name_no_device_are_refused(text):
    for use in (rl.device, lambda text: rl.zeros(2, device=text)):
        with pytest.raises(ValueError, match=r"^\[(device|meta)\] .*expected "):
            use(text)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((3,), TypeError, "type: expected a text such as 'cuda:0', got 3"),
        ((None,), TypeError, "type: expected a text such as 'cuda:0', got None"),
        (("cuda", True), TypeError, "index: expected an integer, got True"),
        (("cuda", 1.0), TypeError, "index: expected an integer, got 1.0"),
        (("cuda", "1"), TypeError, "index: expected an integer, got '1'"),
        (("cuda", -1), ValueError, "expected a GPU's number with 'cuda', or 0 with 'cpu'; got -1 with 'cuda'"),
        (("cuda", 1000), ValueError, "got 1000 with 'cuda'"),
        (("cpu", 1), ValueError, "got 1 with 'cpu'"),
        (("cuda:1", 1), ValueError, "got 1 with 'cuda:1'"),
        (("meta", 0), ValueError, "got 0 with 'meta'"),
    ],
    ids=str,
)
def test_what_is_no_device_is_refused(arguments, error, says):
    with pytest.raises(error, match=rf"\[device\] .*{says}"):
        rl.device(*arguments)
