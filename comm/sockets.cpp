#include "comm/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::uint32_t kMagic = 0x57595643;  // "CVYW"
constexpr int kUserTimeout = 10000;           // ms until bytes without an answer are an error

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

template <class T>
void put(char* place, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) place[i] = static_cast<char>(value >> (8 * i));
}

template <class T>
T get(const char* place) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(place[i])) << (8 * i);
  }
  return value;
}

constexpr std::size_t kHeadChecked = kFrameHead - 4;  // what the head's own checksum covers

/// The address with its port, as the system wants it.
struct SystemAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SystemAddress system_address(const std::string& address, std::uint16_t port) {
  SystemAddress out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    out.size = sizeof *v6;
  } else {
    CONVOY_FAIL(communication, "\"{}\" is no network address", address);
  }
  return out;
}

SystemAddress own_address(int fd) {
  SystemAddress own;
  own.size = sizeof own.storage;
  ::getsockname(fd, own.get(), &own.size);
  return own;
}

std::uint16_t bound_port(int fd) {
  SystemAddress own = own_address(fd);
  const bool v4 = own.storage.ss_family == AF_INET;
  return ntohs(v4 ? reinterpret_cast<sockaddr_in*>(&own.storage)->sin_port
                  : reinterpret_cast<sockaddr_in6*>(&own.storage)->sin6_port);
}

Descriptor make_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// An address may have gone since the interfaces were listed: then there is none.
Descriptor listen_on(const Interface& interface) {
  SystemAddress address = system_address(interface.address, 0);
  Descriptor socket = make_socket(address.storage.ss_family);
  const bool good = socket && ::bind(socket.get(), address.get(), address.size) == 0 &&
                    ::listen(socket.get(), SOMAXCONN) == 0;
  return good ? std::move(socket) : Descriptor();
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::uint32_t crc32(std::span<const char> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (char byte : bytes)
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 255] ^ (crc >> 8);
  return ~crc;
}

std::array<char, kFrameHead> frame_head(std::uint32_t type, std::uint64_t sequence,
                                        std::span<const char> body) {
  std::array<char, kFrameHead> head{};
  put(&head[0], kMagic);
  put(&head[4], type);
  put(&head[8], static_cast<std::uint32_t>(body.size()));
  put(&head[12], crc32(body));
  put(&head[16], sequence);
  put(&head[kHeadChecked], crc32({head.data(), kHeadChecked}));
  return head;
}

MessageLink::MessageLink(Descriptor socket) : socket_(std::move(socket)) {
  const int on = 1;
  const int flags = ::fcntl(fd(), F_GETFL);
  ::fcntl(fd(), F_SETFL, flags | O_NONBLOCK);
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeout, sizeof kUserTimeout);
}

void MessageLink::send(std::uint32_t type, const std::string& body) {
  CONVOY_DCHECK(body.size() <= kLongestBody, "message: {} bytes are too many", body.size());
  if (state_ != State::open) return;
  const auto head = frame_head(type, sent_++, body);
  out_.append(head.data(), head.size());
  out_.append(body);
  flush();
}

