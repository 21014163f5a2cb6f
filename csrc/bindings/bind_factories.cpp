// Functions that make a tensor from only its shape: zeros and the like, zeros_like and the like, arange, linspace, eye,
// random numbers.
#include <algorithm>
#include <cmath>
#include <functional>

#include "bindings/bindings.h"
#include "bindings/docs_factories.h"
#include "bindings/unrecorded.h"
#include "core/target.h"
#include "ops/arithmetic.h"
#include "ops/random.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

std::string like_doc(const char* name, const char* what, const char* example) {
  return message("A tensor of the shape, dtype and device of another, ", what, R"doc(.

Parameters
----------
x : Tensor
    Whose shape is taken.
dtype, device : optional
    Used instead of those of `x`.
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

std::string shape_doc(const char* name, const char* what, const char* example) {
  return message(what, R"doc(.

Parameters
----------
args : int
    The sizes, or one tuple of them.
dtype : dtype or str
    Of the elements.
device : str
    "cpu", "cuda:N" or "meta:NAME".
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    For a negative size, a dtype or device that there is not, and a dtype that cannot require grad.
OutOfMemoryError
    When the device has not as much memory.

Examples
--------
>>> rl.)doc",
                 name, example);
}

DType dtype_or(const py::object& dtype, DType otherwise) { return dtype.is_none() ? otherwise : to_dtype(dtype); }
Device device_or(const py::object& device, Device otherwise) {
  return device.is_none() ? otherwise : to_device(device);
}

Tensor with_grad(Tensor made, bool requires_grad) {
  autograd::set_requires_grad(made, requires_grad);
  return made;
}

// Calls `make` with a shape, a dtype and a device. It runs without Python's lock.
template <class Make>
Tensor made_by(const Make& make, const Shape& shape, DType dtype, Device device, bool requires_grad = false) {
  return with_grad(run_without_gil([=] { return make(shape, dtype, Trace::stand_in(device)); }), requires_grad);
}

auto filled_with(Scalar value) {
  return [value](const Shape& shape, DType dtype, Device device) {
    Tensor out = Tensor::empty(shape, dtype, device);
    fill(out, value);
    return out;
  };
}

// What full writes everywhere, and the dtype of the result where none is asked for.
struct Value {
  std::function<Tensor(const Shape&, DType, Device)> make;
  DType dtype;
};

// A number, or a tensor without dimensions, which is converted.
Value value_of(const char* op, const py::object& value) {
  if (!py::isinstance<Tensor>(value)) {
    py::detail::make_caster<Scalar> caster;
    if (!caster.load(value, true))
      throw py::type_error(message("[", op, "] value: expected float or Tensor, got ", type_name(value)));
    const DType dtype = PyBool_Check(value.ptr())    ? DType::kBool
                        : PyIndex_Check(value.ptr()) ? DType::kInt64
                                                     : DType::kFloat32;
    const Scalar number = py::detail::cast_op<Scalar>(caster);
    const auto make = [op, number](const Shape& shape, DType dtype, Device device) {
      check_number(op, number, dtype);
      return filled_with(number)(shape, dtype, device);
    };
    return {make, dtype};
  }
  const Tensor number = value.cast<Tensor>();
  RL_CHECK(number.ndim() == 0, op, "value: expected one number, got a tensor of shape ", number.shape());
  RL_CHECK(!autograd::requires_grad(number), op, "value: requires grad, and would lose its gradient; write .item()");
  const auto make = [number](const Shape& shape, DType dtype, Device device) {
    Tensor out = Tensor::empty(shape, dtype, device);
    copy_into(out, number);
    return out;
  };
  const DType dtype = number.dtype();
  return {make, is_floating(dtype) ? DType::kFloat32 : dtype == DType::kBool ? dtype : DType::kInt64};
}

// zeros(2, 3) and the like.
template <class Make>
auto factory(Make make) {
  return [make](const py::args& shape, const py::object& dtype, const py::object& device, bool requires_grad) {
    return made_by(make, to_shape(shape), dtype_or(dtype, DType::kFloat32), to_device(device), requires_grad);
  };
}

// zeros_like(x) and the like.
template <class Make>
auto like(Make make) {
  return [make](const Tensor& x, const py::object& dtype, const py::object& device, bool requires_grad) {
    return made_by(make, x.shape(), dtype_or(dtype, x.dtype()), device_or(device, x.device()), requires_grad);
  };
}

bool is_whole(const py::object& number) {
  const double value = py::float_(number).cast<double>();
  return value == std::floor(value);
}

// How many numbers arange makes.
int64_t count_of(const py::object& start, const py::object& end, const py::object& step, bool is_integer) {
  const double steps = py::float_(end - start).cast<double>() / py::float_(step).cast<double>();
  RL_CHECK(steps < 0x1p62, "arange", "expected fewer than 2^62 numbers");
  if (is_integer) return static_cast<int64_t>(py::len(py::module_::import("builtins").attr("range")(start, end, step)));
  return std::max<int64_t>(static_cast<int64_t>(std::ceil(steps)), 0);
}

Tensor numbers_up_to(const py::object& first, const py::object& second, const py::object& step, const py::object& dtype,
                     const py::object& device, bool requires_grad) {
  const bool one = second.is_none();
  const py::object start = one ? py::int_(0) : first, end = one ? first : second;
  bool is_integer = true;
  for (const py::object& number : {start, end, step}) {
    if (!PyNumber_Check(number.ptr()))
      throw py::type_error("[arange] expected numbers, got " + std::string(py::repr(number)));
    RL_CHECK(std::isfinite(py::float_(number).cast<double>()), "arange", "expected finite numbers, got ",
             std::string(py::repr(number)));
    is_integer = is_integer && PyIndex_Check(number.ptr());
  }
  RL_CHECK(!step.equal(py::int_(0)), "arange", "step: expected not 0");
  const DType type = !dtype.is_none() ? to_dtype(dtype) : is_integer ? DType::kInt64 : DType::kFloat32;
  RL_CHECK(is_floating(type) || (is_whole(start) && is_whole(step)), "arange", "dtype: ", name(type),
           " would round numbers from ", std::string(py::repr(start)), " by ", std::string(py::repr(step)));
  const Device on = Trace::stand_in(to_device(device));
  const int64_t count = count_of(start, end, step, is_integer);
  const auto from = start.cast<Scalar>(), by = (start + step - start).cast<Scalar>();
  return with_grad(run_without_gil([=] { return rooflab::arange(count, from, by, is_integer, type, on); }),
                   requires_grad);
}

Tensor numbers_between(double start, double end, int64_t steps, const py::object& dtype, const py::object& device,
                       bool requires_grad) {
  RL_CHECK(steps >= 0, "linspace", "steps: expected >= 0, got ", steps);
  RL_CHECK(std::isfinite(start) && std::isfinite(end), "linspace", "expected finite numbers, got ", start, " and ",
           end);
  RL_CHECK(std::isfinite(end - start), "linspace", "expected numbers whose distance is finite, got ", start, " and ",
           end);
  const DType type = dtype_or(dtype, DType::kFloat32);
  const Device on = Trace::stand_in(to_device(device));
  return with_grad(run_without_gil([=] { return linspace(start, end, steps, type, on); }), requires_grad);
}

Tensor eye(int64_t rows, int64_t columns, DType dtype, Device device) {
  const Tensor made = filled_with({})({rows, columns}, dtype, device);
  const int64_t count = std::min(rows, columns);
  fill(made.as_strided({count}, {count > 1 ? columns + 1 : 1}, 0), {1, 1});
  return made;
}

// For tests, which write to a target to see which kernels are chosen there.
void register_target(py::module_& m) {
  py::module_ target = m.def_submodule("_target", "What the choice of kernels goes by.");
  py::class_<CodeArchitecture>(target, "CodeArchitecture", "What the code of a GPU's kernels was compiled for.")
      .def(py::init<int, bool>(), py::arg("number"), py::arg("is_sm90a") = false)
      .def_readonly("number", &CodeArchitecture::number, "80 for sm_80.")
      .def_readonly("is_sm90a", &CodeArchitecture::is_sm90a);
  py::class_<Target>(target, "Target")
      .def_readonly("name", &Target::name)
      .def_readonly("compute_capability", &Target::compute_capability)
      .def_property(
          "code", [](const Target& self) { return self.code; },
          [](Target& self, const CodeArchitecture& code) { self.code = code; })
      .def_readwrite("sm_count", &Target::sm_count)
      .def_readwrite("shared_bytes_of_block", &Target::shared_bytes_of_block)
      .def_readonly("has_fast_bfloat16_dots", &Target::has_fast_bfloat16_dots, "Of a CPU; false on Intel's.");
  target.def(
      "of", [](const py::object& device) { return &target_of(to_device(device)); }, py::arg("device"),
      py::return_value_policy::reference, "The target for which kernels for `device` are chosen.");
}

}  // namespace

