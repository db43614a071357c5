// The profile of a network: what a node is, that all is measured and that nothing is left behind;
// and the cuts made from it.
#include "engine/parallel/pipeline/profile.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/nn/layers.h"
#include "engine/nn/slice.h"
#include "engine/parallel/pipeline/auto_cut.h"
#include "engine/parallel/pipeline/profile_scope.h"
#include "kernels/base/context.h"
#include "models/models.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

ProfileOptions quick(std::int64_t images) {
  ProfileOptions options;
  options.images = images;
  options.image_size = 32;
  options.warm_up = 1;
  options.repeats = 1;
  return options;
}

std::vector<double> all_values(const Network& network) {
  std::vector<double> all;
  for (const auto& [name, tensor] : network.state_dict()) {
    for (double value : tensor.to(DType::f64).to_vector<double>()) all.push_back(value);
  }
  return all;
}

double bytes_of_layer(const Network& network, int layer) {
  return 4.0 *
         static_cast<double>(network.output_shapes(1, 32)[static_cast<std::size_t>(layer)].count());
}

}  // namespace

TEST_CASE("A node is a layer with the batch norm and activation behind it") {
  const auto toy = make_model("toy", 5);
  CHECK(node_ends(*toy) == std::vector<int>{2, 3});  // net1 + relu, net2
  const auto resnet = make_model("resnet18", 10);
  const std::vector<int> ends = node_ends(*resnet);
  std::vector<std::string> first;
  int begin = 0;
  for (int end : ends) {
    first.push_back(resnet->layers()[static_cast<std::size_t>(begin)].name);
    begin = end;
  }
  CHECK(std::vector<std::string>(first.begin(), first.begin() + 4) ==
        std::vector<std::string>{"conv1", "maxpool", "layer1.0.conv1", "layer1.0.conv2"});
  // 20 convolutions, the pools and fc; the batch norm after a shortcut's goes with the shortcut.
  CHECK(ends.size() == 23);
  CHECK(begin == static_cast<int>(resnet->layers().size()));
}

TEST_CASE("A batch norm whose input is read elsewhere too is a node of its own") {
  Network network("fork", 4, true, 4);
  network.add("a", std::make_shared<Linear>(4, 4));
  network.add("relu", std::make_shared<Relu>());
  network.add("sum", std::make_shared<BatchNorm2d>(4, true, true), {1, 0});
  CHECK(node_ends(network) == std::vector<int>{1, 3});
}

TEST_CASE("A profile measures each node and leaves the network as it was") {
  const auto network = make_model("resnet18", 10);
  const Tensor weight = network->parameters().front();
  weight.grad() = Tensor::ones(weight.shape());
  const std::vector<double> before = all_values(*network);
  const std::size_t in_use = context("cpu:0").memory().statistics().in_use;
  network->eval();

  const Profile profile = profile_network(*network, quick(2));

  CHECK(all_values(*network) == before);
  CHECK(weight.layout() == kPlain);
  CHECK(weight.grad().to_vector<double>() ==
        std::vector<double>(static_cast<std::size_t>(weight.numel()), 1.0));
  CHECK_FALSE(network->parameters().back().grad().defined());
  CHECK_FALSE(network->is_training());
  CHECK(context("cpu:0").memory().statistics().in_use == in_use);

  double gradient_bytes = 0;
  REQUIRE(profile.nodes.size() == profile.ends.size());
  for (const NodeCost& node : profile.nodes) {
    INFO(node.name);
    CHECK(node.times.front().forward > 0);
    CHECK(node.times.front().backward_input > 0);
    CHECK((node.times.front().backward_weight > 0 || node.gradient_bytes == 0));
    // Average pooling needs shapes alone; a convolution by itself may make its input again.
    const bool keeps_none = node.name == "avgpool" || node.name.ends_with(".0.conv2");
    CHECK((node.memory.kept_bytes > 0 || (keeps_none && node.memory.kept_bytes == 0)));
    gradient_bytes += node.gradient_bytes;
  }
  CHECK(gradient_bytes == 4.0 * static_cast<double>(network->parameter_count()));
}

TEST_CASE("Work of a profile begins after what is queued for the network") {
  for (const char* name : {"cpu:0", "emu:0"}) {
    const Device device(name);
    Linear layer(2, 2);
    layer.to(device);
    std::atomic<bool> is_ready = false, was_ready = false;
    current_stream(device).host_call([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      is_ready = true;
    });
    ProfileScope scope(layer, device, DType::f32);
    scope.stream().host_call([&] { was_ready = is_ready.load(); });
    scope.close_stream();
    CHECK(was_ready);
  }
}

