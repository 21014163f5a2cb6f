// Factories made of others: zeros_like and its kin, linspace, eye.
#include "bindings/bindings.h"

namespace rooflab {
namespace {

std::string like_doc(const char* name, const char* what, const char* example) {
  return message("A tensor of the shape, dtype and device of another, ", what, R"doc(.

Parameters
----------
x : Tensor
    Whose shape is taken.
dtype, device : optional
    Others than those of `x`.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    For a dtype that cannot hold such elements, or cannot require grad.

Examples
--------
>>> rl.)doc",
                 name, example);
}

constexpr const char* kFullLikeDoc = R"doc(A tensor of the shape, dtype and device of another, of one value.

Parameters
----------
x : Tensor
    Whose shape is taken.
value : float
    Of every element.
dtype, device : optional
    Others than those of `x`.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    For a value that the dtype cannot hold.

Examples
--------
>>> rl.full_like(rl.ones(2), 0.5).tolist()
[0.5, 0.5])doc";

constexpr const char* kLinspaceDoc = R"doc(Numbers at equal distances from `start` to `end`, both included.

Computed in float64 by NumPy on the CPU and rounded once.

Parameters
----------
start, end : float
    The first and the last number.
steps : int
    How many.
dtype, device : optional
    Of the result.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    (steps,).

Raises
------
ValueError
    When `steps` is negative.

Examples
--------
>>> rl.linspace(0, 1, 5).tolist()
[0.0, 0.25, 0.5, 0.75, 1.0])doc";

constexpr const char* kEyeDoc = R"doc(A matrix with ones on the diagonal and zeros elsewhere. Two launches, of fill.

Parameters
----------
n : int
    Rows.
m : int, optional
    Columns; as many as rows when absent.
dtype, device : optional
    Of the result.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    (n, m).

Raises
------
ValueError
    For negative sizes.

Examples
--------
>>> rl.eye(2).tolist()
[[1.0, 0.0], [0.0, 1.0]])doc";

Tensor filled(const Shape& shape, DType dtype, Device device, Scalar value) {
  Tensor out = Tensor::empty(shape, dtype, device);
  fill(out, value);
  return out;
}

Tensor with_grad(Tensor made, bool requires_grad) {
  autograd::set_requires_grad(made, requires_grad);
  return made;
}

DType dtype_or(const py::object& dtype, DType otherwise) { return dtype.is_none() ? otherwise : to_dtype(dtype); }
Device device_or(const py::object& device, Device otherwise) {
  return device.is_none() ? otherwise : to_device(device);
}

// Each makes a tensor of a shape, a dtype and a device.
template <class Make>
auto like(Make make) {
  return [make](const Tensor& x, const py::object& dtype, const py::object& device, bool requires_grad) {
    return with_grad(make(x.shape(), dtype_or(dtype, x.dtype()), device_or(device, x.device())), requires_grad);
  };
}

}  // namespace

void register_likes(py::module_& m) {
  const py::arg_v no_dtype = py::arg("dtype") = py::none(), no_device = py::arg("device") = py::none();
  const py::arg_v dtype = py::arg("dtype") = "float32", device = py::arg("device") = "cpu";
  const py::arg_v grad = py::arg("requires_grad") = false;
  const py::arg x("x");
  const py::kw_only named;
  const auto constant = [](Scalar value) {
    return like([value](const Shape& s, DType t, Device d) { return filled(s, t, d, value); });
  };
  m.def("empty_like", like(&Tensor::empty), x, named, no_dtype, no_device, grad,
        like_doc("empty_like", "whose elements are not set", "(rl.ones(2, 3)).shape\n(2, 3)").c_str());
  m.def("zeros_like", constant({}), x, named, no_dtype, no_device, grad,
        like_doc("zeros_like", "of zeros", "(rl.ones(2)).tolist()\n[0.0, 0.0]").c_str());
  m.def("ones_like", constant({1, 1}), x, named, no_dtype, no_device, grad,
        like_doc("ones_like", "of ones", "(rl.zeros(2)).tolist()\n[1.0, 1.0]").c_str());
  m.def("rand_like", like(&rand), x, named, no_dtype, no_device, grad,
        like_doc("rand_like", "of uniform numbers in [0, 1)", "(rl.ones(2, 3)).shape\n(2, 3)").c_str());
  m.def("randn_like", like(&randn), x, named, no_dtype, no_device, grad,
        like_doc("randn_like", "of standard normal numbers", "(rl.ones(2, 3)).shape\n(2, 3)").c_str());
  m.def(
      "full_like",
      [](const Tensor& x, Scalar value, const py::object& dtype, const py::object& device, bool requires_grad) {
        return with_grad(filled(x.shape(), dtype_or(dtype, x.dtype()), device_or(device, x.device()), value),
                         requires_grad);
      },
      x, py::arg("value"), named, no_dtype, no_device, grad, kFullLikeDoc);
  m.def(
      "linspace",
      [](double start, double end, int64_t steps, const py::object& dtype, const py::object& device,
         bool requires_grad) {
        RL_CHECK(steps >= 0, "linspace", "steps: expected >= 0, got ", steps);
        const py::object numbers = py::module_::import("numpy").attr("linspace")(start, end, steps);
        return with_grad(from_array(numbers, to_dtype(dtype), to_device(device)), requires_grad);
      },
      py::arg("start"), py::arg("end"), py::arg("steps"), named, dtype, device, grad, kLinspaceDoc);
  m.def(
      "eye",
      [](int64_t n, std::optional<int64_t> m, const py::object& dtype, const py::object& device, bool requires_grad) {
        const int64_t columns = m.value_or(n);
        const Tensor made = filled({n, columns}, to_dtype(dtype), to_device(device), {});
        fill(made.as_strided({std::min(n, columns)}, {columns + 1}, 0), {1, 1});
        return with_grad(made, requires_grad);
      },
      py::arg("n"), py::arg("m") = py::none(), named, dtype, device, grad, kEyeDoc);
}

}  // namespace rooflab
