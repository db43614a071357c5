// Each rank listens at an abstract address of the host, named by the job, so that nothing is left
// behind; who can be connected to has come.
#include "comm/mpi_meeting.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace convoy {
namespace {

constexpr std::chrono::microseconds kLongestPause(20000);

/// An address without a file: its name begins with a zero byte.
std::pair<sockaddr_un, socklen_t> abstract_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

int unix_socket() {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

}  // namespace

HostMeeting::HostMeeting(const World& world, int number)
    : world_(world), number_(number), socket_(unix_socket()) {
  if (socket_ < 0) CONVOY_FAIL(resource, "meeting: {}", std::strerror(errno));
  const auto [address, length] = abstract_address(address_of(world.local_rank));
  const bool named = bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  // The name is taken where another program of the same rank meets too: then that one answers.
  if ((!named && errno != EADDRINUSE) || (named && listen(socket_, SOMAXCONN) != 0)) {
    const int cause = errno;
    close(socket_);
    CONVOY_FAIL(resource, "meeting: {}", std::strerror(cause));
  }
}

HostMeeting::~HostMeeting() {
  close(socket_);
}

std::string HostMeeting::address_of(int local_rank) const {
  return fmt::format("convoy-{:x}-{}-{}", std::hash<std::string>()(world_.job), number_,
                     local_rank);
}

bool HostMeeting::has_come(int local_rank) const {
  const int socket = unix_socket();
  if (socket < 0) return false;
  const auto [address, length] = abstract_address(address_of(local_rank));
  const bool connected = connect(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  const bool come = connected || errno == EAGAIN;  // EAGAIN: it has many callers
  close(socket);
  return come;
}

bool HostMeeting::wait(const Deadline& deadline) const {
  if (world_.job.empty()) return false;
  std::vector<int> absent;
  for (int r = 0; r < world_.local_size; ++r) absent.push_back(r);
  for (std::chrono::microseconds pause(200);; pause = std::min(pause * 2, kLongestPause)) {
    absent.erase(
        std::remove_if(absent.begin(), absent.end(), [this](int r) { return has_come(r); }),
        absent.end());
    if (absent.empty()) return true;
    if (deadline.passed()) throw absent_error(absent, deadline);
    std::this_thread::sleep_for(pause);
  }
}

Error HostMeeting::absent_error(const std::vector<int>& local_ranks,
                                const Deadline& deadline) const {
  const bool one_host = world_.local_size == world_.size;
  const bool one = local_ranks.size() == 1;
  const std::string text =
      fmt::format("meeting: {}{} {} of {} {} not come within {} s, host {}",
                  one_host ? "" : "local ", one ? "rank" : "ranks", list(local_ranks),
                  world_.local_size, one ? "has" : "have", deadline.seconds(), world_.host);
  Error error(ErrorKind::communication, text, CONVOY_PLACE);
  return one_host ? error.with_rank(local_ranks.front()) : error;
}

}  // namespace convoy
