// Data parallelism with a module of one's own: a worker for each device, its share of every batch,
// gradients averaged while backward runs. Workers are threads of one process, or processes, or
// both.
//
//     toy [WORKERS]        or, with several processes,   mpirun -n 2 toy [WORKERS]
//
// Whatever the workers are, at most 20 of them, together they train on the same 20 rows: the losses
// are the same. Shares may differ by a row, so the loss over all rows weighs each by its rows.
#include <convoy/convoy.h>

#include <cstdio>
#include <cstdlib>

using namespace convoy;

class ToyModel : public Module {
 public:
  Tensor forward(const Tensor& x) override { return net2_->forward(relu(net1_->forward(x))); }

 private:
  std::shared_ptr<Linear> net1_ = register_module("net1", std::make_shared<Linear>(10, 10));
  std::shared_ptr<Linear> net2_ = register_module("net2", std::make_shared<Linear>(10, 5));
};

/// This worker's part of the rows.
Tensor share_of(const Tensor& rows) {
  const Chunk part = chunk_of(rows.size(0), get_rank(), get_world_size());
  return rows.slice(part.begin, part.end);
}

void train(int /*worker*/) {
  init_process_group();
  std::printf("Running basic DDP example on rank %d.\n", get_rank());
  const Device device = default_device();
  const auto toy = std::make_shared<ToyModel>();
  toy->to(device);
  DistributedDataParallel model(toy, {.device_ids = {device}});
  Sgd optimizer(model.named_parameters(), {.lr = 0.001});
  const Tensor inputs = share_of(Tensor::randn({20, 10}));
  const Tensor labels = share_of(Tensor::randn({20, 5})).to(device);
  for (int step = 1; step <= 5; ++step) {
    optimizer.zero_grad();
    Tensor loss = mse_loss(model(inputs), labels);
    loss.backward();
    optimizer.step();
    loss.fill_(loss.item() * static_cast<double>(inputs.size(0)) / 20);
    all_reduce(loss);
    if (get_rank() == 0) std::printf("Step %d, Loss: %.6f\n", step, loss.item());
  }
  destroy_process_group();
}

/// The number of workers on the command line; 1 if it is left out.
int workers_of(int argc, char** argv) {
  if (argc < 2) return 1;
  char* end = nullptr;
  const long value = std::strtol(argv[1], &end, 10);
  CONVOY_CHECK(*end == '\0' && value >= 1 && value <= 1000, "'{}' is no number of workers",
               argv[1]);
  return static_cast<int>(value);
}

int main(int argc, char** argv) try {
  spawn(train, workers_of(argc, argv));
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return static_cast<int>(error.kind());
}
