#include "comm/link.h"

#include <xxhash.h>

#include <chrono>
#include <limits>
#include <type_traits>
#include <utility>

#include "comm/check_arguments.h"
#include "comm/clock.h"

namespace convoy {
namespace {

constexpr double kForEver = std::numeric_limits<double>::infinity();

/// The header as it travels, before the payload. The seal is the checksum of all that follows it.
struct WireHeader {
  std::uint64_t seal = 0;
  std::uint64_t sequence = 0;
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;  // of the payload; 0 if there are none
  std::int64_t send_time = 0;  // nanoseconds of the sender's steady clock
  LinkHeader header;
};
static_assert(std::has_unique_object_representations_v<WireHeader>);

std::uint64_t hash(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t seal_of(const WireHeader& wire) {
  return hash(std::as_bytes(std::span(&wire, 1)).subspan(sizeof wire.seal));
}

/// The values in hexadecimal, as checksums are compared by people.
void check_sum(const std::string& link, const char* what, std::uint64_t got,
               std::uint64_t expected) {
  if (got == expected) return;
  CONVOY_FAIL(communication, "{}: the checksum of the {} is {:016x}, expected {:016x}", link, what,
              got, expected);
}

std::string name_link(int from, int to, int tag) {
  return fmt::format("link from rank {} to rank {} (tag {})", from, to, tag);
}

}  // namespace

LinkEnd::LinkEnd(HostCommunicator& group, int peer, int tag, const LinkOptions& options)
    : group_(group), peer_(peer), tag_(tag), options_(options) {
  check_peer("link", peer, tag, group);
  CONVOY_CHECK(options.slots >= 1, "link: {} slots, expected at least 1", options.slots);
}

template <class Work>
void LinkEnd::start(Work work) {
  thread_ = std::thread([this, work] {
    try {
      while (work()) {
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  });
}

void LinkEnd::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  side_.stop();
  changed_.notify_all();
  thread_.join();
}

template <class Ready>
double LinkEnd::wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready) {
  const auto over = [&] { return failure_ || ready(); };
  if (over()) return 0;
  const double begin = steady_now();
  const WaitScope waiting(group_.board(), WaitIn::message);
  side_.set_urgent(true);
  if (seconds == kForEver) {
    changed_.wait(lock, over);
  } else {
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), over);
  }
  side_.set_urgent(false);
  return steady_now() - begin;
}

LinkSender::LinkSender(HostCommunicator& group, int peer, int tag, const LinkOptions& options)
    : LinkEnd(group, peer, tag, options) {
  start([this] { return step(); });
}

LinkSender::~LinkSender() {
  stop();
}

bool LinkSender::would_block() {
  const std::lock_guard lock(mutex_);
  return !failure_ && outgoing_.size() >= static_cast<std::size_t>(options_.slots);
}

double LinkSender::send(const LinkHeader& header, Payload payload) {
  const double now = steady_now();
  std::unique_lock lock(mutex_);
  const double waited = wait(lock, kForEver, [this] {
    return outgoing_.size() < static_cast<std::size_t>(options_.slots);
  });
  if (failure_) std::rethrow_exception(failure_);
  outgoing_.push_back({header, std::move(payload), now});
  lock.unlock();
  changed_.notify_all();
  return waited;
}

void LinkSender::flush() {
  flush_for(kForEver);
}

bool LinkSender::flush_for(double seconds) {
  std::unique_lock lock(mutex_);
  wait(lock, seconds, [this] { return outgoing_.empty(); });
  if (failure_) std::rethrow_exception(failure_);
  return outgoing_.empty();
}

bool LinkSender::step() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !outgoing_.empty(); });
  if (stopping_) return false;
  Outgoing& first = outgoing_.front();  // stays where it is while others are added
  lock.unlock();
  post(first);
  first.payload = Payload();
  lock.lock();
  outgoing_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return true;
}

void LinkSender::post(const Outgoing& message) {
  WireHeader wire;
  wire.sequence = sequence_++;
  wire.length = message.payload.bytes();
  wire.checksum = options_.checksums ? hash(message.payload.span()) : 0;
  wire.send_time = static_cast<std::int64_t>(message.send_time * 1e9);
  wire.header = message.header;
  wire.seal = seal_of(wire);
  group_.send_aside(&wire, sizeof wire, peer_, tag_, side_);
  if (wire.length == 0) return;
  group_.send_aside(message.payload.data(), wire.length, peer_, tag_, side_);
}

LinkReceiver::LinkReceiver(HostCommunicator& group, int peer, int tag, const LinkOptions& options)
    : LinkEnd(group, peer, tag, options) {
  start([this] { return step(); });
}

LinkReceiver::~LinkReceiver() {
  stop();
}

bool LinkReceiver::ready() {
  const std::lock_guard lock(mutex_);
  return failure_ || !arrived_.empty();
}

LinkMessage LinkReceiver::receive() {
  return std::move(*receive_for(kForEver));
}

std::optional<LinkMessage> LinkReceiver::receive_for(double seconds) {
  std::unique_lock lock(mutex_);
  wait(lock, seconds, [this] { return !arrived_.empty(); });
  if (arrived_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return {};
  }
  LinkMessage message = std::move(arrived_.front());
  arrived_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return message;
}

bool LinkReceiver::step() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return stopping_ || arrived_.size() < static_cast<std::size_t>(options_.slots);
  });
  if (stopping_) return false;
  lock.unlock();
  LinkMessage message = take();
  lock.lock();
  arrived_.push_back(std::move(message));
  lock.unlock();
  changed_.notify_all();
  return true;
}

LinkMessage LinkReceiver::take() {
  const std::string link = name_link(peer_, group_.rank(), tag_);
  WireHeader wire;
  side_.set_idle(true);
  group_.receive_aside(&wire, sizeof wire, peer_, tag_, side_);
  side_.set_idle(false);
  check_sum(link, "header", seal_of(wire), wire.seal);
  if (wire.sequence != sequence_) {
    CONVOY_FAIL(communication, "{}: the message has sequence number {}, expected {}", link,
                wire.sequence, sequence_);
  }
  ++sequence_;
  LinkMessage message{wire.header, Payload(wire.length),
                      static_cast<double>(wire.send_time) * 1e-9 - options_.clock_offset, 0};
  if (wire.length > 0) {
    group_.receive_aside(message.payload.data(), wire.length, peer_, tag_, side_);
  }
  message.arrived_at = steady_now();
  if (options_.checksums) {
    check_sum(link, "payload", hash(message.payload.span()), wire.checksum);
  }
  return message;
}

}  // namespace convoy
