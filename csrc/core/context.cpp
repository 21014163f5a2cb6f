#include "core/context.h"

namespace rooflab {
namespace {

thread_local Context own;

}  // namespace

Context& context() { return own; }

ModeScope::ModeScope(Mode mode) : outer_(std::exchange(own.mode, std::move(mode))) {}
ModeScope::~ModeScope() { own.mode = std::move(outer_); }

}  // namespace rooflab
