#include "cli/network_summary.h"

#include "models/models.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::cli;

TEST_CASE("summary of resnet50 at 224: torchvision's and torchinfo's figures") {
  NetworkSummary summary = summarize(*make_model("resnet50", 1000), 224);
  CHECK(summary.model == "resnet50");
  CHECK(summary.parameters == 25557032);
  CHECK(summary.buffers == 53120);  // mean and variance of 26,560 channels
  CHECK(summary.multiply_adds == 4089184256);
  REQUIRE(!summary.layers.empty());
  CHECK(summary.layers.front().name == "conv1");
  CHECK(summary.layers.front().output == std::vector<std::int64_t>{1, 64, 112, 112});
  CHECK(summary.layers.front().parameters == 9408);
  CHECK(summary.layers.front().multiply_adds == 118013952);
  CHECK(summary.layers.back().name == "fc");
  CHECK(summary.layers.back().output == std::vector<std::int64_t>{1, 1000});
  CHECK(summary.layers.back().parameters == 2049000);
  std::int64_t parameters = 0;
  for (const LayerSummary& layer : summary.layers) parameters += layer.parameters;
  CHECK(parameters == summary.parameters);
}

TEST_CASE("summary of a network that takes rows") {
  NetworkSummary summary = summarize(*make_model("toy", 1), 224);
  CHECK(summary.image_size == 0);
  CHECK(summary.parameters == 165);
  CHECK(summary.buffers == 0);
  CHECK(summary.multiply_adds == 150);
}
