"""Kernels' signatures taken apart, without a compiler."""

import pytest

from rooflab.cuda.signature import _before_parameters, _declaration, _is_const, _split


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("f(float*, int)", "f"),
        ("f<(Mode)1>(float*)", "f<(Mode)1>"),
        ("a::f<std::pair<int, (Mode)0>>(void (*)(int))", "a::f<std::pair<int, (Mode)0>>"),
        ("plain", "plain"),
    ],
)
def test_the_name_ends_where_the_parameters_begin(signature, name):
    assert _before_parameters(signature) == name


def test_commas_in_brackets_divide_nothing():
    assert _split("pair<int, float> p, int (&q)[2], float r") == ["pair<int, float> p", "int (&q)[2]", "float r"]
    assert _split("") == []


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("const float* __restrict__ q = nullptr", "const float*", "q"),
        ("float x[4]", "float*", "x"),
        ("unsigned", "unsigned", ""),
        ("const int", "const int", ""),
    ],
)
def test_declarations(text, kind, name):
    assert _declaration(text) == (kind, name)


@pytest.mark.parametrize(
    ("pointed_to", "is_const"),
    [
        ("float", False),
        ("float const", True),
        ("const float", True),
        ("const volatile float", True),
        ("const float*", False),  # the pointer it points to can be written
        ("float* const", True),
        ("constant_t", False),
    ],
)
def test_what_a_kernel_may_write(pointed_to, is_const):
    assert _is_const(pointed_to) == is_const
