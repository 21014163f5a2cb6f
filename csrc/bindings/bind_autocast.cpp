#include "bindings/bindings.h"
#include "ops/autocast.h"

namespace rooflab {

void register_autocast(py::module_& m) {
  py::module_ autocast = m.def_submodule("_autocast", "What rooflab.autocast stands on.");
  const auto as_object = [](std::optional<DType> low) { return low ? py::object(from_dtype(*low)) : py::none(); };
  const auto as_dtype = [](const py::object& dtype) {
    return dtype.is_none() ? std::nullopt : std::optional(to_dtype(dtype));
  };
  autocast.def(
      "begin", [as_object, as_dtype](const py::object& low) { return as_object(autocast::begin(as_dtype(low))); },
      py::arg("low"), "Begins a context with a low dtype, or None for off; returns that of the context around it.");
  autocast.def(
      "end", [as_dtype](const py::object& before) { autocast::end(as_dtype(before)); }, py::arg("before"),
      "Ends a context; takes what begin() returned.");
  autocast.def(
      "low_dtype", [as_object] { return as_object(autocast::low_dtype()); },
      "The low dtype of this thread's context; None where autocast is off.");
  autocast.def(
      "policies",
      [] {
        std::vector<std::pair<std::string, std::string>> found;
        for (const auto& [op, policy] : autocast::policies())
          found.emplace_back(op, policy == autocast::Policy::kLow ? "low" : "float32");
        return found;
      },
      "The ops whose dtype does not follow from their operands, with \"low\" or \"float32\".");
}

}  // namespace rooflab
