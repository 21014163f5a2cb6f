"""Every public exception goes to another process as it is: pools of processes send what their work raised."""

import inspect
import pickle

import rooflab as rl
from rooflab.cuda.simt import findings, result


def kernel_error(text):
    launch = result.Launch(text, (1, 1, 1), (32, 1, 1), "check", "source")
    launch.findings.append(findings.Finding("race", "One sentence.", 3))
    return rl.cuda.KernelError(launch)


def public():
    names = [(rl, name) for name in rl.__all__]
    places = [rl] + [getattr(*each) for each in names if inspect.ismodule(getattr(*each))]
    found = [getattr(place, name) for place in places for name in getattr(place, "__all__", dir(place))]
    return {kind for kind in found if inspect.isclass(kind) and issubclass(kind, BaseException)}


def test_every_public_exception_is_pickled_with_what_it_holds():
    made = {rl.cuda.KernelError: kernel_error, rl.CompileError: lambda text: rl.CompileError(text, "a hint")}
    assert public() >= {*made, rl.CudaError, rl.OutOfMemoryError}
    for kind in public():
        error = made.get(kind, kind)("what is wrong")
        error.add_note("said later")
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.__dict__ == error.__dict__, kind
