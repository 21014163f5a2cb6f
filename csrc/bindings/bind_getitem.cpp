// t[i, 2:5, ..., None] and t[[0, 2], mask]: turns Python's brackets into steps and arrays (ops/index.cpp).
#include "bindings/bindings.h"
#include "ops/ops.h"

namespace rooflab {
namespace {

bool is_integer(py::handle index) { return PyIndex_Check(index.ptr()) && !PyBool_Check(index.ptr()); }

IndexStep slice_step(int dim, int64_t size, py::handle index) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(index.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
  const Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
  return {IndexStep::kSlice, dim, start, count, step};
}

struct Index {
  std::vector<IndexStep> steps;
  std::vector<IndexArray> arrays;
};

// True also for a tensor or NumPy array without dimensions.
bool is_number(py::handle item) {
  if (PyLong_CheckExact(item.ptr())) return true;
  if (py::isinstance<Tensor>(item)) {
    const Tensor& x = item.cast<const Tensor&>();
    return x.ndim() == 0 && !is_floating(x.dtype()) && x.dtype() != DType::kBool;
  }
  if (!is_integer(item) || !py::hasattr(item, "__array__")) return is_integer(item);
  if (item.attr("ndim").cast<int>() > 0) return false;
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
  if (!number) PyErr_Clear();  // one of bool or of floats
  return static_cast<bool>(number);
}

IndexStep select_step(int dim, py::handle item) {
  const Py_ssize_t at = PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError);
  if (PyErr_Occurred()) throw py::error_already_set();
  return {IndexStep::kSelect, dim, at};
}

// Integers or a mask; not defined if it is something else. If it is not a tensor yet, it becomes one on the CPU, where
// it can be checked.
Tensor array_of(py::handle item) {
  const bool holds = py::isinstance<Tensor>(item) || PyList_Check(item.ptr()) || PyTuple_Check(item.ptr()) ||
                     PyRange_Check(item.ptr()) || py::hasattr(item, "__array__");
  if (!holds) return {};
  if (py::isinstance<Tensor>(item)) return item.cast<const Tensor&>();
  const bool is_empty = !py::hasattr(item, "__array__") && PySequence_Size(item.ptr()) == 0;
  const py::object array = py::module_::import("numpy").attr("asarray")(item);
  const bool is_narrow = py::str(array.attr("dtype").attr("kind")).cast<std::string>().find_first_of("iu") == 0;
  return from_array(array, is_empty || is_narrow ? std::optional(DType::kInt64) : std::nullopt, Device{});
}

int dims_of(const Tensor& index) { return index.dtype() == DType::kBool ? index.ndim() : 1; }

Index parse(const Tensor& self, const py::object& index) {
  if (PyLong_CheckExact(index.ptr()) && self.ndim() > 0) return {{select_step(0, index)}, {}};
  const py::tuple items = py::isinstance<py::tuple>(index) ? py::tuple(index) : py::make_tuple(index);
  std::vector<Tensor> arrays;  // one per item; most are not defined
  int used = 0, ellipses = 0;
  for (py::handle item : items) {
    arrays.emplace_back();
    if (item.ptr() == Py_Ellipsis) {
      ++ellipses;
    } else if (!item.is_none()) {
      if (!PySlice_Check(item.ptr()) && !is_number(item)) arrays.back() = array_of(item);
      if (PyBool_Check(item.ptr()) ||
          (arrays.back().defined() && arrays.back().dtype() == DType::kBool && arrays.back().ndim() == 0))
        throw py::index_error(
            "[index] expected no bool alone, which is no mask here; write x[None] for x[True], x[None][:0] for "
            "x[False], and x.masked_fill(mask, value) or rl.where(mask, a, b) for a mask without dimensions");
      used += arrays.back().defined() ? dims_of(arrays.back()) : 1;
    }
  }
  if (ellipses > 1) throw py::index_error("[index] expected one ellipsis ('...') at most");
  if (used > self.ndim())
    throw py::index_error(
        message("[index] expected at most ", self.ndim(), " for shape ", self.shape(), ", got ", used));
  Index parsed;
  int dim = 0, from = 0;  // dimension of the view so far, and of self
  for (size_t i = 0; i < items.size(); ++i) {
    const py::handle item = items[i];
    if (item.ptr() == Py_Ellipsis) {
      dim += self.ndim() - used;
      from += self.ndim() - used;
    } else if (item.is_none()) {
      parsed.steps.push_back({IndexStep::kInsert, dim++});
    } else if (PySlice_Check(item.ptr())) {
      parsed.steps.push_back(slice_step(dim++, self.size(from++), item));
    } else if (is_number(item)) {
      parsed.steps.push_back(select_step(dim, item));
      ++from;
    } else if (const Tensor& array = arrays[i];
               array.defined() && (!is_floating(array.dtype())) && dims_of(array) > 0) {
      parsed.arrays.push_back({dim, array});
      dim += dims_of(array);
      from += dims_of(array);
    } else {
      throw py::index_error(
          message("[index] expected integers, slices, '...', None, or arrays of integers or bool, got ",
                  array.defined() ? name(array.dtype()) : type_name(item)));
    }
  }
  return parsed;
}

}  // namespace

PythonTensor get_item(const Tensor& self, const py::object& index) {
  const Index parsed = parse(self, index);
  if (parsed.arrays.empty()) return py::cast(rooflab::index(self, parsed.steps));
  return py::cast(run_without_gil([=] { return rooflab::index(self, parsed.steps, parsed.arrays); }));
}

void set_item(const Tensor& self, const py::object& index, const py::object& value) {
  const Index parsed = parse(self, index);
  if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr())) {
    const Scalar number = value.cast<Scalar>();
    return run_without_gil([=] { set_index(self, parsed.steps, parsed.arrays, number); });
  }
  const Tensor given =
      py::isinstance<Tensor>(value) ? value.cast<const Tensor&>() : from_array(value, self.dtype(), self.device());
  run_without_gil([=] { set_index(self, parsed.steps, parsed.arrays, given); });
}

}  // namespace rooflab
