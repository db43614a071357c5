// What a device of this process can do: memory, streams, copies and its table of kernels. Contexts
// are opened on first use and live as long as the process, like a GPU's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/cores.h"
#include "kernels/base/device.h"
#include "kernels/base/memory_pool.h"
#include "kernels/base/stream.h"

namespace convoy {

class Graph;
struct KernelTable;

/// One device. Thread-safe.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  virtual const Device& device() const = 0;
  virtual const KernelTable& kernels() const = 0;
  virtual MemoryPool& memory() = 0;
  /// The stream that ops use, unless a StreamScope of the calling thread names another.
  virtual Stream& default_stream() = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Cores that a kernel may use: OMP_NUM_THREADS, else all that are allowed. Takes effect with the
  /// next kernel that is queued, on any stream.
  virtual void set_threads(int threads) = 0;
  virtual int threads() const = 0;
  /// The cores that the threads of its streams keep to; at first, and for none, all that are
  /// allowed. Without effect on a GPU.
  virtual void set_cores(const Cores& /*cores*/) {}
  /// Whether products of f32 may round their inputs to TF32, on all streams; at first they may not.
  /// `usage` if that is asked of a device that cannot.
  virtual void set_tf32(bool allowed);
  /// "AVX-512, oneDNN 3.2.0", for people.
  virtual std::string describe() const = 0;

  /// Rate of fused multiply-adds in FLOP/s (two each) that its threads reach together, measured now
  /// in about a tenth of a second; 0 where nothing measures it.
  virtual double measure_peak_flops() { return 0; }

  /// Queues a copy from host memory. `source` may be reused when the call returns.
  virtual void copy_in(Stream& stream, void* target, const void* source, std::size_t bytes) = 0;
  /// Queues a `write` of `bytes` that come to stand at `target`: it gets memory of the host, now or
  /// in the stream's turn, and must not throw.
  virtual void write_in(Stream& stream, void* target, std::size_t bytes,
                        const std::function<void(void* memory)>& write);
  /// Copies to host memory after the stream's work so far; returns when it is done.
  virtual void copy_out(Stream& stream, void* target, const void* source, std::size_t bytes) = 0;
  /// Queues a copy inside the device.
  virtual void copy(Stream& stream, void* target, const void* source, std::size_t bytes) = 0;
  /// Copies from the memory of `other`, a GPU of the same kind, go straight from now on where the
  /// machine has a way.
  virtual void reach(const Device& other);

  /// Whether the next two calls work here.
  virtual bool can_capture() const { return false; }
  /// Work that is queued in `stream` from now on is recorded instead of run, until end_capture().
  /// Nothing may be copied to or from the host, called there, or waited for. `usage` for the
  /// default stream: the memory that captured work frees is kept for its stream, which should do
  /// nothing else.
  virtual void begin_capture(Stream& stream);
  /// The work recorded since; throws, and ends the capture, if some of it cannot be.
  virtual std::unique_ptr<Graph> end_capture(Stream& stream);
};

/// The context of `device`, opened on first use; `usage` where this build or machine lacks it.
DeviceContext& context(const Device& device);

/// How many devices of `type` programs spread their work over by themselves. cpu, ref: the cores
/// that this process may use; more devices than that may be named, and share them. 0 where this
/// build lacks them.
int device_count(DeviceType type);

/// The stream of `device` that ops of the calling thread use.
Stream& current_stream(const Device& device);

/// Work of the calling thread on the stream's device goes to `stream` while the scope lives.
class StreamScope {
 public:
  explicit StreamScope(Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Stream* outer_;
  Device device_;
};

}  // namespace convoy
