"""A training of a language model, apart from the command that runs it."""

import os

import rooflab as rl
from rooflab import _core, serialization
from rooflab.nn import TransformerConfig
from rooflab.training import ByteText, LanguageModelTraining, TrainingSettings

TEXT = ByteText(b"to be or not to be, that is the question", context_length=8)
SIZES = TransformerConfig(16, 16, 1, 2, vocab_size=256, context_length=8)


def training(seed=0):
    return LanguageModelTraining(SIZES, TEXT, TrainingSettings(steps=5, batch_size=2, warmup=1, seed=seed))


def weights(of):
    return {name: weight.tolist() for name, weight in of.model.state_dict().items()}


def test_a_checkpoint_that_another_replaces_while_it_is_read_is_not_mixed_with_it(tmp_path, monkeypatch):
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    trained = training()
    trained.advance(), trained.save(first)
    expected = weights(trained)
    trained.advance(), trained.save(second)
    read = serialization._read

    def replaced_after(path):
        found = read(path)
        if second.exists():
            os.replace(second, path)
        return found

    monkeypatch.setattr(serialization, "_read", replaced_after)
    resumed = training()
    resumed.resume(first)
    assert (resumed.step, len(resumed.losses)) == (1, 1) and weights(resumed) == expected


def test_weights_of_a_seed_do_not_depend_on_what_others_draw(monkeypatch):
    rl.manual_seed(5)
    expected, state, draw = weights(training(seed=3)), rl.get_rng_state(), _core._rand_at
    assert state == (5, 0) and weights(training(seed=4)) != expected

    def beside_another_thread(*args, **options):
        rl.rand(1), rl.manual_seed(9)
        return draw(*args, **options)

    monkeypatch.setattr(_core, "_rand_at", beside_another_thread)
    assert weights(training(seed=3)) == expected
