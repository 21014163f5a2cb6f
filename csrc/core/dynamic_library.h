// Libraries that are loaded at first use and never linked, so that one binary imports on every machine.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rooflab {

class DynamicLibrary {
 public:
  // `names` are tried in order. `install` is the end of the error message for a missing library.
  DynamicLibrary(const char* title, std::vector<const char*> names, const char* install)
      : title_(title), names_(std::move(names)), install_(install) {}

  bool is_available();

  // The function `name` of type F; throws CudaError when the library or the function is missing.
  template <class F>
  F* symbol(const char* name) {
    return reinterpret_cast<F*>(find(name));
  }

 private:
  void open();
  void* find(const char* name);

  const char* title_;
  std::vector<const char*> names_;
  const char* install_;
  std::once_flag once_;
  void* handle_ = nullptr;
};

DynamicLibrary& cublaslt();
DynamicLibrary& nvrtc();
DynamicLibrary& cupti();

// A folder to search before the system's own path: the lib folder of an nvidia-* wheel.
void add_library_directory(const std::string& path);

}  // namespace rooflab