TEST_CASE("A convolution with batch norm keeps its input and its own output from F to I") {
  const auto network = make_model("resnet18", 10);
  const Profile profile = profile_network(*network, quick(4));
  const NodeCost& node = profile.nodes[2];  // layer1.0.conv1 + bn1
  REQUIRE(node.name == "layer1.0.conv1");
  const double map = bytes_of_layer(*network, 3);
  // x for dw, conv's y for batch norm, and what shows ReLU's sign: its output or a mask.
  CHECK(node.memory.kept_bytes >= 2 * map);
  CHECK(node.memory.kept_bytes <= 3.5 * map);
  // After I: x and the two gradients, of the convolution's output and the batch norm's.
  CHECK(node.memory.weight_bytes >= 2 * map);
  CHECK(node.memory.weight_bytes <= 3.1 * map);
  CHECK(node.memory.parameter_bytes == 4.0 * (3 * (64 * 64 * 9 + 128) + 128));
}

TEST_CASE("What crosses a cut after a node is what the network says") {
  const auto network = make_model("resnet18", 10);
  const Profile profile = profile_network(*network, quick(2));
  const std::vector<double> crossing_of_nodes = crossing_bytes(profile.nodes);
  for (std::size_t node = 0; node + 1 < profile.nodes.size(); ++node) {
    double bytes = 0;
    for (int layer : crossing(*network, profile.ends[node])) {
      bytes += bytes_of_layer(*network, layer);
    }
    INFO(profile.nodes[node].name);
    CHECK(crossing_of_nodes[node] == bytes);
  }
}

TEST_CASE("Each node is measured alone where a whole pass does not fit") {
  const auto network = make_model("resnet18", 10);
  MemoryPool& memory = context("cpu:1").memory();
  const ProfileOptions options = [] {
    ProfileOptions at = quick(8);
    at.device = "cpu:1";
    return at;
  }();
  const Profile whole = profile_network(*network, options);
  memory.set_cap(60'000'000);  // weights and gradients alone take 90 MB
  const Profile apart = profile_network(*network, options);
  memory.set_cap(20'000'000);  // a convolution of layer4: 9 MB of weights, as much of gradients
  expect_error(ErrorKind::resource, {"cpu:1"}, [&] { profile_network(*network, options); });
  memory.set_cap(0);
  for (std::size_t i = 0; i < whole.nodes.size(); ++i) {
    INFO(whole.nodes[i].name);
    CHECK(apart.nodes[i].output_bytes == whole.nodes[i].output_bytes);
    CHECK(apart.nodes[i].times.front().forward > 0);
  }
}

TEST_CASE("Times for another number of images lie on the line through those measured") {
  const Profile small{{{"a", {{1, 2, 3}}}}, {1}, 2};
  const Profile large{{{"a", {{3, 4, 5}}}}, {1}, 6};
  const PhaseTimes times = profile_at({small, large}, 4).nodes[0].times[0];
  CHECK(times.forward == 2);
  CHECK(times.backward_input == 3);
  CHECK(times.backward_weight == 4);
  CHECK(profile_at({small}, 4).nodes[0].times[0].forward == 2);
}

TEST_CASE("An automatic cut gives each stage its layers") {
  const auto network = make_model("resnet18", 10);
  CutRequest request;
  request.schedule.workers = 3;
  request.schedule.micro_batches = {0, 1, 2, 3};
  request.images = {2, 2, 2, 1};
  const std::vector<int> places = auto_cut(*network, quick(1), request);
  REQUIRE(places.size() == 2);
  CHECK(places[0] > 0);
  CHECK(places[1] > places[0]);
  CHECK(places[1] < static_cast<int>(network->layers().size()));
}

TEST_CASE("Cuts between nodes are places in the network and back") {
  Profile profile{std::vector<NodeCost>(3), {2, 3, 7}, 1};
  CHECK(places_of(profile, {1, 2, 3}) == std::vector<int>{2, 3});
  CHECK(node_ends_of(profile, {2, 3}) == std::vector<int>{1, 2, 3});
  expect_error(ErrorKind::usage, {"layer 4"}, [&] { node_ends_of(profile, {4}); });
}

}  // namespace convoy::testing
