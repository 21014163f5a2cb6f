#include "kernels/common/ladder.h"

namespace rooflab::kernels {
namespace {

std::vector<const LadderInfo*>& registry() {
  static std::vector<const LadderInfo*> all;
  return all;
}

}  // namespace

const std::vector<const LadderInfo*>& ladders() { return registry(); }
void register_ladder(const LadderInfo* ladder) { registry().push_back(ladder); }

std::vector<const char*> op_names(const LadderInfo& ladder) {
  return ladder.members.empty() ? std::vector{ladder.op} : ladder.members;
}

const LadderInfo& find_ladder(std::string_view op) {
  for (const LadderInfo* ladder : registry())
    for (const char* name : op_names(*ladder))
      if (op == name) return *ladder;
  throw std::invalid_argument(message("[variants] op: expected one of rl.ops(), got \"", op, "\""));
}

void refuse_variant(const LadderInfo& ladder, const char* op, Device::Type kind, std::string_view variant, bool known) {
  const char* device = kind == Device::Type::kCpu ? "cpu" : "cuda";
  std::string names;
  const char* idea = "";
  for (const VariantInfo& rung : ladder.variants) {
    if (rung.device != kind) continue;
    names += std::string(names.empty() ? "" : ", ") + rung.name;
    if (variant == rung.name) idea = rung.idea;
  }
  RL_CHECK(variant.empty(), op, "variant: ",
           known ? message(variant, " does not accept these operands (", idea, ")")
                 : message("expected one of ", names, " on ", device, "; got \"", variant, "\""));
  throw std::invalid_argument(message("[", op, "] no kernel on ", device, " accepts these operands"));
}

}  // namespace rooflab::kernels
