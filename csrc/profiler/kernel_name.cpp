#include "profiler/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace rooflab::profiler {
namespace {

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at)) text.erase(at, part.size());
}

// Where the parameter list at the end of the name begins; the name's length if there is none.
size_t parameter_list(const std::string& name) {
  if (!name.ends_with(')')) return name.size();
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at;
  }
  return name.size();
}

}  // namespace

std::string kernel_name(const char* symbol) {
  if (!symbol) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  if (status != 0 || !text) return symbol;
  std::string name = text.get();
  name.resize(parameter_list(name));
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.starts_with("rooflab::")) {
    erase_all(name, "rooflab::kernels::");
    erase_all(name, "rooflab::");
    erase_all(name, "(anonymous namespace)::");
  }
  return name;
}

}  // namespace rooflab::profiler
