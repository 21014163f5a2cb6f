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

)";

constexpr const char* kElements = R"(extern "C" __global__ void __launch_bounds__(kFusedThreads)
    fused_cuda_v1_nvrtc_kernel(const __grid_constant__ FusedLaunch launch) {
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kFusedThreads + threadIdx.x) * kWidth;
  if (begin >= launch.count) return;
  const int valid = static_cast<int>(launch.count - begin < kWidth ? launch.count - begin : kWidth);
)";

constexpr const char* kRows = R"(extern "C" __global__ void __launch_bounds__(kThreads > 32 ? kThreads : kFusedThreads)
    fused_cuda_v1_nvrtc_kernel(const __grid_constant__ FusedLaunch launch, [[maybe_unused]] void* partial) {
  constexpr int kStep = kThreads * kWidth;
  const int columns = static_cast<int>(launch.columns), first_column = threadIdx.x % kThreads * kWidth;
)";

constexpr const char* kOneRow = R"(  const int64_t first_row = int64_t{blockIdx.x} * kBlockRows<kThreads>;
)";

// For sums of columns, so that there are few partial ones.
constexpr const char* kManyRows =
    R"(  for (int64_t first_row = int64_t{blockIdx.x} * kBlockRows<kThreads>; first_row < launch.rows;
       first_row += int64_t{gridDim.x} * kBlockRows<kThreads>) {
  [[maybe_unused]] const bool is_repeated = kThreads <= 32 && first_row + threadIdx.x / kThreads >= launch.rows;
)";

constexpr const char* kRow =
    R"(  const int64_t row = own_row<kThreads>(launch, first_row);
  [[maybe_unused]] const int64_t before = row * launch.columns;
  const auto place = place_of<0, kRowDims>(launch, static_cast<Index>(row));
)";

constexpr const char* kSums = R"(
extern "C" __global__ void __launch_bounds__(kFusedSumThreads)
    fused_cuda_v1_nvrtc_sums_kernel(const __grid_constant__ FusedLaunch launch, const void* partial, int64_t blocks) {
)";

const char* reduction_type(ReduceOp op) {
  return op == ReduceOp::kMax ? "Largest" : op == ReduceOp::kMin ? "Smallest" : "Total";
}

class Source {
 public:
  Source(const FusedProgram& program, const FusedTiling& tiling)
      : program_(program), tiling_(tiling), is_rounded_(rounded_values(program)) {}

  std::string text() {
    add("constexpr int kWidth = ", tiling_.width, ", kDims = ", tiling_.dims, ";\n");
    add("using Index = unsigned ", tiling_.is_long ? "long" : "int", ";\n");
    if (program_.reductions == 0)
      add_elements();
    else
      add_rows();
    add("}\n");
    if (program_.column_sums > 0) add_second_stage();
    return text_;
  }

 private:
  void add_elements() {
    add(kHead, kElements);
    add_numbers();
    if (tiling_.contiguous + 1 != uint32_t{1} << program_.operands)
      add("  const auto place = place_of<0, kDims>(launch, static_cast<Index>(begin));\n");
    for (int k = 0; k < program_.operands; ++k) {
      add("  const auto operand", k, " = ");
      if (tiling_.contiguous >> k & 1)
        add("load_neighbours<", operand_type(k), ", kWidth>(static_cast<const ", operand_type(k), "*>(launch.operands[",
            k, "].data) + begin, valid);\n");
      else if (tiling_.loose >> k & 1)
        add("load_loose<", operand_type(k), ", kWidth, ", repeats(k), ">(launch, launch.operands[", k,
            "], place, valid);\n");
      else
        add("load<", operand_type(k), ", kWidth, ", repeats(k), ">(launch.operands[", k, "], place, valid);\n");
    }
    add_pack(0, "");
  }

  void add_rows() {
    add("constexpr int kThreads = ", tiling_.threads, ", kPacks = ", tiling_.packs, ", kRowDims = ", tiling_.row_dims);
    add(";\n", kHead, kRows);
    add_numbers();
    for_column_sums([&](int k, const std::string& type) { add("  ", type, " sum", k, "[kPacks][kWidth] = {};\n"); });
    add(program_.column_sums > 0 ? kManyRows : kOneRow, kRow);
    for (int k = 0; k < program_.operands; ++k) {
      add("  const auto* row", k, " = find<", operand_type(k), ", 0, ", repeats(k), ", false>(launch.operands[", k,
          "], static_cast<const ", operand_type(k), "*>(launch.operands[", k, "].data), place);\n");
      if (keeps(k)) add_loads(k, "first_column", tiling_.whole);
    }
    for (int k = 0; k < program_.operands; ++k)
      if (is_constant(k)) add("  const auto v", k, " = widen(*row", k, ");\n");
    for (int pass = 0; pass < program_.passes; ++pass) add_pass(pass);
    for_results(program_.passes - 1, true, [&](int k, const char* type, int value) {
      add("  if (first_column == 0) static_cast<", type, "*>(launch.results[", k, "])[row] = narrow<", type, ">(v",
          value, ");\n");
    });
    if (program_.column_sums > 0) add("  }\n");
    for_column_sums([&](int k, const std::string&) {
      add("  store_column_sums<kThreads>(launch, partial, ", k, ", sum", k, ");\n");
    });
  }

