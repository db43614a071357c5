// A network split over two devices by hand: the first layer on one, the second on the other, and
// values moved with .to(device). Gradients find their way back by themselves.
//
//     toy_two_devices [DEVICE DEVICE]        cpu:0 and cpu:1 if left out
//
// Values come from a formula, so the losses are those of PyTorch on one device
// (tests/reference/small.json, case toy).
#include <convoy/convoy.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>

using namespace convoy;

class ToyModel : public Module {
 public:
  ToyModel(Device first, Device second) : first_(first), second_(second) {
    net1_ = register_module("net1", std::make_shared<Linear>(10, 10));
    net2_ = register_module("net2", std::make_shared<Linear>(10, 5));
    net1_->to(first);
    net2_->to(second);
  }

  Tensor forward(const Tensor& x) override {
    const Tensor hidden = relu(net1_->forward(x.to(first_)));
    return net2_->forward(hidden.to(second_));
  }

 private:
  Device first_, second_;
  std::shared_ptr<Linear> net1_, net2_;
};

/// Element i is within +-bound and depends on the name and i alone.
Tensor by_formula(std::string_view name, const Shape& shape, double bound) {
  std::uint64_t seed = 0xCBF29CE484222325;  // FNV-1a of the name, then SplitMix64
  for (const unsigned char byte : name) seed = (seed ^ byte) * 0x100000001B3;
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    std::uint64_t z = seed++ + 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    const double unit = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    values.push_back(static_cast<float>(bound * (2 * unit - 1)));
  }
  return Tensor::from(values, shape);
}

int main(int argc, char** argv) try {
  CONVOY_CHECK(argc == 1 || argc == 3, "{} devices named, expected two or none", argc - 1);
  const Device first = argc > 2 ? argv[1] : "cpu:0", second = argc > 2 ? argv[2] : "cpu:1";
  ToyModel model(first, second);
  for (auto& [name, parameter] : model.named_parameters()) {
    parameter.copy_(by_formula(name, parameter.shape(), 1 / std::sqrt(10)));
  }
  const Tensor x = by_formula("toy/x", {20, 10}, 2);
  const Tensor labels = by_formula("toy/y", {20, 5}, 2).to(second);

  Sgd optimizer(model.named_parameters(), {.lr = 0.001});
  for (int step = 1; step <= 5; ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(model(x), labels);
    loss.backward();
    optimizer.step();
    std::printf("Step %d, Loss: %.7f\n", step, loss.item());
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return static_cast<int>(error.kind());
}
