// A checkpoint of a data-parallel run: rank 0 writes it, all wait, and each worker loads it onto
// its own device. Loading allocates on no other device, which the memory statistics show.
//
//     checkpoint [WORKERS [DEVICE]]        or, with several processes,   mpirun -n 2 checkpoint
//
// DEVICE is what all workers name as map_location instead of their own: then it shows there.
#include <convoy/convoy.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace convoy;

/// Blocks of memory that were asked for so far on this process's devices but `own`.
unsigned long long requests_elsewhere(const Device& own) {
  unsigned long long sum = 0;
  for (int i = 0; i < process_group().local_workers(); ++i) {
    const Device device(DeviceType::cpu, i);
    if (device != own) sum += context(device).memory().statistics().requests;
  }
  return sum;
}

/// Loads, one worker after the other, so that each sees in the statistics what it did itself.
void load_in_turn(Module& model, const std::string& path, const Device& map_location) {
  const Device own = default_device();
  for (int rank = 0; rank < get_world_size(); ++rank) {
    if (rank == get_rank()) {
      const unsigned long long before = requests_elsewhere(own);
      load(model, path, map_location);
      std::printf("Rank %d loaded onto %s, allocations elsewhere: %llu\n", rank,
                  to_string(own).c_str(), requests_elsewhere(own) - before);
    }
    barrier();
  }
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
  barrier();  // nobody reads before rank 0 has written
  load_in_turn(model, path, map_location ? map_location : device);

  optimizer.zero_grad();
  mse_loss(model(Tensor::randn({20, 10})), Tensor::randn({20, 5}).to(device)).backward();
  optimizer.step();

  barrier();  // nobody removes what another one still reads
  if (get_rank() == 0) std::remove(path.c_str());
  destroy_process_group();
}

int main(int argc, char** argv) {
  const char* map_location = argc > 2 ? argv[2] : nullptr;
  spawn([&](int) { train(map_location); }, argc > 1 ? std::atoi(argv[1]) : 1);
}
