#include "engine/autograd/grad_mode.h"

namespace convoy {
namespace {
thread_local bool enabled = true;
}

bool grad_enabled() {
  return enabled;
}

NoGradScope::NoGradScope() : outer_(enabled) {
  enabled = false;
}

NoGradScope::~NoGradScope() {
  enabled = outer_;
}

}  // namespace convoy
