// A rank's NCCL communicator as the library has it: calls from one thread at a time, an end from
// any, and the watch over all of a process, which ends them when their group is aborted.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/nccl_devices.h"
#include "comm/nccl_names.h"
#include "comm/waiter.h"

namespace convoy::CONVOY_GPU {

/// `communication` with NCCL's text for `result`.
Error nccl_error(const std::string& what, ncclResult_t result, ncclComm_t comm);

/// Thread-safe.
class NcclHandle {
 public:
  /// Begins to come together with the other ranks; wait_until_ready() ends that.
  NcclHandle(const ncclUniqueId& id, int rank, int ranks, const Device& device);
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  /// `communication` after `timeout` seconds, or what `flag` was raised with.
  void wait_until_ready(const AbortFlag& flag, double timeout);
  /// Makes calls of NCCL; `what` is said in errors. Throws what `flag` was raised with.
  void call(const char* what, const AbortFlag& flag,
            const std::function<ncclResult_t(ncclComm_t)>& calls);
  /// Ends its work, from any thread.
  void abort();
  /// The asynchronous error, if there is one.
  struct Failure {
    Error error;
    bool is_echo;  ///< of what went wrong on another rank
  };
  std::optional<Failure> failure();
  /// Begins to part from the others. After that, has_parted() destroys it once all have.
  void begin_to_part();
  bool has_parted();

 private:
  std::string name() const;
  ncclResult_t state();

  const int rank_, ranks_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // null once it was aborted or destroyed
};

/// One for all communicators of a process that end together; its thread asks for their errors.
class NcclWatch {
 public:
  static std::shared_ptr<NcclWatch> of(const std::shared_ptr<AbortFlag>& flag);
  explicit NcclWatch(std::shared_ptr<AbortFlag> flag);
  /// Waits some seconds for those that part.
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  void raise(const Error& why);
  void add(const std::shared_ptr<NcclHandle>& handle);
  /// Takes over a handle whose work is done: it parts from the others in its own time.
  void part(std::shared_ptr<NcclHandle> handle);

 private:
  void loop();
  void abort_all();
  void look_for_failures();
  void look_at_parting();
  std::vector<std::shared_ptr<NcclHandle>> living();

  const std::shared_ptr<AbortFlag> flag_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<NcclHandle>> handles_;
  std::vector<std::shared_ptr<NcclHandle>> parting_;
  double echo_since_ = 0;  // of the thread alone
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace convoy::CONVOY_GPU
