// The CUDA runtime of a build without CUDA: it has no device.
#include "core/cuda_runtime.h"
#include "core/error.h"

namespace rooflab::cuda {
namespace {

constexpr const char* kWhy = "no CUDA device can be used: rooflab was built without CUDA (install nvcc and reinstall)";
[[noreturn]] void refuse() { throw CudaError(kWhy); }

}  // namespace

bool is_available() { return false; }
std::string unavailable() { return kWhy; }
int device_count() { return 0; }
void check_device(int) { refuse(); }
const Properties& properties(int) { refuse(); }
CodeArchitecture code_architecture(int) { refuse(); }
OnDevice::OnDevice(int) { refuse(); }
OnDevice::~OnDevice() = default;
void* allocate(int64_t, int) { refuse(); }
void release(void*, int) {}
int device_of(const void*) { refuse(); }
void copy(void*, const void*, int64_t, int) { refuse(); }
int64_t free_memory(int) { refuse(); }
OutOfRange* out_of_range(int) { refuse(); }
void raise_out_of_range(int) {}
Stream current_stream(int) { return {}; }
void set_current_stream(int, Stream) { refuse(); }
Stream create_stream(int) { refuse(); }
void destroy_stream(Stream) noexcept {}
bool is_alive(Stream) { return true; }
bool is_capturing(Stream) { refuse(); }
void synchronize(int) { refuse(); }
void synchronize(Stream, int) { refuse(); }
NoCapture::NoCapture(int device) : device_(device) { refuse(); }
NoCapture::~NoCapture() = default;
bool NoCapture::holds() const { return true; }
void NoCapture::synchronize() const {}
void wait(Stream, Stream, int) { refuse(); }
Event::Event(int device) : device_(device) { refuse(); }
Event::~Event() = default;
void Event::record(Stream) { refuse(); }
void Event::synchronize() const { refuse(); }
double Event::elapsed_ms(const Event&) const { refuse(); }
void launch(const void*, const char*, const LaunchShape&, void**, Stream) { refuse(); }
void fill(void*, int, int64_t, Stream) { refuse(); }
Submissions count_submissions(int, const std::function<void(Stream)>&) { refuse(); }
void begin_capture(Stream, int) { refuse(); }
void* end_capture(Stream, int) { refuse(); }
void abandon_capture(Stream, int) {}
void launch_graph(void*, int, Stream) { refuse(); }
void destroy_graph(void*) {}
void launch_empty(Stream) { refuse(); }
void* load_library(const std::string&, int) { refuse(); }
void unload_library(void*) {}
LoadedKernel load_kernel(void*, const std::string&, int) { refuse(); }
void launch_kernel(const LoadedKernel&, const char*, const LaunchShape&, void**, Stream) { refuse(); }

}  // namespace rooflab::cuda