  // The kernel that adds the sums that blocks left.
  void add_second_stage() {
    add(kSums);
    for_column_sums([&](int k, const std::string&) {
      add("  if (blockIdx.y == ", k, ") add_blocks<", element_type(program_.column_sum[k].dtype), ">(launch, partial, ",
          "blocks, ", k, ");\n");
    });
    add("}\n");
  }

  void add_numbers() {
    for (int k = 0; k < program_.numbers; ++k)
      add("  const auto v", program_.operands + k, " = scalar_as<compute_t<", element_type(program_.number_dtypes[k]),
          ">>(launch.numbers[", k, "]);\n");
  }

  void add_loads(int k, const char* column, int whole) {
    add("  Packed<", operand_type(k), ", kWidth> operand", k, "[kPacks];\n  load_packs<kStep, ", whole,
        ", kRowDims, kDims, ", repeats(k), ", ", tiling_.adjacent >> k & 1, ">(launch, launch.operands[", k, "], row",
        k, ", ", column, ", operand", k, ");\n");
  }

  // A pass over a row, its reductions, and the instructions on rows that follow.
  void add_pass(int pass) {
    for_reductions(pass, [&](int r, ReduceOp op, const std::string& type) {
      // Partial sums of a row that is read in parts are added in double, which keeps the digits of a long row.
      add("  ", is_sum(op) && !tiling_.keeps ? "double" : type, " total", r, " = ", identity(op), ";\n");
    });
    if (tiling_.keeps) {
      add("  {\n  constexpr int first = 0;\n");
      add_part(pass, tiling_.whole);
      add("  }\n");
    } else {
      add("  {\n  int first = 0;\n  for (; first + kPacks * kStep <= columns; first += kPacks * kStep) {\n");
      add_part(pass, tiling_.packs);
      add("  }\n  for (; first < columns; first += kPacks * kStep) {\n");
      add_part(pass, 0);
      add("  }\n  }\n");
    }
    for_reductions(pass, [&](int r, ReduceOp op, const std::string& type) {
      add("  const ", type, " v", program_.first_of_row() + r, " = static_cast<", type, ">(join_row<",
          reduction_type(op), ", kThreads>(total", r, ")", op == ReduceOp::kMean ? " / launch.columns" : "", ");\n");
    });
    for (int k = 0; k < program_.row_instructions; ++k)
      if (program_.row_instruction[k].pass == pass)
        add_instruction("  ", program_.row_instruction[k], program_.first_row_made() + k);
  }

  // What a thread does with some packs of a row from column `first` on. The first `whole` exist for every thread.
  void add_part(int pass, int whole) {
    const auto is_needed = program_.needed_in(pass);
    for (int k = 0; k < program_.operands; ++k)
      if (is_needed[k] && !keeps(k) && !is_constant(k)) add_loads(k, "first + first_column", whole);
    for_reductions(pass, [&](int r, ReduceOp op, const std::string& type) {
      add("  ", type, " run", r, " = ", identity(op), ";\n");
    });
    add("#pragma unroll\n  for (int pack = 0; pack < kPacks; ++pack) {\n");
    add("  [[maybe_unused]] const int column = first + pack * kStep + first_column;\n");
    add("  [[maybe_unused]] const bool is_there = pack < ", whole, " || column < columns;\n");
    add_pack(pass, "[pack]");
    add("  }\n");
    for_reductions(pass, [&](int r, ReduceOp op, const std::string&) {
      add("  total", r, " = ", reduction_type(op), "::join(total", r, ", decltype(total", r, ")(run", r, "));\n");
    });
  }

