// Signatures and errors of every bound function, in one place. inspect.signature() and help() read the signature. For a
// call whose arguments do not fit, python/rooflab/_arguments.py drops PyTorch's options that change nothing, or says
// which argument does not fit and why, instead of pybind11's list of overloads with all operands printed.
#include <sstream>
#include <unordered_map>
#include <vector>

#include "bindings/bindings.h"

namespace rooflab {
namespace {

struct Function {
  std::string name;  // as errors show it
  PyCFunction call;  // pybind11's dispatcher
  PyObject* record;  // what the dispatcher gets as `self`
};

// Keyed by the `__self__` of each function. That is a module object, as in Python's own functions: help() would call a
// function with another `__self__` a method of it. Never destroyed: functions outlive static objects.
std::unordered_map<PyObject*, Function>& functions() {
  static auto* all = new std::unordered_map<PyObject*, Function>;
  return *all;
}

bool is_about_arguments(const std::string& text) {
  return text.find("incompatible function arguments") != text.npos ||
         text.find("incompatible constructor arguments") != text.npos ||
         text.find("Unable to cast Python instance") != text.npos;
}

// What a call gives that has raised an error. If its arguments do not fit, it is made again without PyTorch's options
// that change nothing; if there are none, a sentence replaces the error. Errors with a traceback are left alone,
// because Python code raised them, such as the backward of a user's Function.
template <class Arguments, class Again>
PyObject* after_error(PyObject* self, const Arguments& arguments, const Again& again) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_RuntimeError)) return nullptr;
  py::error_already_set error;
  try {
    const std::string text = error.trace() ? "" : py::str(error.value());
    const std::string& name = functions().at(self).name;
    if (text.starts_with("expected ") && error.matches(PyExc_TypeError)) {
      PyErr_SetString(PyExc_TypeError, message("[", name, "] ", text).c_str());
    } else if (is_about_arguments(text)) {
      const auto [args, kwargs] = arguments();
      const auto words = py::module_::import("rooflab._arguments");
      const py::object wanted = words.attr("without_idle_options")(name, text, kwargs);
      if (!wanted.is_none()) return again(args, py::dict(wanted));
      PyErr_SetObject(PyExc_TypeError, words.attr("explain")(name, text, args, kwargs).ptr());
    } else {
      error.restore();
    }
  } catch (const std::exception&) {  // no exception may leave a function that Python calls
    error.restore();
  }
  return nullptr;
}

PyObject* call_packed(PyObject* self, PyObject* args, PyObject* kwargs) {
  const Function& function = functions().at(self);
  const auto call = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(function.call));
  if (PyObject* result = call(function.record, args, kwargs)) return result;
  return after_error(
      self,
      [&] {
        return std::pair(py::reinterpret_borrow<py::tuple>(args),
                         kwargs ? py::reinterpret_borrow<py::dict>(kwargs) : py::dict());
      },
      [&](const py::tuple& all, const py::dict& fewer) { return call_packed(self, all.ptr(), fewer.ptr()); });
}

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

PyObject* call_fast(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const Function& function = functions().at(self);
  const auto call = reinterpret_cast<FastCall>(reinterpret_cast<void*>(function.call));
  if (PyObject* result = call(function.record, args, count, names)) return result;
  return after_error(
      self,
      [&] {
        py::tuple positional(count);
        for (Py_ssize_t i = 0; i < count; ++i) positional[i] = py::reinterpret_borrow<py::object>(args[i]);
        py::dict keywords;
        for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
          keywords[PyTuple_GET_ITEM(names, i)] = py::reinterpret_borrow<py::object>(args[count + i]);
        return std::pair(positional, keywords);
      },
      [&](const py::tuple&, const py::dict& fewer) {
        std::vector<PyObject*> all(args, args + count);
        py::tuple left(fewer.size());
        for (const auto& [name, value] : fewer) {
          left[all.size() - count] = name;
          all.push_back(value.ptr());
        }
        return call_fast(self, all.data(), count, left.ptr());
      });
}

// Turns "x: rooflab._core.Tensor, dim: int = -1" into "x, dim=-1".
std::string without_types(std::string_view parameters) {
  std::string out;
  int depth = 0;
  char quote = 0;
  bool in_type = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const char c = parameters[i];
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(' || c == '{') {
      ++depth;
    } else if (c == ']' || c == ')' || c == '}') {
      --depth;
    } else if (depth == 0 && c == ':') {
      in_type = true;
    } else if (depth == 0 && (c == ',' || c == '=')) {
      if (c == '=' && !out.empty() && out.back() == ' ') out.pop_back();
      in_type = false;
      out += c;
      if (c == '=' && i + 1 < parameters.size() && parameters[i + 1] == ' ') ++i;
      continue;
    }
    if (!in_type) out += c;
  }
  return out;
}

