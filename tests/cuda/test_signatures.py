"""Kernels' signatures taken apart, without a compiler."""

import pytest

from rooflab.cuda.signature import _before_parameters, _declaration, _split


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
