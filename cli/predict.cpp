// `predict`: image files through a trained network, the five likeliest classes of each.
#include <utility>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/prediction.h"
#include "cli/progress_format.h"
#include "cli/setup.h"
#include "engine/autograd/grad_mode.h"
#include "engine/data/transform.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kGuesses = 5;

std::vector<float> logits_of(const LoadedNetwork& loaded, const Options& options,
                             const std::string& path) {
  std::int64_t side = loaded.image_size;
  std::vector<float> pixels = load_image_for_eval(
      path, static_cast<int>(side), loaded.normalisation, options.settings.max_pixels);
  Tensor weight = loaded.network->parameters().at(0);
  Tensor x = Tensor::from(pixels, {1, 3, side, side}, weight.options());
  return loaded.network->forward(x).to_vector<float>();
}

std::string json_of(const std::string& path, const std::vector<Guess>& guesses,
                    const std::vector<float>& logits, bool with_logits) {
  std::vector<JsonObject> top;
  for (const Guess& guess : guesses) {
    top.push_back(JsonObject().add("class", guess.label).add("name", guess.name).add("p", guess.p));
  }
  JsonObject line;
  line.add("image", path).add("top", top);
  if (with_logits) line.add("logits", logits);
  return line.text();
}

std::string text_of(const std::string& path, const std::vector<Guess>& guesses,
                    const std::vector<float>& logits, bool with_logits) {
  std::string text = printable(path);
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    text +=
        fmt::format("\n{:>3}  {:>8}  {}", i + 1, percent(guesses[i].p), printable(guesses[i].name));
  }
  if (!with_logits) return text;
  text += "\n  logits";
  for (float logit : logits) text += " " + json_number(logit);
  return text;
}

}  // namespace

int run_predict(Options& options) {
  CONVOY_CHECK(!options.operands.empty(), "predict needs an image: convoy predict FILE...");
  check_settings(options);
  LoadedNetwork loaded = load_network(options);
  CONVOY_CHECK(!loaded.network->takes_rows(), "predict: {} takes rows of numbers, not images",
               loaded.network->name());
  NoGradScope no_grad;
  for (const std::string& path : options.operands) {
    std::vector<float> logits = logits_of(loaded, options, path);
    std::vector<Guess> guesses =
        top_guesses({logits.begin(), logits.end()}, loaded.class_names, kGuesses);
    print_notes(std::exchange(loaded.notes, {}));  // an error would have been the only line
    auto to_text = options.json ? json_of : text_of;
    print_line(to_text(path, guesses, logits, options.logits));
  }
  return 0;
}

}  // namespace convoy::cli
