// Files of weights: what they hold comes back, on the device that was asked for and on no other.
#include "engine/nn/state.h"

#include <algorithm>

#include "engine/nn/layers.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace convoy::testing {
namespace {

// A linear layer and a batch norm, whose counter lives on no device.
class Net : public Module {
 public:
  explicit Net(std::uint64_t seed) {
    linear = register_module("linear", std::make_shared<Linear>(10, 4));
    norm = register_module("norm", std::make_shared<BatchNorm2d>(4));
    initialize(seed);
  }
  std::shared_ptr<Linear> linear;
  std::shared_ptr<BatchNorm2d> norm;
};

void check_equal(const NamedTensors& actual, const NamedTensors& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CHECK(actual[i].first == expected[i].first);
    CHECK(actual[i].second.to_bytes() == expected[i].second.to_bytes());
  }
}

std::uint64_t requests(const Device& device) {
  return context(device).memory().statistics().requests;
}

}  // namespace

TEST_CASE("state: a module's file comes back whole, or is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  Net one(1), two(2);
  one.norm->running_mean.fill_(0.5);
  one.norm->num_batches_tracked = 7;
  save(one, path);
  load(two, path);
  check_equal(two.state_dict(), one.state_dict());
  CHECK(two.norm->num_batches_tracked == 7);
  Linear other(3, 2);
  expect_error(ErrorKind::checkpoint, {"missing"}, [&] { load(other, path); });
}

TEST_CASE("state: loading touches the module's devices and map_location alone") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const Device near = "cpu:1", far = "ref:0", foreign;
  const Net saved(1);
  save(saved, path);
  Net net(2);
  net.to(near);
  const std::uint64_t foreign_before = requests(foreign), far_before = requests(far);

  SECTION("nothing said: beside the module") {
    load(net, path);
    CHECK(requests(far) == far_before);
  }
  SECTION("map_location: by way of that device, and the module stays") {
    load(net, path, far);
    CHECK(requests(far) == far_before + 7);
  }
  CHECK(requests(foreign) == foreign_before);
  for (const Tensor& parameter : net.parameters()) CHECK(parameter.device() == near);
  check_equal(net.state_dict(), saved.state_dict());
}

TEST_CASE("state: a module over two devices loads each part where it lies") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const Net saved(1);
  save(saved, path);
  Net net(2);
  net.linear->to("cpu:1");
  net.norm->to("ref:0");
  const std::uint64_t before = requests(Device());
  load(net, path);
  CHECK(requests(Device()) == before);
  CHECK(net.norm->weight.device() == Device("ref:0"));
  check_equal(net.state_dict(), saved.state_dict());
}

TEST_CASE("state: named tensors go to a file and come back on the device asked for") {
  const TemporaryFolder folder;
  const std::string path = folder / "state.safetensors";
  const NamedTensors state = {{"a", Tensor::from<float>({1, 2, 3}, {3})},
                              {"b", Tensor::from<std::int64_t>({4}, {})}};
  save(state, path);
  const NamedTensors back = load(path, "ref:0");
  REQUIRE(back.size() == 2);
  for (const auto& [name, tensor] : back) CHECK(tensor.device() == Device("ref:0"));
  CHECK(load(path)[0].second.device() == Device());
  for (const auto& [name, tensor] : state) {
    const auto same = [&name = name](const auto& entry) { return entry.first == name; };
    CHECK(std::find_if(back.begin(), back.end(), same)->second.to_bytes() == tensor.to_bytes());
  }
}

}  // namespace convoy::testing
