"""Tables of angles that several threads ask for: another thread's calls are made in the middle of one's own."""

import pytest

from rooflab import _core
from rooflab.nn import RotaryEmbedding


def rotary():
    return RotaryEmbedding(1e4, 8, dtype="float32")


def shapes(tables):
    return [table.shape for table in tables]


@pytest.mark.parametrize(("own", "other"), [(5, 40), (40, 5)])
def test_tables_that_another_thread_makes_meanwhile_replace_no_longer_ones(own, other, monkeypatch):
    tables, make, calls = rotary(), _core.tensor, []

    def beside_another_thread(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            assert shapes(tables(0, other)) == [(other, 8)] * 2
        return make(*args, **options)

    monkeypatch.setattr(_core, "tensor", beside_another_thread)
    assert shapes(tables(0, own)) == [(own, 8)] * 2
    assert shapes(buffer for _, buffer in tables.named_buffers()) == [(40, 8)] * 2


def test_tables_of_which_another_thread_has_replaced_one_are_not_used():
    tables, longer = rotary(), rotary()
    tables(0, 3), longer(0, 40)
    tables._cos = longer._cos
    cos, sin = tables(0, 9)
    assert cos.tolist() == longer(0, 9)[0].tolist() and sin.tolist() == longer(0, 9)[1].tolist()


def test_tables_are_those_that_were_found_or_made_whatever_another_thread_puts_there():
    class Replaced(RotaryEmbedding):
        def _keep(self, cos, sin):
            super()._keep(cos[:2], sin[:2])

    assert shapes(Replaced(1e4, 8, dtype="float32")(3, 4)) == [(4, 8)] * 2
