#include "comm/nccl_handle.h"

#include <chrono>

#include "comm/clock.h"
#include "comm/deadline.h"
#include "kernels/cuda/check.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr double kLook = 0.02;  // seconds between two looks at the errors
// Another rank's failure shows here at once; who knows the cause needs a moment to say so.
constexpr double kCauseWait = 2;
constexpr double kPartingWait = 5;

void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

Error nccl_error(const std::string& what, ncclResult_t result, ncclComm_t comm) {
  const char* detail = ncclGetLastError(comm);
  std::string text = fmt::format("nccl: {}: {}", what, ncclGetErrorString(result));
  if (detail && *detail) text += fmt::format(": {}", detail);
  return Error(ErrorKind::communication, text, CONVOY_PLACE);
}

NcclHandle::NcclHandle(const ncclUniqueId& id, int rank, int ranks, const Device& device)
    : rank_(rank), ranks_(ranks) {
  check(cudaSetDevice(device.index));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result = ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
  if (result == ncclSuccess || result == ncclInProgress) return;
  const Error error = nccl_error(name() + ": init", result, comm_);
  abort();
  throw Error(error);
}

NcclHandle::~NcclHandle() {
  abort();
}

std::string NcclHandle::name() const {
  return fmt::format("rank {} of {}", rank_, ranks_);
}

ncclResult_t NcclHandle::state() {
  const std::lock_guard lock(mutex_);
  ncclResult_t state = ncclSuccess;
  if (!comm_) return ncclInvalidUsage;
  const ncclResult_t result = ncclCommGetAsyncError(comm_, &state);
  return result == ncclSuccess ? state : result;
}

void NcclHandle::wait_until_ready(const AbortFlag& flag, double timeout) {
  const Deadline deadline(timeout);
  ncclResult_t now = state();
  for (; now == ncclInProgress; now = state()) {
    if (flag.raised()) flag.rethrow();
    if (deadline.passed()) {
      CONVOY_FAIL(communication, "nccl: {}: not all ranks are ready within {} s", name(), timeout);
    }
    pause(0.001);
  }
  if (flag.raised()) flag.rethrow();
  if (now == ncclSuccess) return;
  const std::lock_guard lock(mutex_);
  throw nccl_error(name() + ": init", now, comm_);
}

void NcclHandle::call(const char* what, const AbortFlag& flag,
                      const std::function<ncclResult_t(ncclComm_t)>& calls) {
  ncclResult_t result;
  {
    const std::lock_guard lock(mutex_);
    if (flag.raised()) flag.rethrow();
    CONVOY_CHECK(comm_, "nccl: {} after the end of the communicator", what);
    result = calls(comm_);
  }
  while (result == ncclInProgress) {
    if (flag.raised()) flag.rethrow();
    result = state();
    if (result == ncclInProgress) std::this_thread::yield();
  }
  if (result == ncclSuccess) return;
  const std::lock_guard lock(mutex_);
  if (flag.raised()) flag.rethrow();
  throw nccl_error(fmt::format("{}: {}", name(), what), result, comm_);
}

void NcclHandle::abort() {
  const std::lock_guard lock(mutex_);
  if (comm_) ncclCommAbort(comm_);
  comm_ = nullptr;
}

std::optional<NcclHandle::Failure> NcclHandle::failure() {
  const ncclResult_t now = state();
  const std::lock_guard lock(mutex_);
  if (!comm_ || now == ncclSuccess || now == ncclInProgress) return std::nullopt;
  return Failure{nccl_error(name(), now, comm_), now == ncclRemoteError};
}

void NcclHandle::begin_to_part() {
  const std::lock_guard lock(mutex_);
  if (!comm_) return;
  const ncclResult_t result = ncclCommFinalize(comm_);
  if (result == ncclSuccess || result == ncclInProgress) return;
  ncclCommAbort(comm_);
  comm_ = nullptr;
}

bool NcclHandle::has_parted() {
  const ncclResult_t now = state();
  if (now == ncclInProgress) return false;
  const std::lock_guard lock(mutex_);
  if (comm_) now == ncclSuccess ? ncclCommDestroy(comm_) : ncclCommAbort(comm_);
  comm_ = nullptr;
  return true;
}

std::shared_ptr<NcclWatch> NcclWatch::of(const std::shared_ptr<AbortFlag>& flag) {
  return flag->companion<NcclWatch>([&] { return std::make_shared<NcclWatch>(flag); });
}

NcclWatch::NcclWatch(std::shared_ptr<AbortFlag> flag)
    : flag_(std::move(flag)), thread_([this] { loop(); }) {}

NcclWatch::~NcclWatch() {
  const Deadline deadline(kPartingWait);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (parting_.empty() || deadline.passed()) break;
    }
    pause(kLook);
  }
  stopping_.store(true);
  thread_.join();
}

void NcclWatch::add(const std::shared_ptr<NcclHandle>& handle) {
  const std::lock_guard lock(mutex_);
  std::erase_if(handles_, [](const auto& each) { return each.expired(); });
  handles_.push_back(handle);
}

void NcclWatch::part(std::shared_ptr<NcclHandle> handle) {
  handle->begin_to_part();
  const std::lock_guard lock(mutex_);
  parting_.push_back(std::move(handle));
}

std::vector<std::shared_ptr<NcclHandle>> NcclWatch::living() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<NcclHandle>> found;
  for (const auto& each : handles_) {
    if (auto handle = each.lock()) found.push_back(std::move(handle));
  }
  return found;
}

void NcclWatch::raise(const Error& why) {
  flag_->raise(why);
  abort_all();
}

void NcclWatch::abort_all() {
  for (const auto& handle : living()) handle->abort();
}

void NcclWatch::look_for_failures() {
  for (const auto& handle : living()) {
    const auto failure = handle->failure();
    if (!failure) continue;
    if (failure->is_echo) {
      if (echo_since_ == 0) echo_since_ = steady_now();
      if (steady_now() - echo_since_ < kCauseWait) continue;
    }
    return raise(failure->error);
  }
}

void NcclWatch::look_at_parting() {
  std::unique_lock lock(mutex_);
  const auto parting = parting_;
  lock.unlock();
  for (const auto& handle : parting) {
    if (!handle->has_parted()) continue;
    lock.lock();
    std::erase(parting_, handle);
    lock.unlock();
  }
}

void NcclWatch::loop() {
  while (!stopping_.load()) {
    if (!flag_->wait_for(kLook)) {
      look_for_failures();
    } else {
      abort_all();
      pause(kLook);
    }
    look_at_parting();
  }
  abort_all();
}

}  // namespace convoy::CONVOY_GPU
