// One direction between two workers, for messages of a pipeline. Each end has a thread of its own:
// messages move while the workers compute, and a send never holds up a receive.
//
//     worker: send() -> [slot][slot] -> thread ~~> thread -> [slot][slot] -> receive(): worker
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "comm/host_communicator.h"
#include "comm/link_header.h"
#include "comm/waiter.h"

namespace convoy {

/// Bytes of a message, not initialised. Move-only.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::size_t bytes)
      : data_(bytes ? std::make_unique_for_overwrite<std::byte[]>(bytes) : nullptr),
        bytes_(bytes) {}
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  std::span<const std::byte> span() const { return {data_.get(), bytes_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t bytes_ = 0;
};

struct LinkMessage {
  LinkHeader header;
  Payload payload;
  /// Of this worker's steady clock: when the peer called send(), and when the last byte was here.
  double sent_at = 0;
  double arrived_at = 0;
};

struct LinkOptions {
  int slots = 2;            ///< messages that lie ready at either end
  double clock_offset = 0;  ///< the peer's steady clock minus this worker's, in seconds
  bool checksums = true;    ///< both ends alike
};

/// What both ends have: the thread, and the failure that ends it.
class LinkEnd {
 public:
  LinkEnd(const LinkEnd&) = delete;
  LinkEnd& operator=(const LinkEnd&) = delete;

 protected:
  LinkEnd(HostCommunicator& group, int peer, int tag, const LinkOptions& options);
  ~LinkEnd() = default;
  /// Calls `work` again and again on a thread, until it gives false or throws.
  template <class Work>
  void start(Work work);
  /// Ends the thread, whatever it waits for. For destructors.
  void stop();
  /// Waits, as the worker, until `ready()` holds, the thread has failed or `seconds` are over.
  /// Returns how long. `lock` holds mutex_.
  template <class Ready>
  double wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready);

  HostCommunicator& group_;
  const int peer_;
  const int tag_;
  const LinkOptions options_;
  std::uint64_t sequence_ = 0;  // of the next message; the thread's
  SideWait side_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

/// The sender's end, for one thread at a time. `group` must outlive it. What the thread throws
/// (`communication`, the error of an abort) is thrown by the next call.
class LinkSender : private LinkEnd {
 public:
  /// `usage` unless `peer` and `tag` are those of a message and there is at least one slot.
  LinkSender(HostCommunicator& group, int peer, int tag, const LinkOptions& options = {});
  /// Messages that have not left by now are lost, and the tag is of no use any more: flush() first.
  ~LinkSender();

  /// Whether send() would wait: all slots are taken.
  bool would_block();
  /// Takes the message over and returns at once while a slot is free; else waits for one. Returns
  /// the seconds of that wait. The payload is freed when it has left.
  double send(const LinkHeader& header, Payload payload);
  /// Returns when everything has left.
  void flush();
  /// The same for at most `seconds`; false if something is still here.
  bool flush_for(double seconds);

 private:
  struct Outgoing {
    LinkHeader header;
    Payload payload;
    double send_time;
  };
  bool step();
  void post(const Outgoing& message);

  std::deque<Outgoing> outgoing_;  // the first one may be on its way
};

/// The receiver's end, for one thread at a time; it takes up to `slots` messages ahead. `group`
/// must outlive it. A message whose length, sequence number or checksum is not what it should be is
/// `communication` with both values, thrown after the messages before it.
class LinkReceiver : private LinkEnd {
 public:
  LinkReceiver(HostCommunicator& group, int peer, int tag, const LinkOptions& options = {});
  /// Messages that were not received are dropped.
  ~LinkReceiver();

  /// Whether receive() would return, or throw, at once.
  bool ready();
  /// The oldest message; waits for it.
  LinkMessage receive();
  /// The same for at most `seconds`; none if nothing came.
  std::optional<LinkMessage> receive_for(double seconds);

 private:
  bool step();
  LinkMessage take();

  std::deque<LinkMessage> arrived_;
};

}  // namespace convoy
