// CUDA C++ at run time. NVRTC compiles it on any machine; on one with a GPU the result can be loaded and launched.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/counters.h"
#include "core/cuda_runtime.h"

namespace rooflab::cuda {

struct Compilation {
  std::string log;    // of the compiler; line numbers are those of the source, which is called "source" there
  std::string image;  // machine code for the architecture that the options name; "" when the source has errors
  std::string ptx;    // the same as assembly, which names the kernels and the sizes of their parameters
};

// The source finds `headers`, (name, text), when it includes them by name. Throws CudaError when NVRTC is missing or
// fails for reasons of its own.
using Headers = std::vector<std::pair<std::string, std::string>>;
Compilation compile(const std::string& source, const std::vector<std::string>& options, const Headers& headers = {});

// "_Z3addPKfi" -> "add(float const*, int)"; a name that is not mangled is returned as it is.
std::string demangle(const std::string& symbol);

// The same name, for as long as the process lives: records of launches point at it.
const std::string& keep_name(const std::string& name);

// Machine code. A device loads it at the first launch of one of its kernels.
class Module {
 public:
  explicit Module(std::string image) : image_(std::move(image)) {}
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  LoadedKernel load(const std::string& symbol, int device);

 private:
  std::string image_;
  void* library_ = nullptr;
  std::vector<int> devices_;  // that have loaded it
};

class Kernel {
 public:
  Kernel(std::shared_ptr<Module> module, std::string symbol, const std::string& name);

  const std::string& name() const { return name_; }  // lives as long as the process
  const std::shared_ptr<Module>& module() const { return module_; }
  // Launches on the device's current stream, inside the scope of the op. Counts one launch.
  void launch(const LaunchShape& shape, void** arguments, int device);

 private:
  std::shared_ptr<Module> module_;
  std::string symbol_;
  const std::string& name_;
  std::vector<LoadedKernel> loaded_;  // one for each device that has launched it
};

}  // namespace rooflab::cuda
