// ResNet-50 over two devices, pipelined by one line: Pipeline cuts the network before layer3 and
// takes every batch through it in micro-batches of 20 images.
//
//     resnet50_pipeline [IMAGES [SIZE [TRACE.json]]]        60 images of 32 pixels if left out
//
// The weights are those of resnet50_pipeline_by_hand, to the last bit. With a TRACE the rows of
// both devices show that they work at the same time, in backward too.
#include <convoy/convoy.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

using namespace convoy;

/// A positive number from the command line; `otherwise` if it is left out.
std::int64_t number(int argc, char** argv, int place, std::int64_t otherwise) {
  if (place >= argc) return otherwise;
  char* end = nullptr;
  const std::int64_t value = std::strtoll(argv[place], &end, 10);
  CONVOY_CHECK(*end == '\0' && value >= 1, "'{}' is no positive number", argv[place]);
  return value;
}

/// Labels as the tutorial has them: one class of 1000 for each image.
Tensor one_hot(std::int64_t images) {
  std::vector<float> values(static_cast<std::size_t>(images * 1000));
  for (std::int64_t i = 0; i < images; ++i) values[static_cast<std::size_t>(i * 1000 + i % 7)] = 1;
  return Tensor::from(values, {images, 1000});
}

void train(Module& model, std::int64_t images, std::int64_t size, StreamTrace* trace) {
  auto begin = [&](const char* phase) {
    if (trace) trace->phase(phase);
  };
  Sgd optimizer(model.named_parameters(), {.lr = 0.001});
  for (int step = 1; step <= 2; ++step) {
    optimizer.zero_grad();
    begin("forward");
    const Tensor outputs = model(Tensor::randn({images, 3, size, size}));
    const Tensor labels = one_hot(images).to(outputs.device());
    begin("backward");
    const Tensor loss = mse_loss(outputs, labels);
    loss.backward();
    begin("step");
    optimizer.step();
    std::printf("Step %d, Loss: %.6f\n", step, loss.item());
  }
}

/// A number that any bit of the weights changes (FNV-1a).
unsigned long long hash_of(const Module& model) {
  unsigned long long hash = 0xCBF29CE484222325;
  for (const auto& [name, tensor] : model.state_dict()) {
    for (const std::byte byte : tensor.to_bytes()) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
    }
  }
  return hash;
}

int main(int argc, char** argv) try {
  const std::int64_t images = number(argc, argv, 1, 60), size = number(argc, argv, 2, 32);
  const Device first = "cpu:0", second = "cpu:1";
  for (const Device& device : {first, second}) {
    context(device).set_threads(std::max(1, device_count(DeviceType::cpu) / 2));
  }
  Pipeline model(make_model("resnet50", 1000), {"layer3"}, {first, second}, {.micro_batch = 20});
  std::optional<StreamTrace> trace;
  if (argc > 3) trace.emplace(argv[3], std::vector<Device>{first, second});
  train(model, images, size, trace ? &*trace : nullptr);
  if (trace) trace->close();
  std::printf("Weights: %016llx\n", hash_of(model));
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return static_cast<int>(error.kind());
}
