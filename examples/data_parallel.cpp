// Data parallelism of one process in one line: DataParallel shares every batch out over devices and
// gathers the outputs; loss, gradients and optimizer are those of one device.
//
//     data_parallel [DEVICE...]        all cpu devices if left out: one for each core
#include <convoy/convoy.h>

#include <cstdio>

using namespace convoy;

int main(int argc, char** argv) try {
  const auto toy = make_model("toy", 5);
  DataParallel model(toy, std::vector<Device>(argv + 1, argv + argc));
  std::printf("Let's use %zu devices!\n", model.devices().size());

  Sgd optimizer(model.named_parameters(), {.lr = 0.001});
  const Tensor data = Tensor::randn({100, 10}), labels = Tensor::randn({100, 5});
  for (int row = 0; row < 100; row += 30) {
    const int end = std::min(row + 30, 100);
    optimizer.zero_grad();
    const Tensor output = model(data.slice(row, end));
    const Tensor loss = mse_loss(output, labels.slice(row, end));
    loss.backward();
    optimizer.step();
    std::printf("Outside: input size %d, output size %s, Loss: %.6f\n", end - row,
                to_string(output.shape()).c_str(), loss.item());
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return static_cast<int>(error.kind());
}