// The parameters in the line "name(parameters) -> result" of the documentation; for several overloads only if all have
// the same parameters.
std::optional<std::string> parameters_of(std::string_view name, std::string_view doc) {
  std::optional<std::string> found;
  for (size_t begin = 0; begin < doc.size();) {
    const size_t end = std::min(doc.find('\n', begin), doc.size());
    std::string_view line = doc.substr(begin, end - begin);
    begin = end + 1;
    const size_t number = line.find(". ");
    if (number != line.npos && number < 3 && number > 0 && line[0] >= '1' && line[0] <= '9')
      line.remove_prefix(number + 2);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != "(") continue;
    const size_t close = line.rfind(") -> ");
    if (close == line.npos) continue;
    const std::string parameters = without_types(line.substr(name.size() + 1, close - name.size() - 1));
    if (found && *found != parameters) return "*args, **kwargs";
    found = parameters;
  }
  return found;
}

// The documentation without pybind11's lines, if there is more: the signature stands before it anyway, and the types in
// its list of parameters. Those lines are "name(parameters) -> result", and for overloads "2. name(...) -> result" too.
std::string without_signatures(const std::string& name, const std::string& doc) {
  std::string text;
  std::istringstream lines(doc);
  for (std::string line; std::getline(lines, line);) {
    const size_t number = std::min(line.find_first_not_of("0123456789"), line.size());
    const std::string_view rest = std::string_view(line).substr(line.compare(number, 2, ". ") == 0 ? number + 2 : 0);
    const bool is_signature = rest.starts_with(name + "(") && rest.find(") -> ") != rest.npos;
    const bool is_head = line == name + "(*args, **kwargs)" || line == "Overloaded function.";
    const bool is_second_blank = line.empty() && (text.empty() || text.ends_with("\n\n"));
    if (!is_signature && !is_head && !is_second_blank) text += line + "\n";
  }
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? doc : text;
}

void adopt(PyObject* object, const std::string& name) {
  if (PyInstanceMethod_Check(object)) object = PyInstanceMethod_GET_FUNCTION(object);
  if (Py_IS_TYPE(object, &PyStaticMethod_Type)) object = py::handle(object).attr("__func__").ptr();
  if (!PyCFunction_Check(object)) return;
  PyCFunctionObject* function = reinterpret_cast<PyCFunctionObject*>(object);
  if (!function->m_self || functions().contains(function->m_self)) return;
  PyMethodDef* def = function->m_ml;
  const bool is_fast = def->ml_flags & METH_FASTCALL;
  PyObject* self = PyModule_New("rooflab._core");  // one a function, never freed
  if (!self) throw py::error_already_set();
  functions()[self] = {name, def->ml_meth, std::exchange(function->m_self, Py_NewRef(self))};
  def->ml_meth = reinterpret_cast<PyCFunction>(is_fast ? reinterpret_cast<void*>(&call_fast)
                                                       : reinterpret_cast<void*>(&call_packed));
  // The stub generator would take this signature, which has no types, for the one that pybind11 writes.
  static const bool makes_stubs = py::module_::import("sys").attr("modules").contains("pybind11_stubgen");
  if (makes_stubs || !def->ml_doc || !def->ml_name) return;
  if (const std::optional<std::string> parameters = parameters_of(def->ml_name, def->ml_doc))
    def->ml_doc =
        strdup(message(def->ml_name, "(", *parameters, ")\n--\n\n", without_signatures(def->ml_name, def->ml_doc))
                   .c_str());  // never freed
}

void adopt_class(py::handle type) {
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(py::dict(type.attr("__dict__")))) {
    const std::string name = py::str(key);
    const std::string shown = name == "__init__" ? std::string(py::str(type.attr("__name__"))) : name;
    adopt(value.ptr(), shown);
    if (PyObject_TypeCheck(value.ptr(), &PyProperty_Type))
      for (const char* part : {"fget", "fset"})
        if (const py::object accessor = value.attr(part); !accessor.is_none()) adopt(accessor.ptr(), shown);
  }
}

}  // namespace

std::string method_doc(const char* name, const std::string& doc, const std::vector<std::string>& parameters) {
  return py::str(py::module_::import("rooflab._method_docs").attr("of_method")(doc, name, name, parameters));
}

void adopt_functions(const py::module_& m) {
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(m.attr("__dict__"))) {
    if (PyModule_Check(value.ptr()) &&
        py::str(value.attr("__name__")).cast<std::string>().starts_with("rooflab._core."))
      adopt_functions(py::reinterpret_borrow<py::module_>(value));
    else if (PyType_Check(value.ptr()))
      adopt_class(value);
    else
      adopt(value.ptr(), py::str(key));
  }
}

}  // namespace rooflab
