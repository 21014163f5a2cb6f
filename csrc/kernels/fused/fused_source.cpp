// Generates the CUDA C++ of a chain: one line per instruction, which calls the functors.
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
    case DType::kBool: break;
  }
  return "bool";
}

std::string expression(const FusedInstruction& instruction) {
  const ElementwiseOp op = instruction.op;
  const auto value = [&](int k) { return message("v", instruction.inputs[k]); };
  if (op == ElementwiseOp::kCopy) return value(0);
  if (op == ElementwiseOp::kCast) return message("cast_to<", element_type(instruction.out_dtype), ">(", value(0), ")");
  if (op == ElementwiseOp::kWhere) return message(value(0), " ? ", value(1), " : ", value(2));
  const int arity = info(op).arity;
  const std::string third = arity > 2 ? message(", ", value(2)) : "";
  const std::string operands = message("(", value(0), ", ", value(arity > 1 ? 1 : 0), third, ")");
  if (is_comparison(op)) return message("holds(outcomes(", enumerator(op), "), ", operands.substr(1));
  return message("evaluate<", enumerator(op), ">", operands);
}

constexpr const char* kHead = R"(#include "kernels/fused/fused_element.cuh"

using namespace rooflab;
using namespace rooflab::kernels;
using enum ElementwiseOp;

extern "C" __global__ void __launch_bounds__(kFusedThreads)
    fused_cuda_v1_nvrtc_kernel(const __grid_constant__ FusedLaunch launch) {
)";

constexpr const char* kElements =
    R"(  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kFusedThreads + threadIdx.x) * kWidth;
  if (begin >= launch.count) return;
  const int valid = static_cast<int>(launch.count - begin < kWidth ? launch.count - begin : kWidth);
)";

// The row of a block.
constexpr const char* kRow = R"(  const int64_t row = blockIdx.x;
  for (int64_t column = threadIdx.x * kWidth; column < launch.columns; column += kFusedThreads * kWidth) {
  const int64_t begin = row * launch.columns + column;
  const int valid = kWidth;
)";

const char* reduction_type(ReduceOp op) {
  return op == ReduceOp::kMax ? "Largest" : op == ReduceOp::kMin ? "Smallest" : "Total";
}

class Source {
 public:
  explicit Source(const FusedProgram& program) : program_(program) {}

  // Loads of the operands, and instructions and stores of their elements.
  void add_elements() {
    for (int k = 0; k < program_.operands; ++k)
      add("  const auto operand", k, " = load<", element_type(program_.operand_dtypes[k]),
          ", kWidth>(launch, launch.operands[", k, "], begin, valid);\n");
    for_results(false, [&](int k, const char* type, int) { add("  Pack<", type, ", kWidth> result", k, ";\n"); });
    for_reductions(
        [&](int r, ReduceOp op, const std::string& type) { add("  ", type, " run", r, " = ", identity(op), ";\n"); });
    add("#pragma unroll\n  for (int i = 0; i < kWidth; ++i) {\n");
    for (int k = 0; k < program_.operands; ++k) add("    const auto v", k, " = widen(operand", k, ".values[i]);\n");
    for (int k = 0; k < program_.instructions; ++k)
      add_instruction("    ", program_.instruction[k], program_.first_made() + k);
    for_results(false, [&](int k, const char* type, int value) {
      add("    result", k, ".values[i] = narrow<", type, ">(v", value, ");\n");
    });
    for_reductions([&](int r, ReduceOp op, const std::string&) {
      add("    run", r, " = ", reduction_type(op), "::join(run", r, ", v", program_.reduction[r].input, ");\n");
    });
    add("  }\n");
    for_reductions([&](int r, ReduceOp op, const std::string&) {
      add("  total", r, " = ", reduction_type(op), "::join(total", r, ", decltype(total", r, ")(run", r, "));\n");
    });
    for_results(false, [&](int k, const char*, int) {
      add("  store(launch.results[", k, "], begin, valid, result", k, ");\n");
    });
  }

  void add_numbers() {
    for (int k = 0; k < program_.numbers; ++k)
      add("  const auto v", program_.operands + k, " = scalar_as<compute_t<", element_type(program_.number_dtypes[k]),
          ">>(launch.numbers[", k, "]);\n");
  }

