#include "core/dynamic_library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace rooflab {
namespace {

std::vector<std::string>& directories() {
  static std::vector<std::string> paths{"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"};
  return paths;
}

}  // namespace

void add_library_directory(const std::string& path) { directories().insert(directories().begin(), path); }

void DynamicLibrary::open() {
  std::call_once(once_, [this] {
    for (const char* name : names_) {
      // If the process already holds a copy (PyTorch's, say), no second copy must be loaded.
      if ((handle_ = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD))) return;
    }
    for (const char* name : names_) {
      for (const std::string& directory : directories())
        if ((handle_ = dlopen((directory + "/" + name).c_str(), RTLD_LAZY | RTLD_LOCAL))) return;
      if ((handle_ = dlopen(name, RTLD_LAZY | RTLD_LOCAL))) return;
    }
  });
}

bool DynamicLibrary::is_available() {
  open();
  return handle_ != nullptr;
}

void* DynamicLibrary::find(const char* name) {
  open();
  if (!handle_) throw CudaError(message(title_, " was not found (", names_.front(), "): ", install_));
  void* address = dlsym(handle_, name);
  if (!address) throw CudaError(message(title_, " has no ", name, ": ", install_));
  return address;
}

DynamicLibrary& cublaslt() {
  static DynamicLibrary library("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"},
                                "install the CUDA toolkit, or pip install nvidia-cublas");
  return library;
}

DynamicLibrary& nvrtc() {
  static DynamicLibrary library("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"},
                                "install the CUDA toolkit, or pip install nvidia-cuda-nvrtc");
  return library;
}

DynamicLibrary& cupti() {
  static DynamicLibrary library("CUPTI", {"libcupti.so.13", "libcupti.so.12"},
                                "install the CUDA toolkit, or pip install nvidia-cuda-cupti");
  return library;
}

}  // namespace rooflab
