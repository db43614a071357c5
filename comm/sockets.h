// TCP connections that carry messages. Every message has a length, a sequence number and a
// checksum, so that a damaged, lost or foreign one is found.
//
//   | "CVYW" | type u32 | bytes u32 | crc of body u32 | sequence u64 | crc of all before u32 | body
//   |
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/interfaces.h"

namespace convoy {

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_;
};

constexpr std::size_t kFrameHead = 28;
/// Longest body.
constexpr std::size_t kLongestBody = std::size_t{8} << 20;
/// The number of a message that stands outside of the sequence: a last word.
constexpr std::uint64_t kOutside = ~std::uint64_t{0};

/// CRC-32 (of zlib and Ethernet).
std::uint32_t crc32(std::span<const char> bytes, std::uint32_t before = 0);

/// The head of a message. Allocates nothing: signal handlers call it.
std::array<char, kFrameHead> frame_head(std::uint32_t type, std::uint64_t sequence,
                                        std::span<const char> body);

struct Message {
  std::uint32_t type = 0;
  std::string body;
};

/// One end of a connection, for one thread. Never blocks.
class MessageLink {
 public:
  enum class State { open, closed, unanswered };

  /// Takes a connected socket.
  explicit MessageLink(Descriptor socket);

  int fd() const { return socket_.get(); }
  State state() const { return state_; }
  /// Queues a message and sends what the system takes.
  void send(std::uint32_t type, const std::string& body);
  /// Sends what is left in the queue; true when nothing is.
  bool flush();
  /// Reads what has arrived; notices the end of the connection.
  void read();
  /// The oldest message that has come, whole. `communication` where it is damaged: it is of no use
  /// to read on.
  std::optional<Message> next();
  /// No more will be sent.
  void finish();

 private:
  void note_error(int error);
  void check_head() const;
  void check_sum(const char* part, std::uint32_t found, std::uint32_t said) const;

  Descriptor socket_;
  State state_ = State::open;
  std::string in_;
  std::string out_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

/// Where a process listens.
struct Endpoint {
  Interface interface;
  std::uint16_t port = 0;
};

/// Sockets that listen on free ports, one for each address.
class Listener {
 public:
  explicit Listener(const std::vector<Interface>& interfaces);
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  std::vector<int> fds() const;
  /// A connection that has come in on any of them.
  std::optional<Descriptor> accept();

 private:
  std::vector<Descriptor> sockets_;
  std::vector<Endpoint> endpoints_;
};

/// Connects within `seconds`; an empty one, and why in `error`, where that fails.
Descriptor connect_to(const Endpoint& endpoint, double seconds, std::string& error);

/// The own address of a connection.
std::string local_address(int fd);

}  // namespace convoy