  // Sums are totals of short runs, in double: a row may be long, and its numbers alike.
  void declare_totals() {
    for_reductions([&](int r, ReduceOp op, const std::string& type) {
      add("  ", is_sum(op) ? "double" : type, " total", r, " = ", identity(op), ";\n");
    });
  }

  // The block's reductions, and what one thread computes from them.
  void add_row() {
    for_reductions([&](int r, ReduceOp op, const std::string& type) {
      add("  const ", type, " v", program_.first_of_row() + r, " = static_cast<", type, ">(join_block<",
          reduction_type(op), ">(total", r, ")", op == ReduceOp::kMean ? " / launch.columns" : "", ");\n");
    });
    add("  if (threadIdx.x > 0) return;\n");
    for (int k = 0; k < program_.operands; ++k)
      if (is_read_by_rows(k))
        add("  const auto v", k, " = widen(load<", element_type(program_.operand_dtypes[k]),
            ", 1>(launch, launch.operands[", k, "], row * launch.columns, 1).values[0]);\n");
    for (int k = 0; k < program_.row_instructions; ++k)
      add_instruction("  ", program_.row_instruction[k], program_.first_row_made() + k);
    for_results(true, [&](int k, const char* type, int value) {
      add("  static_cast<", type, "*>(launch.results[", k, "])[row] = narrow<", type, ">(v", value, ");\n");
    });
  }

  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += message(parts...);
  }

  std::string text() const { return text_; }

 private:
  static const char* identity(ReduceOp op) {
    if (op == ReduceOp::kMax) return "-kInfinity";
    return op == ReduceOp::kMin ? "kInfinity" : "0";
  }

  bool is_read_by_rows(int operand) const {
    for (int k = 0; k < program_.row_instructions; ++k)
      for (int i = 0; i < info(program_.row_instruction[k].op).arity; ++i)
        if (program_.row_instruction[k].inputs[i] == operand) return true;
    return false;
  }

  void add_instruction(const char* indent, const FusedInstruction& instruction, int value) {
    add(indent, "const compute_t<", element_type(instruction.out_dtype), "> v", value, " = ", expression(instruction),
        ";\n");
  }

  static bool is_sum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kMean; }

  // Calls visit(number, op, the type of its elements).
  template <class Visit>
  void for_reductions(Visit visit) {
    for (int r = 0; r < program_.reductions; ++r)
      visit(r, program_.reduction[r].op, message("compute_t<", element_type(program_.reduction[r].dtype), ">"));
  }

  template <class Visit>
  void for_results(bool of_rows, Visit visit) {
    for (int k = 0; k < program_.results; ++k)
      if (const int value = program_.result_values[k]; (value >= program_.first_of_row()) == of_rows)
        visit(k, element_type(program_.dtype_of(value)), value);
  }

  const FusedProgram& program_;
  std::string text_;
};

}  // namespace

std::string fused_source(const FusedProgram& program, int width) {
  Source source(program);
  source.add("constexpr int kWidth = ", width, ";\n", kHead);
  if (program.reductions == 0) {
    source.add(kElements);
    source.add_numbers();
    source.add_elements();
  } else {
    source.add_numbers();
    source.declare_totals();
    source.add(kRow);
    source.add_elements();
    source.add("  }\n");
    source.add_row();
  }
  source.add("}\n");
  return source.text();
}

const std::vector<std::pair<std::string, std::string>>& fused_headers() {
  static const auto& headers = *[] {
    auto* made = new std::vector<std::pair<std::string, std::string>>;
    for (const auto& [name, text] : kEmbeddedHeaders) made->emplace_back(name, text);
    // What the prelude replaces: the standard library, and the parts of the core that a kernel does not need.
    for (const char* name :
         {"array", "bit", "cmath", "cstddef", "cstdint", "cstdlib", "type_traits", "core/device.h", "core/shape.h"})
      made->emplace_back(name, "#include \"kernels/fused/nvrtc_prelude.h\"\n");
    return made;
  }();
  return headers;
}

const std::vector<std::string>& fused_options() {
  // 1097: warnings about attributes of the host's compiler.
  static const auto& options = *new std::vector<std::string>{"-std=c++20", "-default-device", "-diag-suppress=1097"};
  return options;
}

}  // namespace rooflab::kernels
