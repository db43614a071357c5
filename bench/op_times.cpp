#include "bench/op_times.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/io/stream_trace.h"

namespace convoy {
namespace {

struct Rule {
  std::string_view head;  // how a kernel's name begins
  const char* name;       // the class
};

// In the order of printing; the first that fits counts.
constexpr std::array kRules = {
    Rule{"conv2d_forward", "conv2d_forward"},
    Rule{"conv2d_input_gradient", "conv2d_input_gradient"},
    Rule{"conv2d_weight_gradient", "conv2d_weight_gradient"},
    Rule{"batch_norm", "batch_norm"},
    Rule{"max_pool2d", "pooling"},
    Rule{"avg_pool2d", "pooling"},
    Rule{"linear", "linear"},
    Rule{"softmax_cross_entropy", "loss"},
    Rule{"mse", "loss"},
    Rule{"sgd_update", "optimizer"},
    Rule{"lars_update", "optimizer"},
    Rule{"adamw_update", "optimizer"},
    Rule{"sum_of_squares", "optimizer"},
    Rule{"unary", "elementwise"},
    Rule{"binary", "elementwise"},
    Rule{"fill", "elementwise"},
    Rule{"scale", "elementwise"},
    Rule{"reduce_sum", "elementwise"},
    Rule{"broadcast", "elementwise"},
    Rule{"cast", "copy"},
    Rule{"copy", "copy"},
    Rule{"reorder", "copy"},
    Rule{"submit_reorder", "copy"},
};
constexpr const char* kOther = "other";

}  // namespace

std::string op_class(const std::string& kernel) {
  const auto* rule = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& candidate) {
    return kernel.starts_with(candidate.head);
  });
  return rule == kRules.end() ? kOther : rule->name;
}

void OpTimes::begin_step() {
  std::lock_guard lock(mutex_);
  first_ = true;
}

void OpTimes::ran(const StreamSpan& span) {
  std::lock_guard lock(mutex_);
  by_kernel_[span.kernel] += std::chrono::duration<double>(span.end - span.begin).count();
  if (!first_ && span.begin - end_ >= kStall) ++stalls_;
  first_ = false;
  end_ = span.end;
}

std::vector<std::pair<std::string, double>> OpTimes::seconds() const {
  std::map<std::string, double> by_class;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [signature, seconds] : by_kernel_) {
      by_class[op_class(kernel_name(signature))] += seconds;
    }
  }
  std::vector<std::pair<std::string, double>> result;
  const auto take = [&](const std::string& name) {
    const auto found = by_class.find(name);
    if (found == by_class.end()) return;
    result.emplace_back(*found);
    by_class.erase(found);
  };
  for (const Rule& rule : kRules) take(rule.name);
  take(kOther);
  return result;
}

std::int64_t OpTimes::stalls() const {
  std::lock_guard lock(mutex_);
  return stalls_;
}

}  // namespace convoy
