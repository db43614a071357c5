// The MPI library's own all-reduce beside `convoy bench allreduce`, in a program of its own: one
// core a rank, buffers filled and checked in each round, the median over the rounds of the slowest
// rank. A line of JSON for each size.
//     mpicxx -O2 -o allreduce allreduce.cpp; mpirun --bind-to none -n 2 ./allreduce
//     4000,1000000,25000000 15
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kWarmUp = 3;

// One of the cores that the process may use.
void pin(int rank) {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  int core = 0;
  for (int skip = rank % CPU_COUNT(&all); !CPU_ISSET(core, &all) || skip-- > 0;) ++core;
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

double time_once(std::vector<float>& values, int round, int ranks) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i + round) & 1023);
  const int count = static_cast<int>(values.size());
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == static_cast<float>(ranks * static_cast<int>((i + round) & 1023))) continue;
    std::fprintf(stderr, "allreduce: value %zu of %zu is wrong\n", i, values.size());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return seconds;
}

void measure(long bytes, int repeats, int rank, int ranks) {
  std::vector<float> values(bytes / sizeof(float));
  std::vector<double> seconds;
  for (int round = -kWarmUp; round < repeats; ++round) {
    const double mine = time_once(values, round + kWarmUp, ranks);
    if (round >= 0) seconds.push_back(mine);
  }
  MPI_Allreduce(MPI_IN_PLACE, seconds.data(), repeats, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  std::sort(seconds.begin(), seconds.end());
  const double median = (seconds[(repeats - 1) / 2] + seconds[repeats / 2]) / 2;
  const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / median / 1e9;
  if (rank != 0) return;
  std::printf(
      "{\"peer\": \"mpi\", \"ranks\": %d, \"bytes\": %ld, \"median_s\": %g, \"bus_gb_s\": %g}\n",
      ranks, bytes, median, bus);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pin(rank);
  std::istringstream sizes(argc > 1 ? argv[1] : "4000,64000,1000000,25000000,100000000");
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 15;
  for (std::string size; std::getline(sizes, size, ',');)
    measure(std::atol(size.c_str()), repeats, rank, ranks);
  MPI_Finalize();
}
