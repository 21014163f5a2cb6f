#include "core/cuda_module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/mutex.h"

namespace rooflab::cuda {
namespace {

// The parts of nvrtc.h that are used, because builds without the toolkit lack that header.
struct Nvrtc {
  using Program = void*;
  using Result = int;  // 0: success
  static constexpr Result kInvalidOption = 5;
  static constexpr Result kCompilationFailed = 6;

  template <class F>
  static F* load(const char* name) {
    return nvrtc().symbol<F>(name);
  }
  using Create = Result(Program*, const char* source, const char* name, int, const char* const*, const char* const*);
  using Compile = Result(Program, int, const char* const* options);
  using Size = Result(Program, size_t*);
  using Text = Result(Program, char*);
  Create* create = load<Create>("nvrtcCreateProgram");
  Compile* compile = load<Compile>("nvrtcCompileProgram");
  Result (*destroy)(Program*) = load<Result(Program*)>("nvrtcDestroyProgram");
  const char* (*describe)(Result) = load<const char*(Result)>("nvrtcGetErrorString");
  Size* log_size = load<Size>("nvrtcGetProgramLogSize");
  Text* log = load<Text>("nvrtcGetProgramLog");
  Size* image_size = load<Size>("nvrtcGetCUBINSize");
  Text* image = load<Text>("nvrtcGetCUBIN");
  Size* ptx_size = load<Size>("nvrtcGetPTXSize");
  Text* ptx = load<Text>("nvrtcGetPTX");

  void check(Result result) const {
    if (result != 0) throw CudaError(message("NVRTC failed: ", describe(result)));
  }

  std::string read(Program program, Size* size, Text* text) const {
    size_t bytes = 0;
    check(size(program, &bytes));
    std::string out(bytes, '\0');
    check(text(program, out.data()));
    return out;
  }

  // Texts include their terminating zero.
  std::string read_text(Program program, Size* size, Text* text) const {
    std::string out = read(program, size, text);
    while (!out.empty() && (out.back() == '\0' || out.back() == '\n')) out.pop_back();
    return out;
  }
};

const Nvrtc& api() {
  static const Nvrtc functions;
  return functions;
}

}  // namespace

const std::string& keep_name(const std::string& name) {
  static Mutex mutex(LockOrder::kTables);
  static std::set<std::string>& names = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  return *names.insert(name).first;
}

Compilation compile(const std::string& source, const std::vector<std::string>& options, const Headers& headers) {
  const Nvrtc& nvrtc = api();
  Nvrtc::Program program = nullptr;
  std::vector<const char*> names, texts;
  for (const auto& [name, text] : headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  const int count = static_cast<int>(headers.size());
  nvrtc.check(nvrtc.create(&program, source.c_str(), "source", count, texts.data(), names.data()));
  const auto destroy = [&](Nvrtc::Program* made) { nvrtc.destroy(made); };
  const std::unique_ptr<Nvrtc::Program, decltype(destroy)> owner(&program, destroy);

  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const Nvrtc::Result result = nvrtc.compile(program, static_cast<int>(arguments.size()), arguments.data());
  Compilation made;
  made.log = nvrtc.read_text(program, nvrtc.log_size, nvrtc.log);
  if (result == Nvrtc::kCompilationFailed) return made;
  RL_CHECK(result != Nvrtc::kInvalidOption, "compile", "options: ", made.log);
  if (result != 0)
    throw CudaError(message("NVRTC failed: ", nvrtc.describe(result), made.log.empty() ? "" : ": ", made.log));
  made.image = nvrtc.read(program, nvrtc.image_size, nvrtc.image);
  made.ptx = nvrtc.read_text(program, nvrtc.ptx_size, nvrtc.ptx);
  if (made.image.empty()) throw CudaError("NVRTC made no machine code: name an architecture such as sm_80");
  return made;
}

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // demangling would read "h" as the type unsigned char
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? name.get() : symbol;
}

namespace {

Mutex loading(LockOrder::kModules);

}  // namespace

Module::~Module() {
  if (!library_) return;
  try {
    for (int device : devices_) synchronize(device);  // a kernel of the library may be running
  } catch (const CudaError&) {                        // the context is lost, so nothing runs in it
  }
  unload_library(library_);
}

LoadedKernel Module::load(const std::string& symbol, int device) {
  std::lock_guard lock(loading);
  if (std::find(devices_.begin(), devices_.end(), device) == devices_.end()) devices_.push_back(device);
  if (!library_) library_ = load_library(image_, device);
  return load_kernel(library_, symbol, device);
}

Kernel::Kernel(std::shared_ptr<Module> module, std::string symbol, const std::string& name)
    : module_(std::move(module)), symbol_(std::move(symbol)), name_(keep_name(name)) {}

void Kernel::launch(const LaunchShape& shape, void** arguments, int device) {
  const OnDevice scope(device);
  const LoadedKernel* loaded = nullptr;
  for (const LoadedKernel& known : loaded_)
    if (known.device == device) loaded = &known;
  if (!loaded) loaded = &loaded_.emplace_back(module_->load(symbol_, device));
  const Stream stream = current_stream(device);
  observe(LaunchRecord::kKernel, name_.c_str(), {Device::Type::kCuda, static_cast<int8_t>(device)}, stream, 1,
          [&] { launch_kernel(*loaded, name_.c_str(), shape, arguments, stream); });
}

}  // namespace rooflab::cuda
