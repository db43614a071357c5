// Networks by name: torchvision's names, shapes and counts; initial values; outputs.
#include "models/models.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/slice.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "models/networks.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

// "name extent extent ..." of each entry, sorted: as tests/golden/make_state_dicts.py writes them.
std::vector<std::string> lines_of(const Module& module) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : module.state_dict()) {
    std::string line = name;
    for (std::int64_t extent : tensor.shape().extents()) line += fmt::format(" {}", extent);
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> golden(const std::string& name) {
  std::ifstream file(std::string(CONVOY_GOLDEN) + "/" + name + "_state_dict.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

struct Counts {
  const char* name;
  std::size_t entries;
  std::int64_t values;
};

}  // namespace

TEST_CASE("models: torchvision's names and shapes") {
  NoInitializationScope zeros;
  for (const char* name : {"resnet18", "resnet50"}) {
    INFO("to renew: python tests/golden/make_state_dicts.py tests/golden");
    const std::vector<std::string> expected = golden(name);
    CHECK_FALSE(expected.empty());
    CHECK(lines_of(*make_resnet(name, 1000)) == expected);
  }
}

TEST_CASE("models: torchvision's counts") {
  NoInitializationScope zeros;
  for (const Counts& counts :
       {Counts{"resnet18", 122, 11689512}, Counts{"resnet34", 218, 21797672},
        Counts{"resnet50", 320, 25557032}, Counts{"resnet101", 626, 44549160},
        Counts{"resnet152", 932, 60192808}}) {
    INFO(counts.name);
    const auto network = make_resnet(counts.name, 1000);
    CHECK(network->state_dict().size() == counts.entries);
    CHECK(network->parameter_count() == counts.values);
    CHECK(network->name() == counts.name);
    CHECK(network->out() == 1000);
  }
}

TEST_CASE("models: layers run in the order of torchvision's forward") {
  NoInitializationScope zeros;
  const auto network = make_resnet("resnet50", 10);
  const auto& layers = network->layers();
  CHECK(layers.front().name == "conv1");
  CHECK(layers.back().name == "fc");
  std::set<std::string> names;
  for (const auto& layer : layers) names.insert(layer.name);
  CHECK(names.size() == layers.size());
  const auto join = std::find_if(layers.begin(), layers.end(),
                                 [](const auto& layer) { return layer.name == "layer1.0.bn3"; });
  REQUIRE(join->inputs.size() == 2);
  CHECK(layers[static_cast<std::size_t>(join->inputs[0])].name == "layer1.0.conv3");
  CHECK(layers[static_cast<std::size_t>(join->inputs[1])].name == "layer1.0.downsample.1");
}

TEST_CASE("models: the seed and the name decide the initial values") {
  const auto one = make_model("resnet18", 5, 3), two = make_model("resnet18", 7, 3);
  const auto other = make_model("resnet18", 5, 4), deeper = make_model("resnet34", 5, 3);
  auto value = [](const std::shared_ptr<Network>& network, const std::string& name) {
    for (const auto& [key, tensor] : network->named_parameters()) {
      if (key == name) return tensor.to_vector<float>();
    }
    return std::vector<float>();
  };
  for (const char* name : {"conv1.weight", "layer4.1.conv2.weight"}) {
    CHECK_FALSE(value(one, name).empty());
    CHECK(value(one, name) == value(two, name));
    CHECK(value(one, name) == value(deeper, name));
    CHECK(value(one, name) != value(other, name));
  }
}

TEST_CASE("models: shapes of outputs, whatever the image size") {
  NoGradScope no_grad;
  const auto network = make_model("resnet18", 7);
  network->eval();
  for (std::int64_t size : {32, 33, 64}) {
    CHECK(network->forward(Tensor::zeros({2, 3, size, size})).shape() == Shape{2, 7});
  }
  CHECK(network->forward(Tensor::zeros({1, 3, 40, 72})).shape() == Shape{1, 7});
  CHECK(make_model("toy", 9)->forward(Tensor::zeros({4, 10})).shape() == Shape{4, 5});
  CHECK(make_model("line", 9)->forward(Tensor::zeros({4, 10})).shape() == Shape{4, 1});
  CHECK(make_model("line", 9)->takes_rows());
  CHECK_FALSE(network->takes_rows());
}

TEST_CASE("models: names") {
  CHECK(model_names() == std::vector<std::string>{"resnet18", "resnet34", "resnet50", "resnet101",
                                                  "resnet152", "toy", "line"});
  testing::expect_error(ErrorKind::usage, {"'resnet51'", "resnet50", "line"},
                        [] { make_model("resnet51", 10); });
  testing::expect_error(ErrorKind::usage, {"0 classes"}, [] { make_model("resnet50", 0); });
}

TEST_CASE("models: one value per channel is refused before anything is stored") {
  const auto network = make_model("resnet18", 10);
  testing::expect_error(ErrorKind::usage, {"1 value per channel", "--bn sync"}, [&] {
    network->forward(Tensor::zeros({1, 3, 32, 32}));
  });
}

TEST_CASE("models: a slice allocates and draws its own parameters alone") {
  const Device first = "cpu:6", second = "cpu:7";
  const auto requests = [] { return context("cpu:0").memory().statistics().requests; };
  const std::uint64_t before = requests();
  const auto whole = make_model_without_values("resnet152", 1000);
  CHECK(requests() == before);
  CHECK(whole->parameter_count() == 60192808);
  CHECK(whole->output_shapes(2, 64).back() == Shape{2, 1000});

  const int cut = find_cut(*whole, "layer3.30"), end = static_cast<int>(whole->layers().size());
  NetworkSlice tail(*whole, cut, end);
  std::size_t bytes = 0, largest = 0;
  for (const NamedTensors& each : {tail.named_parameters(), tail.named_buffers()}) {
    for (const auto& [name, tensor] : each) {
      bytes += bytes_of(tensor.shape(), tensor.dtype());
      largest = std::max(largest, bytes_of(tensor.shape(), tensor.dtype()));
    }
  }
  tail.materialize(second, DType::f32, 11);
  CHECK(tail.is_materialized());
  CHECK_FALSE(whole->is_materialized());
  CHECK(requests() == before);
  const MemoryStatistics memory = context(second).memory().statistics();
  CHECK(memory.in_use >= bytes);
  CHECK(memory.in_use < bytes + bytes / 100);                           // blocks are rounded up
  CHECK(memory.peak_in_use < memory.in_use + largest + largest / 100);  // what is being drawn
  CHECK(context(first).memory().statistics().peak_in_use == 0);
}

TEST_CASE("models: materialized slices are make_model, to the last bit") {
  const auto whole = make_model("resnet18", 5, 3);
  const auto parts = make_model_without_values("resnet18", 5);
  const int cut = find_cut(*parts, "layer2.0.downsample"),
            end = static_cast<int>(parts->layers().size());
  NetworkSlice(*parts, 0, cut).materialize("cpu:0", DType::f32, 3);
  NetworkSlice(*parts, cut, end).materialize("cpu:1", DType::f32, 3);
  const NamedTensors made = parts->state_dict(), expected = whole->state_dict();
  REQUIRE(made.size() == expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    INFO(expected[i].first);
    CHECK(made[i].first == expected[i].first);
    CHECK(made[i].second.to_bytes() == expected[i].second.to_bytes());
  }
}

}  // namespace convoy::testing
