// A checkpoint of a data-parallel run: rank 0 writes it, all wait, and each worker loads it onto
// its own device. Nobody allocates on another one's: each device counts one block for each tensor.
//
//     checkpoint [WORKERS [DEVICE]]        or, with several processes,   mpirun -n 2 checkpoint
//
// DEVICE is what all workers name as map_location instead of their own: then it takes all blocks.
#include <convoy/convoy.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace convoy;

/// Blocks of the device's memory that anybody has asked for so far.
unsigned long long allocations(const Device& device) {
  return context(device).memory().statistics().requests;
}

void train(const char* map_location) {
  init_process_group();
  const Device device = default_device();
  const auto toy = make_model("toy", 5);
  toy->to(device);
  DistributedDataParallel model(toy, {.device_ids = {device}});
  Sgd optimizer(model.named_parameters(), {.lr = 0.001});

  const std::string path = "checkpoint.safetensors";
  if (get_rank() == 0) save(model, path);
  const unsigned long long before = allocations(device);
  barrier();  // nobody reads before rank 0 has written
  load(model, path, map_location ? map_location : device);
  barrier();  // nobody removes what another one still reads
  if (get_rank() == 0) std::remove(path.c_str());
  std::printf("Rank %d loaded %zu tensors, allocations on %s: %llu\n", get_rank(),
              model.parameters().size(), to_string(device).c_str(), allocations(device) - before);

  barrier();  // nobody allocates before all have counted
  optimizer.zero_grad();
  mse_loss(model(Tensor::randn({20, 10})), Tensor::randn({20, 5}).to(device)).backward();
  optimizer.step();
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
  const char* map_location = argc > 2 ? argv[2] : nullptr;
  if (map_location) context(map_location);  // a name of no device is refused before anybody starts
  spawn([&](int) { train(map_location); }, workers_of(argc, argv));
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return static_cast<int>(error.kind());
}