  // Instructions, runs of the reductions and stores of a pack of each operand. No branch separates the packs of a row,
  // so that their instructions can be under way together.
  void add_pack(int pass, const char* pack) {
    const auto is_needed = program_.needed_in(pass);
    for_results(pass, false, [&](int k, const char* type, int) { add("  Pack<", type, ", kWidth> result", k, ";\n"); });
    add("#pragma unroll\n  for (int i = 0; i < kWidth; ++i) {\n");
    for (int k = 0; k < program_.operands; ++k)
      if (is_needed[k] && !is_constant(k)) add("    const auto v", k, " = widen(operand", k, pack, "[i]);\n");
    for (int k = 0; k < program_.instructions; ++k)
      if (const int value = program_.first_made() + k; is_needed[value])
        add_instruction("    ", program_.instruction[k], value);
    for_results(pass, false, [&](int k, const char* type, int value) {
      add("    result", k, ".values[i] = narrow<", type, ">(v", value, ");\n");
    });
    for_reductions(pass, [&](int r, ReduceOp op, const std::string&) {
      // Not is_there ? join(...) : run, which the compiler makes a branch around all that the value is made of.
      add("    run", r, " = ", reduction_type(op), "::join(run", r, ", is_there ? v", program_.reduction[r].input,
          " : ", identity(op), ");\n");
    });
    for_column_sums([&](int k, const std::string&) {
      if (const auto& [dtype, own_pass, input] = program_.column_sum[k]; own_pass == pass)
        add("    sum", k, pack, "[i] += is_there && !is_repeated ? v", input, " : 0;\n");
    });
    add("  }\n");
    for_results(pass, false, [&](int k, const char*, int) {
      if (program_.reductions == 0)
        add("  store(launch.results[", k, "], begin, valid, result", k, ");\n");
      else
        add("  if (is_there) store(launch.results[", k, "], before + column, kWidth, result", k, ");\n");
    });
  }

  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += message(parts...);
  }

  int repeats(int k) const { return tiling_.repeats[k]; }
  const char* operand_type(int k) const { return element_type(program_.operand_dtypes[k]); }

  // Whether an operand stays in registers, because more than one pass reads it.
  bool keeps(int operand) const {
    return tiling_.keeps && !is_constant(operand) && program_.passes_that_read(operand) > 1;
  }

  // Whether an operand has one number for each row. Instructions on rows read no others.
  bool is_constant(int operand) const {
    return program_.reductions > 0 && (tiling_.is_constant(operand) || is_read_by_rows(operand));
  }

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
    add(indent, "const compute_t<", element_type(instruction.out_dtype), "> v", value, " = ");
    const bool is_rounded = is_rounded_[value] && is_floating(instruction.dtype);
    if (instruction.op == ElementwiseOp::kMul && is_rounded)
      add("rounded_product(v", instruction.inputs[0], ", v", instruction.inputs[1], ");\n");
    else if (instruction.op == ElementwiseOp::kAdd && is_rounded)
      add("rounded_sum(v", instruction.inputs[0], ", v", instruction.inputs[1], ");\n");
    else if (instruction.op == ElementwiseOp::kSub && is_rounded)
      add("rounded_sum(v", instruction.inputs[0], ", -v", instruction.inputs[1], ");\n");
    else if (instruction.op == ElementwiseOp::kDiv && size_of(instruction.dtype) == 2)
      add("quotient_of_16_bits(v", instruction.inputs[0], ", v", instruction.inputs[1], ");\n");
    else if (instruction.op == ElementwiseOp::kExp && size_of(instruction.dtype) == 2)
      add("exp_of_16_bits(v", instruction.inputs[0], ");\n");
    else
      add(expression(instruction), ";\n");
  }

  // What is reduced, and all that the elements are made of of which one is the largest or smallest: a later pass that
  // makes them anew has to find it among them.
  static FusedProgram::Values rounded_values(const FusedProgram& program) {
    FusedProgram::Values is_rounded{}, is_compared{};
    for (int r = 0; r < program.reductions; ++r) {
      is_rounded[program.reduction[r].input] = true;
      if (!is_sum(program.reduction[r].op)) is_compared[program.reduction[r].input] = true;
    }
    for (int i = program.instructions - 1; i >= 0; --i) {
      const FusedInstruction& instruction = program.instruction[i];
      if (!is_compared[program.first_made() + i]) continue;
      is_rounded[program.first_made() + i] = true;
      for (int k = 0; k < info(instruction.op).arity; ++k) is_compared[instruction.inputs[k]] = true;
    }
    return is_rounded;
  }

  static bool is_sum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kMean; }

  // Calls visit(number, op, the type of its elements) for the reductions of a pass.
  template <class Visit>
  void for_reductions(int pass, Visit visit) {
    for (int r = 0; r < program_.reductions; ++r)
      if (program_.reduction[r].pass == pass)
        visit(r, program_.reduction[r].op, message("compute_t<", element_type(program_.reduction[r].dtype), ">"));
  }

  // Calls visit(number, the type that its elements are added up in).
  template <class Visit>
  void for_column_sums(Visit visit) {
    for (int k = 0; k < program_.column_sums; ++k)
      visit(k, message("compute_t<", element_type(program_.column_sum[k].dtype), ">"));
  }

  template <class Visit>
  void for_results(int pass, bool of_rows, Visit visit) {
    for (int k = 0; k < program_.results; ++k)
      if (const int value = program_.result_values[k];
          program_.is_of_row(value) == of_rows && program_.stored_in(value) == pass)
        visit(k, element_type(program_.dtype_of(value)), value);
  }

  const FusedProgram& program_;
  const FusedTiling& tiling_;
  const FusedProgram::Values is_rounded_;
  std::string text_;
};

}  // namespace

std::string fused_source(const FusedProgram& program, const FusedTiling& tiling) {
  return Source(program, tiling).text();
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
