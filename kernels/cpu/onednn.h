// oneDNN for the files *_onednn.cpp: the one place that includes its headers.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/base/host_stream.h"
#include "kernels/cpu/layout.h"

namespace convoy::cpu {

/// The engine of all cpu devices.
const dnnl::engine& engine();

/// Attributes of all primitives: scratch memory is the caller's.
const dnnl::primitive_attr& attributes();

/// Whether the library multiplies bf16 by AMX, at many times the rate of floats.
bool has_tiles();

/// Threads that kernels of `stream` may use.
int threads_of(const Stream& stream);

/// What oneDNN throws in `work` becomes an `internal` error that names `kernel`.
void guarded(const char* kernel, const std::function<void()>& work);

/// Primitives made while it lives are for `threads` threads.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int outer_;
};

/// A few primitives, run one after the other, with the memory between them. Immutable once made.
class Program {
 public:
  /// A tensor that the caller gives, in the order of these calls.
  int external(const dnnl::memory::desc& desc);
  /// Scratch memory.
  int temporary(const dnnl::memory::desc& desc);
  /// The tensor `slot` in the layout `desc`, reordered first if need be.
  int input_as(int slot, const dnnl::memory::desc& desc);
  /// Where a primitive writes `desc` that finish() brings to `slot`.
  int output_as(int slot, const dnnl::memory::desc& desc);
  void add(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> arguments,
           const dnnl::memory::desc& scratchpad);
  /// Adds a reorder.
  void copy(int from, int to);
  void finish();

  std::size_t scratch_bytes() const { return bytes_; }
  /// Runs on the calling thread and its OpenMP threads.
  void run(const std::vector<void*>& externals, std::byte* scratch) const;

 private:
  struct Slot {
    dnnl::memory::desc desc;
    int external;  // -1: scratch
    std::size_t offset;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<std::pair<int, int>> arguments;  // DNNL_ARG_..., slot
  };

  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<std::pair<int, int>> outputs_;  // from, to
  int externals_ = 0;
  std::size_t bytes_ = 0;
};

/// Queues `program`; `externals` in the order of its external() calls, `scratch` its
/// scratch_bytes() or, left out, the stream's.
void submit(Stream& stream, const char* kernel, std::shared_ptr<const Program> program,
            std::vector<void*> externals, void* scratch = nullptr);

/// Things made once per key, which is a kernel's number, its sizes, layouts and threads.
template <class Value>
class Cache {
 public:
  using Key = std::array<std::int64_t, 24>;

  template <class Make>
  Value get(const Key& key, const Make& make) {
    std::lock_guard lock(mutex_);
    auto found = values_.find(key);
    if (found == values_.end()) found = values_.emplace(key, make()).first;
    return found->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = 14695981039346656037u;
      for (std::int64_t part : key) {
        hash = (hash ^ static_cast<std::uint64_t>(part)) * 1099511628211u;
        hash ^= hash >> 29;
      }
      return static_cast<std::size_t>(hash);
    }
  };
  std::mutex mutex_;
  std::unordered_map<Key, Value, Hash> values_;
};

/// The id of a weight layout; equal descriptors have equal ids, plain ones have kPlain.
LayoutId weight_layout(const dnnl::memory::desc& desc);

/// The descriptor behind a weight layout from 16 up.
dnnl::memory::desc weight_desc(LayoutId layout);

/// Row-major f32.
dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims);

}  // namespace convoy::cpu
