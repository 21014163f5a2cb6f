// The CUDA C++ of a chain: a line for each instruction, in the functors' own words.
#include <algorithm>

#include "core/error.h"
#include "kernels/fused/embedded_headers.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels {
namespace {

// The enumerator of an op: "mul" is kMul.
std::string enumerator(ElementwiseOp op) {
  std::string text = "k";
  bool capital = true;
  for (const char* letter = info(op).name; *letter; ++letter) {
    if (*letter != '_') text += static_cast<char>(capital ? *letter - 'a' + 'A' : *letter);
    capital = *letter == '_';
  }
  return text;
}

const char* element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return "double";
    case DType::kFloat32: return "float";
    case DType::kFloat16: return "Half";
    case DType::kBFloat16: return "BFloat16";
    case DType::kInt64: return "int64_t";
    case DType::kInt32: return "int32_t";
    default: return "bool";
  }
}

std::string expression(const FusedInstruction& instruction) {
  const ElementwiseOp op = instruction.op;
  const auto value = [&](int k) { return message("v", instruction.inputs[k]); };
  if (op == ElementwiseOp::kCopy) return value(0);
  if (op == ElementwiseOp::kCast) return message("cast_to<", element_type(instruction.out_dtype), ">(", value(0), ")");
  if (op == ElementwiseOp::kWhere) return message(value(0), " ? ", value(1), " : ", value(2));
  const std::string operands = message("(", value(0), ", ", value(info(op).arity - 1), ")");
  if (is_comparison(op)) return message("holds(outcomes(", enumerator(op), "), ", operands.substr(1));
  return message("evaluate<", enumerator(op), ">", operands);
}

constexpr const char* kBegin = R"(#include "kernels/fused/fused_element.cuh"

using namespace rooflab;
using namespace rooflab::kernels;
using enum ElementwiseOp;

extern "C" __global__ void __launch_bounds__(kFusedThreads)
    fused_cuda_v1_nvrtc_kernel(const __grid_constant__ FusedLaunch launch) {
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kFusedThreads + threadIdx.x) * kWidth;
  if (begin >= launch.count) return;
  const int valid = static_cast<int>(launch.count - begin < kWidth ? launch.count - begin : kWidth);
)";

}  // namespace

std::string fused_source(const FusedProgram& program, int width) {
  std::string text = message("constexpr int kWidth = ", width, ";\n", kBegin);
  for (int k = 0; k < program.operands; ++k)
    text += message("  const auto operand", k, " = load<", element_type(program.operand_dtypes[k]),
                    ", kWidth>(launch, launch.operands[", k, "], begin, valid);\n");
  for (int k = 0; k < program.numbers; ++k)
    text += message("  const auto v", program.operands + k, " = scalar_as<compute_t<",
                    element_type(program.number_dtypes[k]), ">>(launch.numbers[", k, "]);\n");
  for (int k = 0; k < program.results; ++k)
    text += message("  Pack<", element_type(program.dtype_of(program.result_values[k])), ", kWidth> result", k, ";\n");
  text += "#pragma unroll\n  for (int i = 0; i < kWidth; ++i) {\n";
  for (int k = 0; k < program.operands; ++k)
    text += message("    const auto v", k, " = widen(operand", k, ".values[i]);\n");
  for (int k = 0; k < program.instructions; ++k)
    text += message("    const compute_t<", element_type(program.instruction[k].out_dtype), "> v",
                    program.first_made() + k, " = ", expression(program.instruction[k]), ";\n");
  for (int k = 0; k < program.results; ++k)
    text += message("    result", k, ".values[i] = narrow<", element_type(program.dtype_of(program.result_values[k])),
                    ">(v", program.result_values[k], ");\n");
  text += "  }\n";
  for (int k = 0; k < program.results; ++k)
    text += message("  store(launch.results[", k, "], begin, valid, result", k, ");\n");
  return text + "}\n";
}

const std::vector<std::pair<std::string, std::string>>& fused_headers() {
  static const auto& headers = *[] {
    auto* made = new std::vector<std::pair<std::string, std::string>>;
    for (const auto& [name, text] : kEmbeddedHeaders) made->emplace_back(name, text);
    // What the prelude stands for: the standard library, and what of the core a kernel has no use for.
    for (const char* name : {"array", "bit", "cmath", "cstddef", "cstdint", "cstdlib", "type_traits", "core/device.h",
                             "core/shape.h", "kernels/common/per_isa.h"})
      made->emplace_back(name, "#include \"kernels/fused/nvrtc_prelude.h\"\n");
    return made;
  }();
  return headers;
}

const std::vector<std::string>& fused_options() {
  // 1097: attributes of the host's compiler.
  static const auto& options = *new std::vector<std::string>{"-std=c++20", "-default-device", "-diag-suppress=1097"};
  return options;
}

}  // namespace rooflab::kernels
