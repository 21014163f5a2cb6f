// The text of a Python object, in UTF-8.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace rooflab {

// str(object). Surrogates, which UTF-8 cannot hold, are written as Python shows them: "\udcff".
inline std::string text_of(pybind11::handle object) {
  const pybind11::str text(object);
  PyObject* bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace");
  if (!bytes) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::bytes>(bytes);
}

}  // namespace rooflab