bool MessageLink::flush() {
  while (state_ == State::open && !out_.empty()) {
    const ssize_t sent = ::send(fd(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      // A reset still leaves what came before it to be read: only reading ends the connection.
      if (errno != EAGAIN) out_.clear();
      break;
    }
  }
  return out_.empty();
}

void MessageLink::note_error(int error) {
  const bool unanswered = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  state_ = unanswered ? State::unanswered : State::closed;
}

void MessageLink::read() {
  char buffer[16384];
  while (state_ == State::open) {
    const ssize_t count = ::recv(fd(), buffer, sizeof buffer, 0);
    if (count > 0) {
      in_.append(buffer, static_cast<std::size_t>(count));
    } else if (count == 0) {
      state_ = State::closed;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      note_error(errno);
    }
  }
}

std::optional<Message> MessageLink::next() {
  if (in_.size() < kFrameHead) return {};
  check_head();
  const std::size_t bytes = get<std::uint32_t>(&in_[8]);
  if (in_.size() < kFrameHead + bytes) return {};
  Message message{get<std::uint32_t>(&in_[4]), in_.substr(kFrameHead, bytes)};
  check_sum("", crc32(message.body), get<std::uint32_t>(&in_[12]));
  const std::uint64_t sequence = get<std::uint64_t>(&in_[16]);
  if (sequence != kOutside && sequence != received_) {
    CONVOY_FAIL(communication, "message {} came, expected {}", sequence, received_);
  }
  if (sequence != kOutside) ++received_;
  in_.erase(0, kFrameHead + bytes);
  return message;
}

void MessageLink::check_sum(const char* part, std::uint32_t found, std::uint32_t said) const {
  if (said == found) return;
  CONVOY_FAIL(communication, "message {}{} has checksum 0x{:08X}, expected 0x{:08X}: it is damaged",
              received_, part, found, said);
}

void MessageLink::check_head() const {
  const std::uint32_t magic = get<std::uint32_t>(&in_[0]);
  if (magic != kMagic) {
    CONVOY_FAIL(communication, "message {} begins with 0x{:08X}, expected 0x{:08X}: it is damaged",
                received_, magic, kMagic);
  }
  check_sum("'s head", crc32({in_.data(), kHeadChecked}), get<std::uint32_t>(&in_[kHeadChecked]));
  const std::size_t bytes = get<std::uint32_t>(&in_[8]);
  if (bytes > kLongestBody) {
    CONVOY_FAIL(communication, "message {} claims {} bytes, expected at most {}", received_, bytes,
                kLongestBody);
  }
}

void MessageLink::finish() {
  ::shutdown(fd(), SHUT_WR);
}

Listener::Listener(const std::vector<Interface>& interfaces) {
  for (const Interface& interface : interfaces) {
    Descriptor socket = listen_on(interface);
    if (!socket) continue;
    endpoints_.push_back({interface, bound_port(socket.get())});
    sockets_.push_back(std::move(socket));
  }
  if (sockets_.empty()) {
    CONVOY_FAIL(communication, "cannot listen on {}: {}",
                interfaces.empty() ? "any interface" : describe(interfaces.front()),
                std::strerror(errno));
  }
}

std::vector<int> Listener::fds() const {
  std::vector<int> all;
  for (const Descriptor& socket : sockets_) all.push_back(socket.get());
  return all;
}

std::optional<Descriptor> Listener::accept() {
  for (const Descriptor& socket : sockets_) {
    Descriptor in(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (in) return in;
  }
  return {};
}

Descriptor connect_to(const Endpoint& endpoint, double seconds, std::string& error) {
  SystemAddress address = system_address(endpoint.interface.address, endpoint.port);
  Descriptor socket = make_socket(address.storage.ss_family);
  int result = socket ? ::connect(socket.get(), address.get(), address.size) : -1;
  int code = result == 0 ? 0 : errno;
  if (code == EINPROGRESS) {
    pollfd wait = {socket.get(), POLLOUT, 0};
    const bool done = ::poll(&wait, 1, std::max(1, static_cast<int>(seconds * 1000))) == 1;
    socklen_t size = sizeof code;
    if (done) ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (!done) code = ETIMEDOUT;
  }
  if (code == 0) return socket;
  error = fmt::format("{} port {}: {}", describe(endpoint.interface), endpoint.port,
                      std::strerror(code));
  return Descriptor();
}

std::string local_address(int fd) {
  SystemAddress own = own_address(fd);
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = own.storage.ss_family == AF_INET
                          ? static_cast<void*>(&reinterpret_cast<sockaddr_in*>(own.get())->sin_addr)
                          : &reinterpret_cast<sockaddr_in6*>(own.get())->sin6_addr;
  ::inet_ntop(own.storage.ss_family, bytes, text, sizeof text);
  return text;
}

}  // namespace convoy
