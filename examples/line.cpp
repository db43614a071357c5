// Data parallelism in under 20 lines: every process trains a copy of Linear(10, 1) on data of its
// own, and gradients are averaged over all of them.
//
//     line [--learnable]        or, with several processes,   mpirun -n 2 line [--learnable]
//
// The targets are noise, so the loss can only fall to their variance, about 1; with --learnable
// they are the sums of the rows, and the loss goes to 0.
#include <convoy/convoy.h>

#include <cstdio>
#include <string_view>

using namespace convoy;

Tensor targets_of(const Tensor& x, std::string_view option) {
  CONVOY_CHECK(option.empty() || option == "--learnable", "'{}' is no option of line", option);
  return option == "--learnable" ? linear(x, Tensor::ones({1, 10})) : Tensor::randn({1000, 1});
}

int main(int argc, char** argv) try {
  init_process_group();
  std::printf("Process %d initialized\n", get_rank());
  manual_seed(get_rank());
  const Tensor x = Tensor::randn({1000, 10}), y = targets_of(x, argc > 1 ? argv[1] : "");
  DistributedDataParallel model(std::make_shared<Linear>(10, 1));
  Sgd optimizer(model.named_parameters(), {.lr = 0.01});
  for (int epoch = 1; epoch <= 10; ++epoch) {
    for (int row = 0; row < 1000; row += 10) {
      optimizer.zero_grad();
      mse_loss(model(x.slice(row, row + 10)), y.slice(row, row + 10)).backward();
      optimizer.step();
    }
    if (get_rank() != 0) continue;
    std::printf("Epoch %d, Loss: %g\n", epoch, mse_loss(model.module()->forward(x), y).item());
    save(model, "line.safetensors");
    std::printf("Model saved by rank 0\n");
  }
  destroy_process_group();
  std::printf("Process group destroyed\n");
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return static_cast<int>(error.kind());
}
