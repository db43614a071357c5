// Convolutions of bf16 in memory by products of floats, which most CPUs make at twice the rate of
// their products of bf16. A convolution is cut into pieces, some images or a part of one, small
// enough to stay in a core's cache as floats: they are widened, convolved by oneDNN and rounded.
// Where pieces are many each core takes some of them, else all work on one after the other. Weights
// are f32 as they are.
#include <algorithm>
#include <exception>
#include <vector>

#include "kernels/base/host_stream.h"
#include "kernels/cpu/conv2d_onednn.h"
#include "kernels/cpu/staging.h"
#include "kernels/cpu/values.h"
#include "kernels/cpu/weight_layouts.h"
#include "kernels/elementwise.h"

namespace convoy::cpu {
namespace {

/// Floats of x and y that a piece holds at least, if there are as many.
constexpr std::int64_t kPieceFloats = 192 * 1024;
/// Sums of weight gradients, each over its own pieces, that are added in order at the end.
constexpr std::int64_t kParts = 4;

// Places of images do not know of each other: any of them are an image of one row.
bool is_pointwise(const Conv2dShape& s) {
  return s.r == 1 && s.s == 1 && s.stride_h == 1 && s.stride_w == 1 && s.padding_h == 0 &&
         s.padding_w == 0;
}

/// How a convolution is cut: into pieces of some images, or of equal parts of an image.
class Cut {
 public:
  Cut(const Conv2dShape& s, ConvPass pass) : shape_(s) {
    const std::int64_t image = (s.x().count() + s.y().count()) / s.n;
    const std::int64_t weights = s.weight().count();
    // Beside them the weights should weigh little, which are read for each piece, and in their
    // gradient added too.
    const std::int64_t least =
        std::max(kPieceFloats, (pass == ConvPass::weight_gradient ? 8 : 2) * weights);
    images_ = std::clamp<std::int64_t>(least / image, 1, s.n);
    if (!is_pointwise(s)) return;
    const std::int64_t pixels = s.h * s.w;
    while (image / (parts_ + 1) >= least) ++parts_;
    while (parts_ > 1 && pixels % parts_ != 0) --parts_;
  }

  std::int64_t count() const { return parts_ * ((shape_.n + images_ - 1) / images_); }
  std::int64_t first_image(std::int64_t piece) const { return piece / parts_ * images_; }
  std::int64_t part(std::int64_t piece) const { return piece % parts_; }
  std::int64_t parts() const { return parts_; }
  /// The first piece is the largest, the last one may be smaller.
  Conv2dShape shape(std::int64_t piece) const {
    Conv2dShape result = shape_;
    result.n = std::min(images_, shape_.n - first_image(piece));
    if (!is_pointwise(shape_)) return result;
    result.w = shape_.h * shape_.w / parts_;
    result.h = 1;
    return result;
  }

 private:
  Conv2dShape shape_;
  std::int64_t images_ = 1, parts_ = 1;
};

/// x or y of a convolution, in bf16 as it lies.
struct Side {
  Side(const Shape& whole, ConstBuffer buffer)
      : halves(static_cast<Half16*>(const_cast<void*>(buffer.data))),
        runs(buffer.layout, whole[0], whole[1], whole[2] * whole[3]) {}
  std::int64_t floats(std::int64_t images, std::int64_t parts) const {
    return (images * runs.blocks * runs.length / parts + 15) / 16 * 16;
  }

