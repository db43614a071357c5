#include "cli/network_summary.h"

namespace convoy::cli {

NetworkSummary summarize(const Network& network, std::int64_t image_size) {
  NetworkSummary summary;
  summary.model = network.name();
  summary.image_size = network.takes_rows() ? 0 : image_size;
  summary.parameters = network.parameter_count();
  for (const auto& [name, buffer] : network.named_buffers()) summary.buffers += buffer.numel();
  const std::vector<Shape> outputs = network.output_shapes(1, image_size);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, module, inputs] = network.layers()[i];
    std::int64_t work = module->multiply_adds(network.input_shapes(i, outputs, 1, image_size));
    summary.layers.push_back(
        {name, module->describe(), outputs[i].extents(), module->parameter_count(), work});
    summary.multiply_adds += work;
  }
  return summary;
}

}  // namespace convoy::cli
