// Worker r holds stages c*p + r, c = 0..v-1. Micro-batches go in groups of p through one stage of
// the worker after the other; m is rounded up to whole groups, and what is too many is left out.
#include <algorithm>

#include "engine/parallel/pipeline/schedules.h"

namespace convoy {
namespace {

// What the j-th forward or backward step of a worker works on.
struct ChunkStep {
  int chunk, micro_batch;
};

ChunkStep chunk_step(int j, int p, int v) {
  const int i = j % (p * v);
  return {i / p, j / (p * v) * p + i % p};
}

ScheduleLine interleaved_line(const ScheduleShape& shape, int r) {
  const int p = shape.workers, v = shape.stages_per_worker, m = shape.micro_batches;
  const int steps = (m + p - 1) / p * p * v;
  const int w = std::min((v - 1) * p + 2 * (p - 1 - r), steps);
  ScheduleLine line;
  auto forward = [&](int j) {
    const auto [chunk, k] = chunk_step(j, p, v);
    if (k < m) line.push_back({ScheduleOp::forward, chunk * p + r, k});
  };
  auto backward = [&](int j) {
    const auto [chunk, k] = chunk_step(j, p, v);
    if (k >= m) return;
    line.push_back({ScheduleOp::backward_input, (v - 1 - chunk) * p + r, k});
    line.push_back({ScheduleOp::backward_weight, (v - 1 - chunk) * p + r, k});
  };
  for (int j = 0; j < w; ++j) forward(j);
  for (int j = 0; j < steps; ++j) {
    if (w + j < steps) forward(w + j);
    backward(j);
  }
  return line;
}

}  // namespace

Schedule interleaved(const ScheduleShape& shape) {
  Schedule schedule;
  for (int r = 0; r < shape.workers; ++r) schedule.lines.push_back(interleaved_line(shape, r));
  return schedule;
}

}  // namespace convoy