  Half16* halves;
  Runs runs;
};

std::int64_t stored_weights(const ConvJob& job) {
  if (job.w.layout < kFirstWeightLayout) return job.shape.weight().count();
  return static_cast<std::int64_t>(weight_bytes(job.w.layout, job.shape.weight()) / sizeof(float));
}

/// Floats of a weight gradient and that of its bias.
struct Gradients {
  float *dw, *db;
};

/// All of a pass: how it is cut, its programs, and who does what.
class Pieces {
 public:
  Pieces(const ConvJob& job, int threads)
      : job_(job),
        cut_(job.shape, job.pass),
        x_(job.shape.x(), job.x),
        y_(job.shape.y(), job.y),
        weights_((stored_weights(job) + 15) / 16 * 16),
        bias_((job.shape.k + 15) / 16 * 16) {
    const bool sums = job.pass == ConvPass::weight_gradient;
    const std::int64_t tasks = sums ? std::min(cut_.count(), kParts) : cut_.count();
    spread_ = threads == 1 || tasks >= (sums ? 1 : 2) * threads;
    workers_ = spread_ ? std::min<std::int64_t>(threads, tasks) : 1;
    parts_ = sums && spread_ ? tasks : 1;
    first_ = program_of(0, spread_ ? 1 : threads);
    last_ = program_of(cut_.count() - 1, spread_ ? 1 : threads);
    const std::int64_t images = cut_.shape(0).n;
    x_floats_ = x_.floats(images, cut_.parts());
    y_floats_ = y_.floats(images, cut_.parts());
  }

  std::size_t bytes() const {
    const std::int64_t floats = workers_ * worker_floats() + parts_ * sum_floats();
    return static_cast<std::size_t>(floats) * sizeof(float) +
           static_cast<std::size_t>(workers_) * scratch_bytes();
  }