void register_factories(py::module_& m) {
  register_target(m);
  const py::arg_v dtype = py::arg("dtype") = "float32", device = py::arg("device") = "cpu";
  const py::arg_v no_dtype = py::arg("dtype") = py::none(), no_device = py::arg("device") = py::none();
  const py::arg_v grad = py::arg("requires_grad") = false;
  const py::arg x("x");
  const py::kw_only named;
  m.def("empty", factory(&Tensor::empty), dtype, device, grad,
        shape_doc("empty", "A tensor whose elements are not set", "(2, 3).shape\n(2, 3)").c_str());
  m.def("zeros", factory(filled_with({})), dtype, device, grad,
        shape_doc("zeros", "A tensor of zeros", "(2).tolist()\n[0.0, 0.0]").c_str());
  m.def("ones", factory(filled_with({1, 1})), dtype, device, grad,
        shape_doc("ones", "A tensor of ones", "(2).tolist()\n[1.0, 1.0]").c_str());
  m.def("randn", factory(&randn), dtype, device, grad,
        shape_doc("randn", "Standard normal numbers; the same on every device for a seed", "(2, 3).shape\n(2, 3)")
            .c_str());
  m.def("rand", factory(&rand), dtype, device, grad,
        shape_doc("rand", "Uniform numbers in [0, 1); the same on every device for a seed", "(2, 3).shape\n(2, 3)")
            .c_str());
  m.def(
      "_rand_at",
      [](const std::pair<uint64_t, uint64_t>& state, const Shape& shape, const py::object& dtype,
         const py::object& device) {
        const RandomState at{state.first, state.second};
        const auto make = [=](const Shape& s, DType t, Device d) { return rand_at(at, s, t, d); };
        return made_by(make, shape, to_dtype(dtype), to_device(device));
      },
      py::arg("state"), py::arg("shape"), named, dtype, device,
      "Like rand, from a position in a sequence that is not that of manual_seed.");
  m.def(
      "full",
      [](const Shape& shape, const py::object& value, const py::object& dtype, const py::object& device, bool grad) {
        const Value of = value_of("full", value);
        return made_by(of.make, shape, dtype_or(dtype, of.dtype), to_device(device), grad);
      },
      py::arg("shape"), py::arg("value"), named, no_dtype, device, grad, kFullDoc);
  m.def(
      "randint",
      [](int64_t low, int64_t high, const Shape& shape, const py::object& dtype, const py::object& device) {
        const auto make = [=](const Shape& s, DType t, Device d) { return randint(low, high, s, t, d); };
        return made_by(make, shape, to_dtype(dtype), to_device(device));
      },
      py::arg("low"), py::arg("high"), py::arg("shape"), named, py::arg("dtype") = "int64", device, kRandintDoc);
  m.def("arange", &numbers_up_to, py::arg("start"), py::arg("end") = py::none(), py::arg("step") = 1, named, no_dtype,
        device, grad, kArangeDoc);
  m.def(
      "meta", [](const std::string& name) { return to_string(meta_device(name)); }, py::arg("name") = "cpu", kMetaDoc);
  m.def("manual_seed", unrecorded("manual_seed", &manual_seed), py::arg("seed"), kSeedDoc);
  m.def("get_rng_state",
        unrecorded("get_rng_state",
                   [] {
                     const RandomState state = random_state();
                     return std::pair(state.seed, state.next_stream);
                   }),
        kGetStateDoc);
  m.def("set_rng_state",
        unrecorded("set_rng_state",
                   [](const std::pair<uint64_t, uint64_t>& state) {
                     set_random_state({state.first, state.second});
                   }),
        py::arg("state"), kSetStateDoc);
  m.def("empty_like", like(&Tensor::empty), x, named, no_dtype, no_device, grad,
        like_doc("empty_like", "whose elements are not set", "(rl.ones(2, 3)).shape\n(2, 3)").c_str());
  m.def("zeros_like", like(filled_with({})), x, named, no_dtype, no_device, grad,
        like_doc("zeros_like", "of zeros", "(rl.ones(2)).tolist()\n[0.0, 0.0]").c_str());
  m.def("ones_like", like(filled_with({1, 1})), x, named, no_dtype, no_device, grad,
        like_doc("ones_like", "of ones", "(rl.zeros(2)).tolist()\n[1.0, 1.0]").c_str());
  m.def("rand_like", like(&rand), x, named, no_dtype, no_device, grad,
        like_doc("rand_like", "of uniform numbers in [0, 1)", "(rl.ones(2, 3)).shape\n(2, 3)").c_str());
  m.def("randn_like", like(&randn), x, named, no_dtype, no_device, grad,
        like_doc("randn_like", "of standard normal numbers", "(rl.ones(2, 3)).shape\n(2, 3)").c_str());
  m.def(
      "full_like",
      [](const Tensor& x, const py::object& value, const py::object& dtype, const py::object& device, bool grad) {
        return like(value_of("full_like", value).make)(x, dtype, device, grad);
      },
      x, py::arg("value"), named, no_dtype, no_device, grad, kFullLikeDoc);
  m.def("linspace", &numbers_between, py::arg("start"), py::arg("end"), py::arg("steps"), named, dtype, device, grad,
        kLinspaceDoc);
  m.def(
      "eye",
      [](int64_t n, std::optional<int64_t> m, const py::object& dtype, const py::object& device, bool requires_grad) {
        const auto make = [](const Shape& s, DType t, Device d) { return eye(s[0], s[1], t, d); };
        return made_by(make, {n, m.value_or(n)}, dtype_or(dtype, DType::kFloat32), to_device(device), requires_grad);
      },
      py::arg("n"), py::arg("m") = py::none(), named, dtype, device, grad, kEyeDoc);
}

}  // namespace rooflab
