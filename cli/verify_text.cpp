#include "cli/verify_text.h"

#include <cmath>

#include "cli/json_lines.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

std::string or_null(const std::string& text) {
  return text.empty() ? "null" : to_json(text);
}

// A tensor that one side lacks is infinitely far off, which JSON cannot say.
void add_largest(JsonObject& object, const std::string& key, const LargestDifference& largest) {
  object.add(key, largest.value);
  object.add_raw(key + "_name", or_null(largest.name));
}

JsonObject largest_json(const VerifyResult& result) {
  JsonObject object{{"loss", result.loss_difference.value},
                    {"grad_norm", result.norm_difference.value}};
  add_largest(object, "gradient", result.gradient);
  add_largest(object, "statistic", result.statistic);
  add_largest(object, "weight", result.weight);
  return object;
}

std::string verify_json(const Options& options, const VerifyResult& result) {
  const Settings& settings = options.settings;
  JsonObject line{{"type", "verify"},
                  {"equal", result.equal},
                  {"bitwise", true},
                  {"steps", result.steps},
                  {"compared", result.compared},
                  {"model", settings.model},
                  {"bn", settings.bn},
                  {"replicas", settings.replicas},
                  {"stages", settings.stages},
                  {"schedule", settings.schedule},
                  {"loss", result.loss},
                  {"grad_norm", result.grad_norm},
                  {"largest", largest_json(result)}};
  const FirstDifference first = result.first.value_or(FirstDifference());
  line.add_raw("first_layer", or_null(first.layer));
  line.add_raw("first_tensor", or_null(first.tensor));
  line.add_raw("first_phase", or_null(first.phase));
  line.add_raw("first_step", result.first ? to_json(first.step) : "null");
  line.add_raw("first_replica", result.first ? to_json(first.replica) : "null");
  line.add("first_micro_batch", first.micro_batch);
  return line.text();
}

std::string first_text(const FirstDifference& first) {
  std::string text = fmt::format("step {}, {}: {}", first.step, first.phase, first.layer);
  if (!first.tensor.empty()) text += fmt::format(" ({})", first.tensor);
  if (first.micro_batch) text += fmt::format(", micro-batch {}", *first.micro_batch);
  return text + fmt::format(", replica {}", first.replica);
}

std::string largest_text(const char* what, const LargestDifference& largest) {
  if (largest.name.empty()) return fmt::format("  {:<16} equal", what);
  const std::string value = std::isfinite(largest.value) ? fmt::format("{:.3g}", largest.value)
                                                         : std::string("missing or no number");
  return fmt::format("  {:<16} {}, {}", what, value, largest.name);
}

std::vector<std::string> texts_of(const VerifyResult& result) {
  std::vector<std::string> texts = {
      fmt::format("{}: {} steps of the layout and of one device, {} outputs and tensors compared "
                  "bit for bit",
                  result.equal ? "equal" : "not equal", result.steps, result.compared),
      "largest differences:",
      largest_text("loss", result.loss_difference),
      largest_text("gradient norm", result.norm_difference),
      largest_text("gradients", result.gradient),
      largest_text("running values", result.statistic),
      largest_text("weights", result.weight)};
  if (result.first) texts.push_back("first difference: " + first_text(*result.first));
  return texts;
}

}  // namespace

std::vector<std::string> verify_lines(const Options& options, const VerifyResult& result) {
  if (options.json) return {verify_json(options, result)};
  return texts_of(result);
}

void check_equal(const VerifyResult& result) {
  if (result.equal) return;
  CONVOY_FAIL(numerics, "the layout is not equal to one device: {}",
              first_text(result.first.value_or(FirstDifference())));
}

}  // namespace convoy::cli