  /// On the stream's thread; `memory` has bytes(), `weight` and `bias` are f32.
  void run(void* memory, float* weight, float* bias) const {
    auto* sums = static_cast<float*>(memory);
    auto* spaces = reinterpret_cast<std::byte*>(sums + parts_ * sum_floats());
    const Gradients whole = {weight, bias};
    std::exception_ptr failure;
    parallel_for(workers_, kSerialElements + 1, [&](std::int64_t worker) {
      try {
        work(worker, spaces, sums, whole);
      } catch (...) {
#pragma omp critical(convoy_pieces)
        failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
    if (parts_ > 1) add_parts(sums, whole);
  }

 private:
  /// Memory of a worker.
  struct Space {
    float *x, *y;
    Gradients own;
    std::byte* scratch;
  };

  std::shared_ptr<const Program> program_of(std::int64_t piece, int threads) const {
    ConvJob job = job_;
    job.shape = cut_.shape(piece);
    return conv_program(job, DType::f32, threads);
  }
  bool sums() const {
    return job_.pass == ConvPass::weight_gradient;
  }
  // Of a gradient of weights and bias, if pieces are added.
  std::int64_t sum_floats() const {
    return sums() && cut_.count() > 1 ? weights_ + bias_ : 0;
  }
  std::int64_t worker_floats() const {
    return x_floats_ + y_floats_ + sum_floats();
  }
  std::size_t scratch_bytes() const {
    return (std::max(first_->scratch_bytes(), last_->scratch_bytes()) + 63) / 64 * 64;
  }
  Space space(std::byte* spaces, std::int64_t worker) const {
    const std::size_t bytes =
        static_cast<std::size_t>(worker_floats()) * sizeof(float) + scratch_bytes();
    auto* x = reinterpret_cast<float*>(spaces + static_cast<std::size_t>(worker) * bytes);
    float *y = x + x_floats_, *dw = y + y_floats_;
    return {x, y, {dw, dw + weights_}, reinterpret_cast<std::byte*>(x + worker_floats())};
  }
  // Where a part of the pieces is added up.
  Gradients sum_of(float* sums, std::int64_t part, const Gradients& whole) const {
    if (parts_ == 1) return whole;
    float* dw = sums + part * sum_floats();
    return {dw, whole.db ? dw + weights_ : nullptr};
  }

  void work(std::int64_t worker, std::byte* spaces, float* sums, const Gradients& whole) const {
    const Space own = space(spaces, worker);
    const std::int64_t tasks = this->sums() ? parts_ : cut_.count();
    for (std::int64_t task = worker; task < tasks; task += workers_) {
      if (!this->sums()) {
        compute(task, own, whole);
        continue;
      }
      const std::int64_t begin = task * cut_.count() / parts_;
      const std::int64_t end = (task + 1) * cut_.count() / parts_;
      const Gradients sum = sum_of(sums, task, whole);
      for (std::int64_t i = begin; i < end; ++i) {
        compute(i, own, i == begin ? sum : Gradients{own.own.dw, sum.db ? own.own.db : nullptr});
        if (i > begin) add(own.own, sum);
      }
    }
  }

  void compute(std::int64_t i, const Space& own, const Gradients& weights) const {
    if (job_.pass != ConvPass::input_gradient) widen(i, x_, own.x);
    if (job_.pass != ConvPass::forward) widen(i, y_, own.y);
    std::vector<void*> externals = {own.x, weights.dw};
    if (job_.bias) externals.push_back(weights.db);
    externals.push_back(own.y);
    (i + 1 < cut_.count() ? first_ : last_)->run(externals, own.scratch);
    if (job_.pass == ConvPass::input_gradient) narrow(i, own.x, x_);
    if (job_.pass == ConvPass::forward) narrow(i, own.y, y_);
  }

  void widen(std::int64_t i, const Side& side, float* floats) const {
    each_run(i, side, [&](std::int64_t count, std::int64_t at, std::int64_t to) {
      half_loops().widen(count, side.halves + at, floats + to);
    });
  }
  void narrow(std::int64_t i, const float* floats, const Side& side) const {
    each_run(i, side, [&](std::int64_t count, std::int64_t to, std::int64_t at) {
      half_loops().narrow(count, floats + at, side.halves + to);
    });
  }

  /// Calls move(count, place in the side, place in the piece) for the runs of piece i.
  template <class Move>
  void each_run(std::int64_t i, const Side& side, const Move& move) const {
    const Runs& runs = side.runs;
    const std::int64_t length = runs.length / cut_.parts();
    const std::int64_t begin = cut_.first_image(i) * runs.blocks;
    auto one = [&](std::int64_t run) {
      move(length, (begin + run) * runs.length + cut_.part(i) * length, run * length);
    };
    const std::int64_t count = cut_.shape(i).n * runs.blocks;
    if (workers_ == 1) return parallel_for(count, length, one);
    for (std::int64_t run = 0; run < count; ++run) one(run);
  }

  void add(const Gradients& part, const Gradients& sum) const {
    auto more = [](std::int64_t count, const float* x, float* y) {
      parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
        loops().binary_forward(static_cast<int>(Binary::add), size, y + begin, x + begin,
                               y + begin);
      });
    };
    more(stored_weights(job_), part.dw, sum.dw);
    if (sum.db) more(job_.shape.k, part.db, sum.db);
  }
  void add_parts(float* sums, const Gradients& whole) const {
    const Gradients first = sum_of(sums, 0, whole);
    for (std::int64_t part = 1; part < parts_; ++part) add(sum_of(sums, part, whole), first);
    std::copy_n(first.dw, stored_weights(job_), whole.dw);
    if (whole.db) std::copy_n(first.db, job_.shape.k, whole.db);
  }

  ConvJob job_;
  Cut cut_;
  Side x_, y_;
  std::int64_t weights_, bias_;  // floats, whole lines of memory
  bool spread_ = false;          // each worker takes pieces of its own
  std::int64_t workers_ = 1;
  std::int64_t parts_ = 1;  // of the pieces, each with a sum of its own
  std::int64_t x_floats_ = 0, y_floats_ = 0;
  std::shared_ptr<const Program> first_, last_;
};

}  // namespace

void submit_pieces(Stream& stream, const ConvJob& job) {
  const Shape channels = {job.shape.k};
  const Pieces pieces(job, threads_of(stream));
  Staging staging(stream, Staging::kAsItLies, {{job.shape.weight(), job.w}, {channels, job.bias}},
                  pieces.bytes());
  const bool to_weights = job.pass == ConvPass::weight_gradient;
  auto* weight = static_cast<float*>(staging.operand(job.shape.weight(), job.w, to_weights));
  auto* bias = static_cast<float*>(staging.operand(channels, job.bias, to_weights));
  host(stream).submit(
      [=, kernel = job.kernel, memory = staging.own()] {
        guarded(kernel, [&] { pieces.run(memory, weight, bias); });
      },
      job.kernel);
  staging.finish();
}

}  // namespace convoy::cpu
