#include "comm/watchdog_endings.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONVOY_SANITIZED 1  // the sanitizer's own handlers tell more
#else
#define CONVOY_SANITIZED 0
#endif

namespace convoy {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t kMostSockets = 64;
constexpr int kMostAsked = 100;  // of the system, for one ending

/// All that a handler needs. It allocates nothing and calls only what handlers may call.
struct Speaker {
  int rank = 0;
  pid_t pid = 0;
  std::size_t count = 0;
  std::array<int, kMostSockets> sockets{};
  std::array<struct sigaction, std::size(kSignals)> before{};
};

// Handlers take no argument of ours, so these have to be global.
Speaker speaker;
std::atomic<bool> taken{false};
std::atomic<bool> armed{false};

void say(Ending::How how, int value) {
  if (!armed.load() || ::getpid() != speaker.pid) return;  // a forked child is not this process
  const auto body = pack(Word{speaker.rank, {how, value}});
  const auto head = frame_head(static_cast<std::uint32_t>(Tell::word), kOutside, body);
  std::array<char, kFrameHead + kWordBytes> frame;
  std::copy(head.begin(), head.end(), frame.begin());
  std::copy(body.begin(), body.end(), frame.begin() + kFrameHead);
  for (std::size_t i = 0; i < speaker.count; ++i) {
    ::send(speaker.sockets[i], frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void on_crash(int signal) {
  say(Ending::How::signal, signal);
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  ::raise(signal);  // blocked until this handler returns
}

void on_leaving(int code, void*) {
  say(Ending::How::code, code & 255);
}

void install_handlers() {
  if (CONVOY_SANITIZED) return;
  struct sigaction action = {};
  action.sa_handler = on_crash;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &action, &speaker.before[i]);
  }
}

void restore_handlers() {
  if (CONVOY_SANITIZED) return;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &speaker.before[i], nullptr);
  }
}

// From the kernel's uapi/linux/pidfd.h, which older headers lack.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_status;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1u << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// The status as wait() would give it, once the parent has waited for the process.
std::optional<int> exit_status(int pidfd) {
  PidfdInfo info = {};
  info.mask = kInfoExit;
  if (::ioctl(pidfd, kGetInfo, &info) != 0 || !(info.mask & kInfoExit)) return {};
  return info.exit_status;
}

Ending ending_of(int status) {
  if (WIFSIGNALED(status)) return {Ending::How::signal, WTERMSIG(status)};
  return {Ending::How::code, WEXITSTATUS(status)};
}

bool readable(int fd) {
  pollfd one = {fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace

std::string own_pid_space() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat space = {};
  ::stat("/proc/self/ns/pid", &space);
  return fmt::format("{}/{}", boot, space.st_ino);
}

LastWord::LastWord(int rank, const std::vector<int>& fds) {
  if (fds.empty() || taken.exchange(true)) return;
  speaks_ = true;
  speaker.rank = rank;
  speaker.pid = ::getpid();
  speaker.count = std::min(fds.size(), kMostSockets);
  std::copy_n(fds.begin(), speaker.count, speaker.sockets.begin());
  install_handlers();
  static const int registered = ::on_exit(on_leaving, nullptr);  // it cannot be taken back
  armed.store(registered == 0);
}

LastWord::~LastWord() {
  if (!speaks_) return;
  armed.store(false);
  restore_handlers();
  taken.store(false);
}

Neighbours::Neighbours(const std::vector<Member>& members, int self) {
  const std::string here = own_pid_space();
  for (const Member& member : members) {
    if (member.rank == self || member.pid_space != here || member.pid == ::getpid()) continue;
    const long fd = ::syscall(SYS_pidfd_open, static_cast<pid_t>(member.pid), 0);
    if (fd >= 0) all_.push_back({member.rank, Descriptor(static_cast<int>(fd))});
  }
}

std::vector<int> Neighbours::fds() const {
  std::vector<int> found;
  for (const Neighbour& one : all_) {
    if (!one.ended) found.push_back(one.handle.get());
  }
  return found;
}

std::vector<Word> Neighbours::look() {
  std::vector<Word> words;
  for (Neighbour& one : all_) {
    one.ended = one.ended || readable(one.handle.get());
    if (!one.ended) continue;
    ++one.asked;
    if (const auto status = exit_status(one.handle.get())) {
      words.push_back({one.rank, ending_of(*status)});
      one.asked = kMostAsked;
    }
  }
  std::erase_if(all_, [](const Neighbour& one) { return one.asked >= kMostAsked; });
  return words;
}

bool Neighbours::pending() const {
  return std::any_of(all_.begin(), all_.end(), [](const Neighbour& one) { return one.ended; });
}

}  // namespace convoy
