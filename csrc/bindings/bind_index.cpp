// t[i, 2:5, ..., None]: integers, slices, one Ellipsis and None, all views; and assignment through such a view.
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

std::vector<IndexStep> steps_of(const Tensor& self, const py::object& index) {
  const py::tuple items = py::isinstance<py::tuple>(index) ? py::tuple(index) : py::make_tuple(index);
  int used = 0, ellipses = 0;
  for (py::handle item : items) {
    if (item.ptr() == Py_Ellipsis)
      ++ellipses;
    else if (!item.is_none())
      ++used;
  }
  if (ellipses > 1) throw py::index_error("an index can only have one ellipsis ('...')");
  if (used > self.ndim()) throw py::index_error(message("too many indices (", used, ") for shape ", self.shape()));
  std::vector<IndexStep> steps;
  int dim = 0, from = 0;  // of the view so far, and of self
  for (py::handle item : items) {
    if (item.ptr() == Py_Ellipsis) {
      dim += self.ndim() - used;
      from += self.ndim() - used;
    } else if (item.is_none()) {
      steps.push_back({IndexStep::kInsert, dim++});
    } else if (PySlice_Check(item.ptr())) {
      steps.push_back(slice_step(dim++, self.size(from++), item));
    } else if (is_integer(item) && !py::isinstance<Tensor>(item)) {
      steps.push_back({IndexStep::kSelect, dim, PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError)});
      ++from;
    } else {
      throw py::index_error(message("[index] expected integers, slices, '...' or None, got ",
                                    std::string(py::str(py::type::of(item).attr("__name__")))));
    }
    if (PyErr_Occurred()) throw py::error_already_set();
  }
  return steps;
}

}  // namespace

py::object get_item(const Tensor& self, const py::object& index) {
  return py::cast(rooflab::index(self, steps_of(self, index)));
}

void set_item(const Tensor& self, const py::object& index, const py::object& value) {
  const std::vector<IndexStep> steps = steps_of(self, index);
  if (py::isinstance<Tensor>(value))
    set_index(self, steps, value.cast<const Tensor&>());
  else if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()))
    set_index(self, steps, value.cast<Scalar>());
  else
    set_index(self, steps, from_array(value, self.dtype(), self.device()));
}

}  // namespace rooflab
