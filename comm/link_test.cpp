#include "comm/link_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "comm/clock.h"
#include "comm/link.h"

namespace convoy {
namespace {

constexpr int kPings = 10;

struct Times {
  double sent;
  double arrived;
};

struct Clocks {
  double latency;
  double offset;  // of the peer's clock
};

/// Bytes that differ from place to place, from rank to rank and from size to size.
Payload pattern(std::size_t bytes, int rank) {
  Payload payload(bytes);
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  std::uint64_t word = (static_cast<std::uint64_t>(rank) + 1) * kOdd + bytes;
  std::size_t at = 0;
  for (; at + sizeof word <= bytes; at += sizeof word) {
    word += kOdd;
    std::memcpy(payload.data() + at, &word, sizeof word);
  }
  word += kOdd;
  if (at < bytes) std::memcpy(payload.data() + at, &word, bytes - at);
  return payload;
}

template <class T>
Payload bytes_of(const T& value) {
  Payload payload(sizeof value);
  std::memcpy(payload.data(), &value, sizeof value);
  return payload;
}

/// A pair as one of the two sees it.
class PairTest {
 public:
  PairTest(HostCommunicator& group, int peer, int tag, const LinkTestOptions& options)
      : me_(group.rank()),
        peer_(peer),
        options_(options),
        sender_(group, peer, tag, links()),
        receiver_(group, peer, tag, links()) {}

  LinkReport run() {
    const Clocks clocks = me_ < peer_ ? ask() : answer();
    double rate = 0;
    for (std::size_t bytes : options_.sizes) {
      const double seconds = exchange(bytes, clocks);
      if (bytes >= largest() / 4) rate = std::max(rate, static_cast<double>(bytes) / seconds);
    }
    exchange(0, clocks);  // the peer has all of the above
    if (!sender_.flush_for(options_.limit)) fail_late("taken all messages");
    return {peer_, me_, clocks.latency, rate, clocks.offset};
  }

 private:
  /// So many slots that send() never waits; the test compares the values itself.
  static LinkOptions links() { return {.slots = 64, .checksums = false}; }
  std::size_t largest() const {
    return *std::max_element(options_.sizes.begin(), options_.sizes.end());
  }

  [[noreturn]] void fail_late(const std::string& what) const {
    CONVOY_FAIL(communication, "link test of ranks {} and {}: rank {} has not {} within {:g} s",
                std::min(me_, peer_), std::max(me_, peer_), peer_, what, options_.limit);
  }

  LinkMessage next(std::size_t bytes) {
    std::optional<LinkMessage> message = receiver_.receive_for(options_.limit);
    if (!message) fail_late(fmt::format("sent a message of {} bytes", bytes));
    if (message->payload.bytes() != bytes) {
      CONVOY_FAIL(communication,
                  "link test of ranks {} and {}: message of {} bytes from rank {}, {} expected",
                  std::min(me_, peer_), std::max(me_, peer_), message->payload.bytes(), peer_,
                  bytes);
    }
    return std::move(*message);
  }

  template <class T>
  std::pair<T, LinkMessage> next_value() {
    LinkMessage message = next(sizeof(T));
    T value;
    std::memcpy(&value, message.payload.data(), sizeof value);
    return {value, std::move(message)};
  }

  /// The quickest of some round trips: half of it is the latency.
  Clocks ask() {
    Clocks best{std::numeric_limits<double>::infinity(), 0};
    for (int i = 0; i < kPings; ++i) {
      const double sent = steady_now();
      sender_.send({}, {});
      const auto [there, back] = next_value<Times>();
      const double out = there.arrived - sent;
      const double home = back.arrived_at - back.sent_at;
      if (out + home < 2 * best.latency) best = {(out + home) / 2, (out - home) / 2};
    }
    sender_.send({}, bytes_of(best));
    return best;
  }

  Clocks answer() {
    for (int i = 0; i < kPings; ++i) {
      const LinkMessage ping = next(0);
      sender_.send({}, bytes_of(Times{ping.sent_at, ping.arrived_at}));
    }
    const Clocks theirs = next_value<Clocks>().first;
    return {theirs.latency, -theirs.offset};
  }

  /// Sends and receives `bytes` at once. Returns the seconds that the peer's took on the way, less
  /// the latency.
  double exchange(std::size_t bytes, const Clocks& clocks) {
    sender_.send({}, pattern(bytes, me_));
    const LinkMessage message = next(bytes);
    compare(message.payload, pattern(bytes, peer_));
    const double seconds = message.arrived_at - (message.sent_at - clocks.offset);
    return std::max(seconds - clocks.latency, seconds / 2);
  }

  void compare(const Payload& got, const Payload& expected) const {
    if (got.bytes() == 0 || std::memcmp(got.data(), expected.data(), got.bytes()) == 0) return;
    const auto a = got.span();
    const auto b = expected.span();
    const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
    CONVOY_FAIL(
        communication,
        "link test of ranks {} and {}: byte {} of {} from rank {} to rank {} is {}, expected {}",
        std::min(me_, peer_), std::max(me_, peer_), at, a.size(), peer_, me_,
        std::to_integer<int>(a[at]), std::to_integer<int>(b[at]));
  }

  const int me_;
  const int peer_;
  const LinkTestOptions& options_;
  LinkSender sender_;
  LinkReceiver receiver_;
};

}  // namespace

std::vector<LinkReport> test_links(HostCommunicator& group, const std::vector<int>& peers, int tag,
                                   const LinkTestOptions& options) {
  CONVOY_CHECK(!options.sizes.empty(), "link test: no sizes, expected at least one");
  std::vector<LinkReport> reports(peers.size());
  std::vector<std::exception_ptr> failures(peers.size());
  const auto test = [&](std::size_t i) {
    try {
      reports[i] = PairTest(group, peers[i], tag, options).run();
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < peers.size(); ++i) threads.emplace_back(test, i);
  if (!peers.empty()) test(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return reports;
}

}  // namespace convoy
