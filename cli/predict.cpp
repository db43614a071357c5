// `predict`: image files through a trained network, the five likeliest classes of each.
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/prediction.h"
#include "cli/progress_format.h"
#include "cli/setup.h"
#include "engine/autograd/grad_mode.h"
#include "engine/data/decode_image.h"
#include "engine/data/transform.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kGuesses = 5;

/// Raw outputs, and whether they were computed in float64: that many digits are told.
struct Logits {
  std::vector<double> values;
  bool wide = false;
};

std::string text_of(const Logits& logits, const char* separator) {
  std::string text;
  for (double value : logits.values) {
    if (!text.empty()) text += separator;
    text += logits.wide ? to_json(value) : to_json(static_cast<float>(value));
  }
  return text;
}

Logits logits_of(Network& network, const Transform& transform, const Image& image) {
  std::vector<float> pixels(static_cast<std::size_t>(transform.count()));
  transform.eval(image, pixels.data());
  const std::int64_t side = image_side(transform);
  Tensor weight = network.parameters().at(0);
  Tensor x = Tensor::from(pixels, {1, 3, side, side}, weight.options());
  Tensor output = network.forward(x);
  return {output.to_vector<double>(), output.dtype() == DType::f64};
}

std::string json_of(const std::string& path, const std::vector<Guess>& guesses,
                    const Logits& logits, bool with_logits) {
  std::vector<JsonObject> top;
  for (const Guess& guess : guesses) {
    top.push_back({{"class", guess.label}, {"name", guess.name}, {"p", guess.p}});
  }
  JsonObject line{{"image", path}, {"top", top}};
  if (with_logits) line.add_raw("logits", "[" + text_of(logits, ",") + "]");
  return line.text();
}

std::string text_of_image(const std::string& path, const std::vector<Guess>& guesses,
                          const Logits& logits, bool with_logits) {
  std::string text = printable(path);
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    text +=
        fmt::format("\n{:>3}  {:>8}  {}", i + 1, percent(guesses[i].p), printable(guesses[i].name));
  }
  if (!with_logits) return text;
  return text + "\n  logits " + text_of(logits, " ");
}

/// As training tells it of a folder.
std::string rotation_note(std::int64_t images) {
  return fmt::format("{} image{} a rotation (EXIF); pixels are used as stored", images,
                     images == 1 ? " carries" : "s carry");
}

}  // namespace

int run_predict(Options& options) {
  CONVOY_CHECK(!options.operands.empty(), "predict needs an image: convoy predict FILE...");
  check_settings(options);
  TrainedNetwork loaded = read_trained(options, kImageSize);
  CONVOY_CHECK(!takes_rows(loaded.model), "predict: {} takes rows of numbers, not images",
               loaded.model);
  const std::shared_ptr<Network> network = make_network(loaded, options.settings);
  const Transform transform({static_cast<int>(loaded.image_size), loaded.normalisation(),
                             ResizeRule::centre_crop, AugmentRule::none});
  NoGradScope no_grad;
  std::int64_t rotated = 0;
  for (const std::string& path : options.operands) {
    Image image = read_image_file(path, options.settings.max_pixels);
    if (image.rotated) ++rotated;
    Logits logits = logits_of(*network, transform, image);
    std::vector<Guess> guesses = top_guesses(logits.values, loaded.class_names(), kGuesses);
    auto to_line = options.json ? json_of : text_of_image;
    print_line(to_line(path, guesses, logits, options.logits));
  }
  if (rotated > 0) loaded.notes.push_back(rotation_note(rotated));
  print_warnings(device_warnings(options.settings));  // last: an error is to be the only line
  print_notes(options.notes);
  print_notes(loaded.notes);
  return 0;
}

}  // namespace convoy::cli
