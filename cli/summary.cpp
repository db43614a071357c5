// `summary`: a table of a network's layers.
#include <algorithm>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/network_summary.h"
#include "cli/progress_format.h"
#include "cli/setup.h"
#include "engine/io/named_array.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kClasses = 1000;

std::string json_of(const NetworkSummary& summary) {
  std::vector<JsonObject> layers;
  for (const LayerSummary& layer : summary.layers) {
    layers.push_back({{"name", layer.name},
                      {"layer", layer.text},
                      {"output", layer.output},
                      {"parameters", layer.parameters},
                      {"multiply_adds", layer.multiply_adds}});
  }
  JsonObject line{{"model", summary.model}};
  if (summary.image_size > 0) line.add("image_size", summary.image_size);
  return line.add("parameters", summary.parameters)
      .add("buffers", summary.buffers)
      .add("multiply_adds", summary.multiply_adds)
      .add("layers", layers)
      .text();
}

std::string text_of(const NetworkSummary& summary) {
  std::size_t names = 5, texts = 5;
  for (const LayerSummary& layer : summary.layers) {
    names = std::max(names, layer.name.size());
    texts = std::max(texts, layer.text.size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  {:<20}{:>12}  {:>15}", "name", names, "layer",
                                 texts, "output", "parameters", "multiply-adds");
  for (const LayerSummary& layer : summary.layers) {
    text += fmt::format("\n{:<{}}  {:<{}}  {:<20}{:>12}  {:>15}", layer.name, names, layer.text,
                        texts, shape_text(layer.output), grouped(layer.parameters),
                        grouped(layer.multiply_adds));
  }
  std::string input =
      summary.image_size > 0 ? fmt::format(" an image of {0} x {0}", summary.image_size) : " a row";
  return text + fmt::format(
                    "\n\n{}: {} parameters, {} values of running statistics, {} "
                    "multiply-adds{}",
                    summary.model, grouped(summary.parameters), grouped(summary.buffers),
                    grouped(summary.multiply_adds), input);
}

}  // namespace

int run_summary(Options& options) {
  check_settings(options);
  const Settings& settings = options.settings;
  std::shared_ptr<Network> network =
      make_model(settings.model, settings.classes.value_or(kClasses), settings.seed);
  NetworkSummary summary = summarize(*network, settings.image_size.value_or(kImageSize));
  print_notes(options.notes);
  print_line(options.json ? json_of(summary) : text_of(summary));
  return 0;
}

}  // namespace convoy::cli
